/** Domain events with the built program: workerd's own queue and D1, kills before the consumer, and a message that is broken on disk. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, it } from "node:test";
import { type FakeModel, Machine, RUNTIME, until, withModel } from "./support.ts";

interface Event {
  readonly id: string;
  readonly status: string;
  readonly topic: string;
  readonly reason?: string;
  readonly decision?: string;
  readonly started?: readonly { readonly agentId: string; readonly jobId: string }[];
}
interface Told {
  readonly kind: string;
  readonly text: string;
}

describe("[EV2] [EV3] [EV4] [EV6] [EV7] [EV8] [EV10] gsv events", () => {
  const machine = new Machine();
  let fake: FakeModel;
  /** The id of the event that the agent emits. */
  async function emit(question: string): Promise<string> {
    const answer = await machine.ok(
      "chat",
      "--agent",
      "mail",
      `call emit_event ${JSON.stringify({ topic: "human_review", payload: { question } })}`,
    );
    const [id] = /[0-9a-f]{32}/.exec(answer) ?? [];
    assert.ok(id !== undefined, answer);
    return id;
  }
  const json = async <T>(...args: string[]): Promise<T> => JSON.parse(await machine.ok(...args, "--json")) as T;
  const show = async (id: string): Promise<Event> => (await json<{ event: Event }>("events", "show", id)).event;
  const reaches = (id: string, status: string): Promise<Event> =>
    until(`event ${id} is ${status}`, async () => {
      const event = await show(id);
      return event.status === status ? event : undefined;
    });
  const told = async (text: string): Promise<readonly Told[]> =>
    (await json<{ notifications: readonly Told[] }>("notifications")).notifications.filter((one) => one.text.includes(text));

  /** The same build with queues that keep a message for a minute before they deliver it. A further message wakes a queue that delivers at once. */
  function holdingRuntime(): string {
    const folder = join(machine.folder, "holding");
    mkdirSync(folder);
    for (const name of readdirSync(RUNTIME)) if (name !== "manifest.json") symlinkSync(join(RUNTIME, name), join(folder, name));
    const manifest = JSON.parse(readFileSync(join(RUNTIME, "manifest.json"), "utf8")) as { queues: object[] };
    const queues = manifest.queues.map((queue) => ({ ...queue, maxBatchTimeout: 60 }));
    writeFileSync(join(folder, "manifest.json"), JSON.stringify({ ...manifest, queues }));
    return folder;
  }
  let holding: string | undefined;
  /** While the work runs, no consumer has an event. Then the gateway is stopped, and `whileDown` runs. */
  async function beforeTheConsumer(work: () => Promise<void>, whileDown: () => void = () => undefined): Promise<void> {
    await machine.ok("down");
    holding ??= holdingRuntime();
    const up = await machine.gsv(["up", "--port", String(machine.port)], { env: { GSV_RUNTIME_DIR: holding } });
    assert.equal(up.code, 0, up.stderr);
    await work();
    await machine.ok("down");
    whileDown();
    await machine.up();
    wakers.push(await emit("Is anything left?"));
  }
  /** Events that only wake the queue. */
  const wakers: string[] = [];

  /** Changes the rows of the objects of a class while no gateway runs. Returns how many rows it has changed. */
  function onDisk(objects: string, sql: string): number {
    let changed = 0;
    for (const found of readdirSync(machine.home, { recursive: true, encoding: "utf8" })) {
      if (!found.includes(objects) || !found.endsWith(".sqlite")) continue;
      const db = new DatabaseSync(join(machine.home, found));
      if (db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'messages'").get() !== undefined)
        changed += Number(db.prepare(sql).run().changes);
      db.close();
    }
    return changed;
  }

  withModel(machine, async (model) => {
    fake = model;
    await machine.defineAgent(
      "mail",
      "metadata: { id: mail, name: mail }\ncore_context: { system_prompt: You sort. }\ntools: { allowed: [] }\nevents: { emit: [human_review] }\n",
    );
  });

  it("an event comes over the queue to the owner, who approves it; another one is rejected", async () => {
    const id = await emit("Refund 49 SEK to Anna?");
    await reaches(id, "waiting_approval");
    assert.equal((await told("Refund 49 SEK to Anna?")).length, 1);
    assert.match(
      await machine.ok("events", "list", "--status", "waiting_approval"),
      new RegExp(`${id}.*waiting for your word.*human_review`),
    );
    assert.match(await machine.ok("events", "show", id), /Refund 49 SEK to Anna\?/);
    await machine.ok("events", "resolve", id, "approve");
    assert.equal((await reaches(id, "done")).decision, "approve");
    const second = await emit("Refund 5,000 SEK?");
    await reaches(second, "waiting_approval");
    await machine.ok("events", "resolve", second, "reject");
    assert.equal((await show(second)).status, "rejected");
    const late = await machine.gsv(["events", "resolve", second, "approve"]);
    assert.deepEqual([late.code, /Another decision|does not wait/.test(late.stderr)], [1, true]);
    assert.match(await machine.ok("audit"), /events\.resolve/);
  });
  it("a gateway that is killed before the consumer has an event handles it once when it is back", async () => {
    const ids: string[] = [];
    await beforeTheConsumer(async () => {
      for (const round of [1, 2, 3]) {
        ids.push(await emit(`Killed before the consumer, round ${round}?`));
        await machine.killWorkerd();
      }
      for (const id of ids) assert.equal((await show(id)).status, "queued");
    });
    for (const [index, id] of ids.entries()) {
      await reaches(id, "waiting_approval");
      assert.equal((await told(`round ${index + 1}?`)).length, 1);
      await machine.ok("events", "resolve", id, "approve");
      if (index === 1) await machine.killWorkerd();
    }
    for (const id of ids) await reaches(id, "done");
    const others = (await json<{ events: readonly Event[] }>("events", "list")).events.filter(({ id }) => !wakers.includes(id));
    assert.equal(others.length, 5);
  });
  it("an approved event gives the agent of its topic one job, also when the gateway is killed before the consumer has it", async () => {
    await machine.defineAgent(
      "clerk",
      "metadata: { id: clerk, name: clerk }\ncore_context: { system_prompt: You pay. }\ntools: { allowed: [] }\nevents: { on: [human_review] }\n",
    );
    const id = await emit("Pay Anna?");
    await reaches(id, "waiting_approval");
    await beforeTheConsumer(async () => {
      await machine.ok("events", "resolve", id, "approve");
      await machine.killWorkerd();
      assert.equal((await show(id)).status, "queued");
    });
    await reaches(id, "done");
    const [started, ...others] = (await show(id)).started ?? [];
    assert.deepEqual([started?.agentId, others], ["clerk", []]);
    assert.match(await machine.ok("events", "show", id), new RegExp(`gsv job show ${started?.jobId}`));
    await machine.killWorkerd();
    await machine.ok("job", "watch", started?.jobId ?? "");
    const asked = fake.requests.filter((request) =>
      JSON.stringify(request).includes("An event of the topic human_review has come from the agent mail"),
    );
    assert.ok(
      asked.length >= 1 && asked.every((request) => JSON.stringify(request).includes("Pay Anna?")),
      "the payload is in the message",
    );
    const jobs = await json<{ jobs: readonly { job_id: string }[] }>("job", "list");
    assert.deepEqual(
      jobs.jobs.map(({ job_id }) => job_id),
      [started?.jobId],
    );
    await machine.ok("agent", "undefine", "clerk", "--yes");
  });
  it("a message that was broken in the queue is a dead letter with the reason, the owner is told, and a replay heals it", async () => {
    let id = "";
    await beforeTheConsumer(
      async () => {
        id = await emit("Poisoned?");
      },
      () => {
        const changed = onDisk(
          "QueueShard",
          "UPDATE messages SET body = CAST(replace(CAST(body AS TEXT), 'human_review', 'human_poison') AS BLOB) WHERE instr(CAST(body AS TEXT), 'Poisoned?') > 0",
        );
        assert.equal(changed, 1, "the event was in the queue and not handled yet");
      },
    );
    assert.equal((await reaches(id, "dead")).reason, "There is no topic human_poison.");
    const [tell, ...others] = await told("human_poison");
    assert.deepEqual([tell?.kind, others.length], ["job", 0]);
    assert.equal((await told("Poisoned?")).length, 0);
    await machine.ok("events", "replay", id);
    await reaches(id, "waiting_approval");
    assert.equal((await told("Poisoned?")).length, 1);
  });
});
