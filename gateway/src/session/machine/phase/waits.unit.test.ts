/** Calls that wait for their machines. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Binding } from "../../../calls/approval.ts";
import { isAwaitingNode, type WaitingCall } from "../../../calls/open-call.ts";
import { Bench, CALL, call, target } from "../../../../test/session/machine-bench.ts";
import type { ReplyRoute } from "../../../ports/session.ts";
import type { EffectOf } from "../effect.ts";
import type { CallTarget, LookedCall, ReplyCall } from "../event.ts";
import { LIMITS } from "../limits.ts";
import type { Step } from "../reduce.ts";
import { isAwaiting } from "./questions.ts";

const HOUR = 3_600_000;
const ASK = { rule: "rule:no-rm", why: "It runs a program." };
const BINDING: Binding = { hash: "hash-0", argsHash: "args-0", policy: "p1" };
const SECOND = "ref0000000/r1/1/1";
type NodeTarget = Extract<CallTarget, { readonly kind: "node" }>;
const node = (more: Partial<NodeTarget> = {}): CallTarget => ({ ...(target() as NodeTarget), waitMs: HOUR, ...more });
const away = (more: Partial<NodeTarget> = {}): ReplyCall => ({ ...call(), target: node({ isAway: true, ...more }) });
const waiting = (b: Bench): readonly WaitingCall[] => (b.state.run.phase === "acting" ? b.state.run.calls.filter(isAwaitingNode) : []);
const report = (b: Bench): EffectOf<"AwaitNodes"> | undefined =>
  b.state.outbox.find((effect): effect is EffectOf<"AwaitNodes"> => effect.type === "AwaitNodes");
const dispatches = (b: Bench): number => b.state.outbox.filter(({ type }) => type === "DispatchTool").length;
const looked = (b: Bench, current: LookedCall["current"] | CallTarget, effectId = report(b)?.id ?? assert.fail("no report")): Step =>
  b.apply({
    type: "NodesLooked",
    effectId,
    calls: [{ callId: CALL, ...(current === undefined ? {} : { current: "binding" in current ? current : decided(current) }) }],
  });
const decided = (target: CallTarget): NonNullable<LookedCall["current"]> => ({ target, binding: BINDING, args: { command: "ls" } });
const back = (b: Bench): Step => b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [] });
const OWNER_DM: ReplyRoute = { channel: "sim", accountId: "default", peer: { kind: "dm", id: "anna" } };
function waits(more: Partial<NodeTarget> = {}, others: readonly ReplyCall[] = []): Bench {
  const b = new Bench();
  b.say("a");
  b.reply("", [away(more), ...others]);
  return b;
}

describe("the wait", () => {
  test("[OM2] [OM5] nothing is handed over; the gateway is told, and the other calls of the step go on", () => {
    const b = waits({}, [call()]);
    assert.equal(b.effect("DispatchTool").callId, SECOND);
    const [held] = waiting(b);
    assert.deepEqual([held?.callId, held?.since, held?.expiresAt], [CALL, 1_000_000, 1_000_000 + HOUR]);
    assert.equal(report(b)?.revision, 1);
    b.result(SECOND, "two");
    assert.equal(b.state.run.phase, "acting");
    assert.equal(dispatches(b), 0);
  });
  test("[OM2] [G1] no report, lost link, restart or tick changes it while it waits", () => {
    const b = waits();
    const before = b.state;
    assert.deepEqual(b.result(CALL, "SECRET"), { type: "unknown" });
    for (const event of [
      { type: "NodeChanged", nodeId: "lap", online: false },
      { type: "NodeChanged", nodeId: "old", online: true, calls: [] },
      { type: "ToolOffline", effectId: "r1/t1/d0.0", callId: CALL, first: true },
      { type: "ToolUncertain", effectId: "r1/t1/d0.0", callId: CALL },
      { type: "ToolSent", effectId: "r1/t1/d0.0", callId: CALL },
      { type: "Woke" },
      { type: "Tick", inFlight: [] },
    ] as const)
      b.apply(event);
    assert.deepEqual(b.state, before);
  });
  test("[OM2] at the end of its time it fails with how long it has waited, and the gateway is told that nothing waits", () => {
    const b = waits();
    b.now = LIMITS.nodeWaitToldMs;
    b.apply({ type: "Tick", inFlight: [] });
    b.now = HOUR;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).reason, "node.offline");
    assert.match(b.textOf(CALL), /^The machine lap did not connect within 1 h, so lap__Bash was not run\./);
    assert.equal(b.state.run.phase, "thinking");
    const last = report(b);
    assert.equal(last?.revision, 2);
    b.apply({ type: "EffectDone", effectId: last?.id ?? "" });
    assert.equal(report(b), undefined);
  });
  test("[OM2] [OM7] the wait is not the run's time", () => {
    const b = waits();
    b.now = HOUR - 1;
    looked(b, node());
    b.result(CALL, "done");
    assert.ok(b.state.run.phase === "thinking");
    assert.equal(b.state.run.waitedMs, HOUR - 1);
  });
  test("[OM2] [P14] /stop ends it, no machine is told, and what comes later finds nothing", () => {
    const b = waits();
    const { id } = report(b) ?? assert.fail();
    b.apply({ type: "Abort" });
    assert.equal(b.resultOf(CALL).reason, "tool.cancelled");
    assert.match(b.textOf(CALL), /^Not run: the run ended before lap was connected\. Stopped by the user\./);
    assert.equal(b.state.outbox.filter(({ type }) => type === "CancelTool").length, 0);
    looked(b, node(), id);
    assert.equal(dispatches(b), 0);
    assert.equal(report(b)?.revision, 2);
  });
  test("[ST1] [OM2] the stop of everything ends it", () => {
    const b = waits();
    b.apply({ type: "Held", held: true });
    assert.equal(b.resultOf(CALL).reason, "tool.cancelled");
    assert.equal(b.state.run.phase, "idle");
  });
  test("[OM3] [TA1] it keeps the label of the moment at which it began to wait", () => {
    const b = new Bench();
    b.say("a", { taint: { label: "world", source: "a quote" } });
    b.reply("", [away()]);
    b.apply({ type: "Trusted", text: "trusted" });
    assert.equal(b.state.taint, undefined);
    assert.equal(waiting(b)[0]?.heard?.label, "world");
  });
  test("[OM5] a call that the gateway does not keep fails", () => {
    const b = waits();
    looked(b, undefined);
    assert.equal(b.resultOf(CALL).reason, "node.offline");
    assert.match(b.textOf(CALL), /too many conversations wait/);
  });
  test("[OM4] a machine that is gone at the first hand-over lets a call wait that may; a repeated hand-over does not", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [{ ...call(), target: node() }, call()]);
    b.apply({ type: "ToolOffline", effectId: "r1/t1/d0.0", callId: CALL, first: true });
    b.apply({ type: "ToolOffline", effectId: "r1/t1/d1.0", callId: SECOND, first: true });
    assert.deepEqual(
      waiting(b).map(({ callId, deadline }) => [callId, deadline]),
      [[CALL, HOUR]],
    );
    assert.equal(b.resultOf(SECOND).reason, "node.offline");
    const again = new Bench();
    again.say("a");
    again.reply("", [{ ...call(), target: node() }]);
    again.apply({ type: "ToolOffline", effectId: "r1/t1/d0.0", callId: CALL, first: false });
    assert.deepEqual(waiting(again), []);
  });
});

describe("[OM3] the machine is back", () => {
  test("the gateway's word opens a new report, which alone can end the wait; an allowed call is handed over once", () => {
    const b = waits();
    const first = report(b)?.id;
    back(b);
    const second = report(b)?.id;
    assert.notEqual(second, first);
    looked(b, node(), first);
    assert.equal(dispatches(b), 0);
    b.now = 60_000;
    looked(b, node(), second);
    assert.equal(dispatches(b), 1);
    assert.ok(b.state.run.phase === "acting");
    assert.equal(b.state.run.deadline, 60_000 + 60_000);
    looked(b, node(), second);
    assert.equal(dispatches(b), 1);
    b.result(CALL, "done");
    assert.equal(b.textOf(CALL), "done");
  });
  test("what the policy denies now is closed with its reason", () => {
    const b = waits();
    looked(b, { kind: "none", reason: "policy.denied", message: "Not run: a rule denies it.", rule: "r" });
    assert.equal(b.resultOf(CALL).reason, "policy.denied");
    assert.equal(b.textOf(CALL), "Not run: a rule denies it.");
    assert.equal(b.state.run.phase, "thinking");
  });
  test("another machine under this name gets nothing", () => {
    const b = waits();
    looked(b, node({ nodeId: "other" }));
    assert.equal(b.resultOf(CALL).reason, "tool.unknown");
    assert.equal(dispatches(b), 0);
  });
  test("what the policy asks about becomes a question, which is answered like any other", () => {
    const b = waits();
    looked(b, node({ ask: ASK }));
    assert.deepEqual(b.notices(), ["paused:"]);
    assert.ok(b.state.run.phase === "acting");
    const [question] = b.state.run.calls.filter(isAwaiting);
    assert.ok(question);
    b.apply({
      type: "ApprovalAnswered",
      code: question.approval.code,
      answer: "allow",
      by: "client:me",
      current: { target: node({ ask: ASK }), binding: BINDING, args: {} },
    });
    assert.equal(dispatches(b), 1);
  });
  test("an answer of before the wait holds after it while nothing has changed; else the call is asked about again", () => {
    const allowed = (): Bench => {
      const b = new Bench();
      b.say("a");
      b.reply("", [{ ...call(), target: node({ ask: ASK }), binding: BINDING }]);
      const question = b.state.run.phase === "acting" ? b.state.run.calls.find(isAwaiting) : undefined;
      const { code } = question?.approval ?? assert.fail();
      b.apply({ type: "ApprovalAnswered", code, answer: "allow", by: "client:me", current: decided(node({ ask: ASK })) });
      b.apply({ type: "ToolOffline", effectId: "r1/t1/d0.0", callId: CALL, first: true });
      assert.equal(waiting(b).length, 1);
      return b;
    };
    const same = allowed();
    looked(same, node({ ask: ASK }));
    assert.match(same.effect("DispatchTool").rule ?? "", /^approval:/);
    const changed = allowed();
    looked(changed, { ...decided(node({ ask: ASK })), binding: { ...BINDING, policy: "p2" } });
    assert.equal(dispatches(changed), 0);
    assert.deepEqual(changed.notices(), ["paused:", "paused:"]);
  });
  test("[OM4] a machine that leaves before the hand-over lets the call wait for the rest of its time", () => {
    const b = waits();
    b.now = 600_000;
    looked(b, node());
    b.apply({ type: "ToolOffline", effectId: "r1/t1/d0.0", callId: CALL, first: true });
    assert.deepEqual(
      waiting(b).map(({ deadline }) => deadline),
      [HOUR],
    );
  });
});

describe("[OM6] the owner", () => {
  const tick = (b: Bench, now: number): Step => {
    b.now = now;
    return b.apply({ type: "Tick", inFlight: [] });
  };
  test("is told once after a minute, with the machine, the tool and the time that is left", () => {
    const b = waits({}, [away()]);
    assert.ok(b.state.run.phase === "acting");
    assert.equal(b.state.run.deadline, LIMITS.nodeWaitToldMs);
    tick(b, LIMITS.nodeWaitToldMs);
    tick(b, LIMITS.nodeWaitToldMs + 1);
    const notes = b.log.flatMap((row) => (row.kind === "notice" ? [row.text] : []));
    assert.deepEqual(notes, [
      "lap is not connected. lap__Bash waits for it, for 59 min more. Start `gsv node` on lap, or end the run with /stop.",
    ]);
    assert.ok(b.state.run.phase === "acting");
    assert.equal(b.state.run.deadline, HOUR);
  });
  test("is told in their direct chat when the run came from there, and in no group", () => {
    const replies = (role: "owner" | "guest", kind: "dm" | "group"): number => {
      const b = new Bench();
      const peer = { ...OWNER_DM.peer, kind };
      b.say("a", { origin: { kind: "channel", channel: "sim", accountId: "default", peer, role }, reply: { ...OWNER_DM, peer } });
      b.reply("", [away()]);
      tick(b, LIMITS.nodeWaitToldMs);
      return b.state.outbox.filter(({ type }) => type === "Reply").length;
    };
    assert.equal(replies("owner", "dm"), 1);
    assert.equal(replies("owner", "group"), 0);
    assert.equal(replies("guest", "dm"), 0);
  });
  test("is not told of a call whose time is over then", () => {
    for (const waitMs of [30_000, LIMITS.nodeWaitToldMs]) {
      const b = waits({ waitMs });
      tick(b, waitMs);
      assert.equal(b.resultOf(CALL).reason, "node.offline");
      assert.deepEqual(b.notices(), []);
    }
  });
});
