/** Jobs with the built program and a real gateway: a reminder arrives once, also when the gateway was killed or not running at its time. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { DEFAULT_SESSION, type FakeModel, Machine, until, withModel } from "./support.ts";

interface Run {
  readonly jobId: string;
  readonly status: string;
  readonly error?: string;
  readonly summary?: string;
}

interface Listed {
  readonly nodes: readonly {
    readonly nodeId: string;
    readonly online: boolean;
    readonly waiting?: readonly { readonly sessionKey: string; readonly since: number; readonly until: number }[];
  }[];
}

describe("jobs", () => {
  const machine = new Machine();
  let fake: FakeModel;
  const runs = async (): Promise<readonly Run[]> =>
    (JSON.parse(await machine.ok("cron", "runs", "--json")) as { runs: readonly Run[] }).runs;
  const ended = (count: number): Promise<readonly Run[]> =>
    until(
      "the runs end",
      async () => {
        const all = await runs();
        return all.filter(({ status }) => status === "ok").length >= count ? all : undefined;
      },
      60_000,
      500,
    );
  /** Everything that the conversation has shown: messages and notes. */
  const shown = async (): Promise<string> => {
    const client = await machine.client();
    const answer = await client.call("session.subscribe", { sessionKey: DEFAULT_SESSION, afterSeq: 0 });
    const { events } = answer as { events: readonly { readonly payload: { readonly text?: string } }[] };
    client.close();
    // A note of an answer has its text a second time, as a message.
    return JSON.stringify(events.map(({ payload }) => payload.text ?? payload));
  };

  withModel(machine, (model) => {
    fake = model;
  });

  it("[SC9] a job is added with its next times, listed, paused and removed", async () => {
    const { code, stderr } = await machine.gsv([
      "cron",
      "add",
      "Read the news",
      "--cron",
      "0 9 * * mon-fri",
      "--tz",
      "Europe/Amsterdam",
      "--name",
      "News",
    ]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /^It runs \d{4}-\d{2}-\d{2} .*\n/);
    const [, id = ""] = /(news-\S+) is added/.exec(stderr) ?? [];
    assert.match(await machine.ok("cron", "list"), /0 9 \* \* mon-fri \(Europe\/Amsterdam\)\s+News/);
    await machine.ok("cron", "pause", id);
    assert.match(await machine.ok("cron", "list"), /paused/);
    await machine.ok("cron", "edit", id, "--every", "2h30m");
    await machine.ok("cron", "resume", id);
    assert.match(await machine.ok("cron", "show", id), /every 2 h 30 min/);
    await machine.ok("cron", "remove", id);
    const bad = await machine.gsv(["cron", "add", "x", "--at", "someday"]);
    assert.equal(bad.code, 2);
    assert.match(bad.stderr, /`someday` is not a time/);
    assert.equal((await machine.gsv(["cron", "show", id])).code, 1);
  });

  it("[SC1] [K28] killed when the time comes: the job runs once, and its answer is there once", async () => {
    await machine.ok("cron", "add", "say tick-tock-once", "--at", "in 2 seconds", "--name", "Tick");
    await machine.killWorkerd();
    await ended(1);
    const text = await shown();
    assert.equal(text.split('The job \\"Tick\\" says').length - 1, 1, text);
    assert.equal(fake.requests.filter((request) => JSON.stringify(request).includes("tick-tock-once")).length, 1);
  });

  it("[OM1] a task waits for a machine that is away as long as --wait says, and its list shows it", async () => {
    const waits = async (): Promise<readonly { readonly sessionKey: string; readonly since: number; readonly until: number }[]> => {
      const client = await machine.client();
      const { nodes } = (await client.call("nodes.list")) as unknown as Listed;
      client.close();
      const box = nodes.find(({ nodeId }) => nodeId === "box");
      return box?.online === false ? (box.waiting ?? []) : [];
    };
    const add = async (name: string, wait: string): Promise<string> => {
      const words = ["cron", "add", 'call box__Bash {"command":"true"}', "--cron", "0 3 1 1 *", "--name", name, "--wait", wait, "--quiet"];
      const { stderr } = await machine.gsv(words);
      const [, id = ""] = /(\S+) is added/.exec(stderr) ?? [];
      return id;
    };
    const node = await machine.node("box");
    await node.kill();
    await until("the machine is away", async () => {
      const client = await machine.client();
      const { nodes } = (await client.call("nodes.list")) as unknown as Listed;
      client.close();
      return nodes.some(({ nodeId, online }) => nodeId === "box" && !online);
    });
    const never = await add("Never", "0s");
    assert.match(await machine.ok("cron", "show", never), /waits\s+not for a machine that is away/);
    const before = fake.requests.length;
    await machine.ok("cron", "run", never);
    await until(
      "the run ends",
      async () => (await runs()).some(({ jobId, status }) => jobId === never && status === "ok") || undefined,
      60_000,
      300,
    );
    assert.match(JSON.stringify(fake.requests.slice(before)), /box is not connected/);
    assert.deepEqual(await waits(), []);
    const long = await add("Long", "3h");
    assert.match(await machine.ok("cron", "show", long), /waits\s+3 h for a machine that is away/);
    assert.match(await machine.ok("cron", "list"), /waits 3 h for a machine that is away\s+Long/);
    await machine.ok("cron", "run", long);
    const [wait] = await until("the call waits", async () => {
      const found = await waits();
      return found.length > 0 ? found : undefined;
    });
    assert.ok(wait);
    assert.ok(wait.sessionKey.includes(long));
    assert.equal(wait.until - wait.since, 3 * 3_600_000);
    await machine.ok("stop", wait.sessionKey);
    for (const id of [never, long]) await machine.ok("cron", "remove", id);
  });

  it("[SC4] [SC16] a reminder whose time came while the gateway was down arrives when it is back, and says that it is late", async () => {
    await machine.ok("cron", "add", "call-the-dentist", "--at", "in 1 second", "--remind");
    await machine.ok("down");
    const due = Date.now() + 1_000;
    await until("the time comes", () => Date.now() > due);
    await machine.up();
    await ended(2);
    assert.match(await shown(), /call-the-dentist/);
    // [TR5] The notes of a conversation are where its messages are, also for who was away.
    for (const reading of ["preview", "show", "export"])
      assert.match(await machine.ok("session", reading, DEFAULT_SESSION), /Reminder: call-the-dentist/, reading);
    assert.equal(fake.requests.filter((request) => JSON.stringify(request).includes("call-the-dentist")).length, 0);
  });
});
