/** Heartbeats with the built program and a real gateway: no model is asked when nothing is to be done, and an answer is there once. */
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type FakeModel, Machine, startFakeModel, until } from "./support.ts";

const MAIN = "agent:main:main";
interface State {
  readonly everyMs?: number;
  readonly lastStatus?: string;
  readonly runs: number;
  readonly skipped: Readonly<Record<string, number>>;
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

  before(async () => {
    fake = await startFakeModel();
    await machine.up();
    await machine.useModel(fake);
  });
  after(async () => {
    await machine.end();
    await fake.close();
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
