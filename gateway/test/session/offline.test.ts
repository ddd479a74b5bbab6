/** Calls that wait for a machine that is not connected, in a real object that is evicted at each border. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { asCallId, asNodeId } from "../../../protocol/gen/types.ts";
import { newSession, onNode, says, Stage, type TestSession, until, value } from "./support.ts";
import { evict } from "../support/evict.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});
const lap = (online: boolean) => ({ nodeId: asNodeId("lap"), online, hostCapabilities: [], toolCapabilities: {}, tools: ["Bash"] });
function leave(on: Stage): void {
  on.away.add("lap");
  on.tools = [{ ...onNode("lap", "Bash"), isAway: true }];
  on.nodes = [lap(false)];
}
/** The machine is back, and the gateway has not told the session. */
function connect(on: Stage): void {
  on.away.delete("lap");
  on.tools = [onNode("lap", "Bash")];
  on.nodes = [lap(true)];
}
const told = (s: TestSession): Promise<unknown> => s.port.nodeChanged({ nodeId: "lap", online: true, calls: [] });
async function waiting(wait = "2h"): Promise<{ on: Stage; s: TestSession }> {
  const on = new Stage().open();
  leave(on);
  const s = newSession({ isOwnersSession: true });
  await s.send("a");
  (await on.call(0)).answer(says("", [{ name: "lap__Bash", arguments: { command: "ls", wait } }]));
  await until("the report", () => on.waits.at(-1)?.calls[0]);
  expect(value(await s.port.stats()).state).toBe("acting");
  return { on, s };
}
async function finish({ on, s }: { on: Stage; s: TestSession }): Promise<void> {
  await s.port.toolResult("lap", { callId: asCallId(on.dispatches[0]?.callId ?? ""), outcome: "ok", result: "file.txt" });
  (await on.call(1)).answer(says("done"));
  await on.ended("run-a");
  expect(new Set(on.dispatches.map(({ callId }) => callId)).size).toBe(1);
}

describe("a call that waits", () => {
  it("[OM1] [OM2] [OM5] [OM9] is told to the gateway and to everyone who asks; the machine gets it without `wait` when it is back", async () => {
    const both = await waiting();
    const { on, s } = both;
    const [call] = on.waits.at(-1)?.calls ?? [];
    expect(call).toMatchObject({ nodeId: "lap", tool: "lap__Bash", expiresAt: (call?.since ?? 0) + 7_200_000 });
    const machines = [{ nodeId: "lap", tool: "lap__Bash", since: call?.since, until: call?.expiresAt }];
    expect(value(await s.port.stats()).machines).toEqual(machines);
    expect(value(await s.port.get()).machines).toEqual(machines);
    expect(value(await s.port.story({})).machines).toEqual(machines);
    expect(await s.port.runEnd("run-a")).toMatchObject({ state: "running", machines });
    expect(on.dispatches).toEqual([]);
    connect(on);
    await told(s);
    expect(await until("the call", () => on.dispatches[0])).toMatchObject({ tool: "Bash", args: { command: "ls" } });
    await finish(both);
    await until("the last report", () => on.waits.at(-1)?.calls.length === 0);
    expect(value(await s.port.stats()).machines).toBeUndefined();
  });
  it("[OM4] [OM5] [P12] an eviction while it waits: it asks again, and finds the machine that came back meanwhile", async () => {
    const both = await waiting();
    const { on, s } = both;
    await evict(s.stub);
    connect(on);
    await s.port.resume();
    await until("the call", () => on.dispatches.length > 0);
    await finish(both);
    expect(on.dispatches).toHaveLength(1);
  });
  it("[OM4] [P6] [P12] an eviction after the machine was back, and one after the hand-over: one call", async () => {
    const both = await waiting();
    const { on, s } = both;
    connect(on);
    await told(s);
    await until("the call", () => on.dispatches.length > 0);
    await evict(s.stub);
    await s.port.resume();
    await until("the call again, under its id", () => on.dispatches.length === 2);
    await told(s);
    await finish(both);
  });
  it("[OM3] [PO9] runs under the policy of that moment: what a rule denies now never reaches the machine", async () => {
    const { on, s } = await waiting();
    on.toolApproval = { rules: [{ id: "no", tool: "lap__*", decision: "deny" }] };
    connect(on);
    await told(s);
    const next = await on.call(1);
    expect(JSON.stringify(next.request.messages.at(-1))).toContain("Not run");
    expect(on.audits.filter(({ decision }) => decision === "denied")).toMatchObject([{ target: "lap__Bash" }]);
    next.answer(says("denied"));
    await on.ended("run-a");
    expect(on.dispatches).toEqual([]);
  });
  it("[OM3] [AU1] a machine that comes back once more while the denial is recorded adds no second entry", async () => {
    const { on, s } = await waiting();
    const stored = Promise.withResolvers<undefined>();
    const reports = on.waits.length;
    on.audited = () => stored.promise;
    on.toolApproval = { rules: [{ id: "no", tool: "lap__*", decision: "deny" }] };
    connect(on);
    await told(s);
    await until("the entry", () => on.audits.length > 0);
    await told(s);
    await until("the next report", () => on.waits.length > reports + 1);
    stored.resolve(undefined);
    (await on.call(1)).answer(says("denied"));
    await on.ended("run-a");
    await until("the last report", () => on.waits.at(-1)?.calls.length === 0);
    expect(on.audits.filter(({ decision }) => decision === "denied")).toHaveLength(1);
  });
  it("[OM3] [AP1] what a rule asks about now becomes a question, and runs after the answer", async () => {
    const both = await waiting();
    const { on, s } = both;
    on.toolApproval = { rules: [{ id: "all", tool: "*", decision: "ask" }] };
    connect(on);
    await told(s);
    const asked = await until("the question", () => on.approvals.at(-1)?.waiting[0]);
    expect(on.dispatches).toEqual([]);
    const { code, hash } = asked;
    expect(value(await s.port.answerApproval({ code, hash, answer: "allow", by: "client:me" }))).toMatchObject({ outcome: "allowed" });
    expect(await until("the call", () => on.dispatches[0])).toMatchObject({ args: { command: "ls" } });
    await finish(both);
  });
  it("[OM2] [OM6] the alarms of the sleeping session tell the owner, and end the wait", async () => {
    const { on, s } = await waiting("30m");
    const began = Date.now();
    vi.useFakeTimers({ toFake: ["Date"], now: began + LIMITS.leaseMs + 1_000 });
    const ring = async (ms: number): Promise<void> => {
      vi.setSystemTime(began + ms);
      await runDurableObjectAlarm(s.stub);
    };
    await ring(LIMITS.leaseMs + 1_000);
    await ring(LIMITS.nodeWaitToldMs + 1_000);
    const notes = on.news.flatMap(({ payload }) => ("kind" in payload && payload.kind === "note" ? [payload.text] : []));
    expect(notes).toHaveLength(1);
    expect(notes[0]).toMatch(/^lap is not connected\. lap__Bash waits for it, for 28 min \d+ s more\./);
    // Never so late that the session's clock takes it for an interruption.
    for (let ms = 120_000; ms < 1_800_000; ms += 50_000) await ring(ms);
    vi.setSystemTime(began + 1_800_000 + 2_000);
    const ringing = runDurableObjectAlarm(s.stub);
    const next = await on.call(1);
    expect(JSON.stringify(next.request.messages.at(-1))).toContain("did not connect within 30 min");
    next.answer(says("gave up"));
    await ringing;
    await on.ended("run-a");
    expect(on.dispatches).toEqual([]);
  });
  it("[OM2] [P14] /stop and a reset end it, and the gateway is told", async () => {
    for (const end of [
      (s: TestSession) => s.port.abort(undefined),
      (s: TestSession) => s.send("stop", "/stop"),
      (s: TestSession) => s.port.reset(),
      (s: TestSession) => s.port.hold(true),
    ]) {
      const { on, s } = await waiting();
      await end(s);
      await until("the last report", () => on.waits.at(-1)?.calls.length === 0);
      connect(on);
      await told(s);
      expect(await on.ended("run-a")).toBe("aborted");
      expect(on.dispatches).toEqual([]);
      vi.restoreAllMocks();
    }
  });
  it("[OM1] without `wait` it fails at once and says how to wait", async () => {
    const on = new Stage().open();
    leave(on);
    const s = newSession({ isOwnersSession: true });
    await s.send("a");
    (await on.call(0)).answer(says("", [{ name: "lap__Bash", arguments: { command: "ls" } }]));
    const next = await on.call(1);
    expect(JSON.stringify(next.request.messages.at(-1))).toContain("make the call again with `wait`");
    next.answer(says("done"));
    await on.ended("run-a");
    expect(on.waits).toEqual([]);
  });
});
