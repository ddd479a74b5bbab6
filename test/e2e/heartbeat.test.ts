/** Heartbeats with the built program and a real gateway: no model is asked when nothing is to be done, and an answer is there once. */
import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { before, describe, it } from "node:test";
import { type FakeModel, Machine, type NodeProcess, until, withModel } from "./support.ts";

const MAIN = "agent:main:main";
interface State {
  readonly everyMs?: number;
  readonly lastStatus?: string;
  readonly runs: number;
  readonly skipped: Readonly<Record<string, number>>;
  readonly failing?: readonly { readonly condition: string; readonly count: number; readonly why: string }[];
}

describe("heartbeats", () => {
  const machine = new Machine();
  let fake: FakeModel;
  const state = async (): Promise<State> => {
    const { states } = JSON.parse(await machine.ok("heartbeat", "status", "--json")) as { states: Record<string, State> };
    assert.ok(states["main"]);
    return states["main"];
  };
  const asked = (word: string): number => fake.requests.filter((request) => JSON.stringify(request).includes(word)).length;
  const shown = async (): Promise<string> => {
    const client = await machine.client();
    const { events } = await client.call("session.subscribe", { sessionKey: MAIN, afterSeq: 0 });
    client.close();
    return JSON.stringify(events);
  };
  const ended = (runs: number): Promise<State> =>
    until(
      "the heartbeat ends",
      async () => {
        const now = await state();
        return now.runs >= runs && now.lastStatus === "ok" ? now : undefined;
      },
      60_000,
      500,
    );

  withModel(machine, (model) => {
    fake = model;
  });

  it("[HB1] [HB3] [HB8] is switched on, and asks no model while HEARTBEAT.md has no task", async () => {
    assert.match(await machine.ok("heartbeat", "status"), /main\n {2}off/);
    await machine.ok("heartbeat", "on", "--hours", "00:00-24:00", "--prompt", "say all-is-down", "--target", "none");
    assert.match(await machine.ok("heartbeat", "status"), /every 30 min, 00:00 to 24:00 \(UTC\), answers stay in the main conversation/);
    const before = fake.requests.length;
    const { code, stderr } = await machine.gsv(["heartbeat", "run"]);
    assert.equal(code, 0);
    assert.match(stderr, /nothing was run: HEARTBEAT\.md has no task/);
    assert.equal(fake.requests.length, before);
    assert.deepEqual((await state()).skipped, { empty: 1 });
    const bad = await machine.gsv(["heartbeat", "on", "--every", "often"]);
    assert.notEqual(bad.code, 0);
    assert.match(bad.stderr, /`often` is not an interval of a heartbeat/);
  });

  it("[K28] [HB6] killed when it has begun: one run, and its answer is there once", async () => {
    const client = await machine.client();
    await client.call("workspace.write", { path: "HEARTBEAT.md", content: "- look at the mail\n" });
    client.close();
    await machine.ok("heartbeat", "run");
    await machine.killWorkerd();
    await ended(1);
    assert.equal((await shown()).split("all-is-down").length - 1, 1, await shown());
  });

  it("[HB5] an answer that says nothing is not shown, and the next run does not read it", async () => {
    await machine.ok("heartbeat", "on", "--prompt", "say HEARTBEAT_OK");
    await machine.ok("heartbeat", "run");
    await ended(2);
    assert.equal(asked("say HEARTBEAT_OK"), 1);
    assert.ok(!(await shown()).includes("HEARTBEAT_OK"));
    await machine.ok("chat", "say good-morning", "-s", MAIN);
    assert.equal(asked("say HEARTBEAT_OK"), 1);
    await machine.ok("heartbeat", "off");
    assert.equal((await state()).everyMs, undefined);
  });
});

describe("conditions that a machine answers", () => {
  const machine = new Machine();
  let fake: FakeModel;
  let node: NodeProcess;
  let hasSandbox = false;
  const state = async (): Promise<State> => {
    const { states } = JSON.parse(await machine.ok("heartbeat", "status", "--json")) as { states: Record<string, State> };
    assert.ok(states["main"]);
    return states["main"];
  };
  const use = async (...conditions: readonly string[]): Promise<void> => {
    const client = await machine.client();
    await client.call("workspace.write", { path: "HEARTBEAT.md", content: `---\n${conditions.join("\n")}\n---\n- look\n` });
    client.close();
  };
  /** What the model is asked by a heartbeat now. */
  const asked = async (): Promise<string> => {
    const before = fake.requests.length;
    // The conversation may have to end the heartbeat before.
    await until("it begins", async () => (await machine.gsv(["heartbeat", "run"])).stderr.includes("runs in its main conversation"));
    await until("the heartbeat ends", async () => fake.requests.length > before && (await state()).lastStatus === "ok", 60_000, 300);
    // Earlier heartbeats said nothing, so that they are not in it.
    return JSON.stringify(fake.requests[before]);
  };

  withModel(machine, (model) => {
    fake = model;
  });
  before(async () => {
    node = await machine.node("laptop");
    const shown = await machine.gsv(["node", "sandbox", "--json", "--workspace", node.workspace]);
    hasSandbox = (JSON.parse(shown.stdout) as { tier: string | null }).tier !== null;
    await machine.ok("heartbeat", "on", "--every", "1m", "--prompt", "say HEARTBEAT_OK", "--target", "none");
  });

  it("[HB10] an exec condition that becomes true wakes the model at the next beat, and not before", async (test) => {
    if (!hasSandbox) return test.skip("this machine has no sandbox");
    await use("exec: laptop test -e ready");
    const looked = await until(
      "a beat finds it not true",
      async () => {
        const now = await state();
        return now.skipped["not_due"] === undefined ? undefined : now;
      },
      90_000,
      3_000,
    );
    assert.equal(looked.runs, 0);
    assert.equal(fake.requests.length, 0);
    writeFileSync(node.file("ready"), "");
    await until("a beat wakes the model", async () => (await state()).runs > 0 || undefined, 90_000, 3_000);
    assert.match(JSON.stringify(fake.requests[0]), /True now: exec: laptop test -e ready\./);
    await machine.ok("heartbeat", "on", "--every", "12h");
    await until("its run ends", async () => (await state()).lastStatus === "ok" || undefined, 60_000, 300);
  });

  it("[HB10] [SB21] the command changes nothing on the machine, and its output is told to no one", async (test) => {
    if (!hasSandbox) return test.skip("this machine has no sandbox");
    writeFileSync(node.file("kept"), "private words");
    await use("exec: laptop cat kept; echo x > made; rm kept; chmod 777 kept; test ! -e made && grep -q private kept");
    const words = await asked();
    assert.match(words, /True now: exec: laptop cat kept/);
    assert.ok(!words.includes("private words"));
    assert.ok(existsSync(node.file("kept")) && !existsSync(node.file("made")));
  });

  it("[HB11] a failure is shown, and told to the model once", async (test) => {
    if (!hasSandbox) return test.skip("this machine has no sandbox");
    await use("exec: laptop no-such-program");
    assert.match(await asked(), /could not be looked at: The command could not be started on laptop \(exit status 127\)/);
    assert.doesNotMatch(await asked(), /could not be looked at/);
    assert.deepEqual(
      (await state()).failing?.map(({ condition, count }) => [condition, count]),
      [["exec: laptop no-such-program", 2]],
    );
    assert.match(
      await machine.ok("heartbeat", "status"),
      /! exec: laptop no-such-program fails since .*, 2 times in a row: The command could/,
    );
  });

  it("[HB9] [HB10] a page of this machine, and an unknown machine, stop the heartbeat", async () => {
    const urls: string[] = [];
    const server = createServer((request, response) => {
      urls.push(request.url ?? "");
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      await use(`http_changed: http://127.0.0.1:${port}/x`);
      assert.match(
        (await machine.gsv(["heartbeat", "run"])).stderr,
        /nothing was run: .* is an address of this machine or of a local network/,
      );
      assert.match(await machine.ok("heartbeat", "status"), /! `http_changed: http:\/\/127\.0\.0\.1/);
      assert.deepEqual(urls, []);
    } finally {
      server.close();
    }
    await use("exec: desktop true");
    assert.match((await machine.gsv(["heartbeat", "run"])).stderr, /names the machine desktop, which this gateway does not know/);
  });
});
