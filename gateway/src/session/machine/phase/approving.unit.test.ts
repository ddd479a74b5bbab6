/** Calls that wait for the owner's word. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Binding } from "../../../calls/approval.ts";
import { Bench, CALL, call, LAP, target } from "../../../../test/session/machine-bench.ts";
import type { AwaitingCall } from "../../../calls/open-call.ts";
import type { Answer, CallTarget, EventOf, ReplyCall } from "../event.ts";
import { LIMITS } from "../limits.ts";
import { isAwaiting } from "./questions.ts";

const ASK = { rule: "rule:no-rm", why: "It runs a program." };
const BINDING: Binding = { hash: "hash-0", argsHash: "args-0", policy: "p1" };
const SECOND = "ref0000000/r1/1/1";
const asked = (binding: Partial<Binding> = {}): ReplyCall => ({ ...call({ ask: ASK }), binding: { ...BINDING, ...binding } });
const waiting = (b: Bench): readonly AwaitingCall[] => (b.state.run.phase === "acting" ? b.state.run.calls.filter(isAwaiting) : []);
const code = (b: Bench, index = 0): string => waiting(b)[index]?.approval.code ?? assert.fail("no question waits");
function answer(b: Bench, more: Partial<EventOf<"ApprovalAnswered">> & { readonly code: string }): Answer | undefined {
  return b.apply({
    type: "ApprovalAnswered",
    answer: "allow",
    by: "client:me",
    current: { target: target({ ask: ASK }), binding: BINDING, args: {} },
    ...more,
  }).answer;
}
function paused(): Bench {
  const b = new Bench();
  b.say("a");
  b.reply("", [asked()]);
  return b;
}
const dispatches = (b: Bench): number => b.state.outbox.filter(({ type }) => type === "DispatchTool").length;

describe("a call that needs the owner's word", () => {
  test("[AP1] is not handed over; the other calls of the step go on, and the run sleeps until the question ends", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [asked(), call()]);
    assert.equal(dispatches(b), 1);
    assert.equal(b.effect("DispatchTool").callId, SECOND);
    b.result(SECOND, "two");
    assert.equal(dispatches(b), 0);
    assert.ok(b.state.run.phase === "acting");
    assert.equal(b.state.run.deadline, LIMITS.approvalMs);
    const [question] = waiting(b);
    assert.ok(question);
    const { approval } = question;
    assert.match(approval.code, /^[2-9A-Z]{5}$/);
    assert.deepEqual(
      { ...approval, code: "" },
      { ...ASK, ...BINDING, code: "", createdAt: 1_000_000, expiresAt: 1_000_000 + LIMITS.approvalMs },
    );
    assert.deepEqual(b.notices(), ["paused:"]);
  });
  test("[AP1] [G1] no report, node, restart or tick changes it while it waits", () => {
    const b = paused();
    const before = b.state;
    assert.deepEqual(b.result(CALL, "SECRET"), { type: "unknown" });
    for (const event of [
      { type: "NodeChanged", nodeId: "lap", online: false },
      { type: "NodeChanged", nodeId: "lap", online: true, calls: [] },
      { type: "ToolOffline", effectId: "r1/t1/d0.0", callId: CALL, first: true },
      { type: "ToolUncertain", effectId: "r1/t1/d0.0", callId: CALL },
      { type: "ToolSent", effectId: "r1/t1/d0.0", callId: CALL },
      { type: "Woke" },
      { type: "Tick", inFlight: [] },
    ] as const)
      b.apply(event);
    assert.deepEqual(b.state, before);
  });
  test("[AP2] [S13] without a binding it is refused: no one could know what is allowed", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call({ ask: ASK })]);
    assert.match(b.textOf(CALL), /^Not run: the question could not be asked/);
    assert.equal(dispatches(b), 0);
  });
  test("[AP2] codes are unique among the open questions of a conversation", () => {
    const b = new Bench();
    b.say("a");
    b.reply(
      "",
      Array.from({ length: LIMITS.approvalsOpen }, (_, index) => asked({ hash: `h${index}`, argsHash: `a${index}` })),
    );
    assert.equal(new Set(waiting(b).map(({ approval }) => approval.code)).size, LIMITS.approvalsOpen);
  });
});

describe("an answer", () => {
  test("[AP3] [P15] [K12] allow: the call is handed over once, and its time begins with the answer", () => {
    const b = paused();
    b.now = 600_000;
    assert.deepEqual(answer(b, { code: code(b) }), { type: "approval", ended: "allowed", by: "client:me" });
    assert.equal(dispatches(b), 1);
    assert.ok(b.state.run.phase === "acting");
    assert.deepEqual([b.state.run.deadline, b.state.run.waitedMs, b.state.run.waitingSince], [660_000, 600_000, undefined]);
    b.result(CALL, "done");
    assert.equal(b.state.run.phase, "thinking");
  });
  test("[AP3] [P15] the first answer counts, once; a later one gets the same result", () => {
    const b = paused();
    const first = code(b);
    const taken = answer(b, { code: first, answer: "deny", word: "use git instead" });
    assert.deepEqual(taken, { type: "approval", ended: "denied", by: "client:me" });
    assert.equal(b.resultOf(CALL).reason, "approval.denied");
    assert.match(b.textOf(CALL), /^Not run: the owner denied lap__Bash\. The owner wrote: "use git instead"\./);
    const after = b.state;
    const { wall } = after.clock;
    b.now = 60_000;
    assert.deepEqual(answer(b, { code: first, by: "client:other" }), { ...taken, before: wall });
    assert.deepEqual(b.state, after);
    assert.equal(dispatches(b), 0);
  });
  test("[AP4] [P15] a wrong code, another question's hash, and an allowance without the current policy change nothing", () => {
    const b = paused();
    const before = b.state;
    assert.deepEqual(answer(b, { code: "ZZZZZ" }), { type: "unknown" });
    assert.deepEqual(answer(b, { code: code(b), hash: "hash-9" }), { type: "unknown" });
    const { current: _none, ...bare } = { current: 0, type: "ApprovalAnswered", code: code(b), answer: "allow", by: "x" } as const;
    assert.deepEqual(b.apply(bare).answer, { type: "unknown" });
    assert.deepEqual(b.state, before);
  });
  test("[AP5] [P15] no one answers: a denial that is seen, and an answer that comes later changes nothing", () => {
    const b = paused();
    const first = code(b);
    b.now = LIMITS.approvalMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).reason, "approval.expired");
    assert.deepEqual(answer(b, { code: first }), { type: "approval", ended: "expired", before: b.state.clock.wall });
    assert.equal(dispatches(b), 0);
  });
  test("[AP6] [S13] after a change of the policy an allowance is void: the call is asked about again, with a new code", () => {
    const b = paused();
    const first = code(b);
    const current = {
      target: target({ ask: { ...ASK, why: "The rule is new." } }),
      binding: { ...BINDING, hash: "hash-1", policy: "p2" },
      args: { command: "ls" },
    };
    const taken = answer(b, { code: first, current });
    const second = code(b);
    assert.deepEqual(taken, { type: "approval", ended: "asked_again", code: second });
    assert.notEqual(second, first);
    assert.equal(dispatches(b), 0);
    assert.deepEqual(answer(b, { code: first, current }), { ...taken, before: b.state.clock.wall });
    assert.deepEqual(answer(b, { code: second, current }), { type: "approval", ended: "allowed", by: "client:me" });
    assert.equal(dispatches(b), 1);
  });
  test("[AP6] a policy that denies now, and a machine that is gone, close the call; a denial always holds", () => {
    const gone: CallTarget = { kind: "none", reason: "node.offline", message: "The machine lap is not connected." };
    const b = paused();
    assert.deepEqual(answer(b, { code: code(b), current: { target: gone, binding: BINDING, args: {} } }), {
      type: "approval",
      ended: "void",
      by: "client:me",
      why: "The machine lap is not connected.",
    });
    assert.equal(b.resultOf(CALL).reason, "node.offline");
    const c = paused();
    const other = { target: target({ nodeId: "other" }), binding: { ...BINDING, hash: "hash-2" }, args: {} };
    assert.deepEqual(answer(c, { code: code(c), current: other }), {
      type: "approval",
      ended: "void",
      by: "client:me",
      why: "Not run: lap__Bash is another tool now. Make the call again.",
    });
    assert.equal(dispatches(c), 0);
    const d = paused();
    assert.equal(answer(d, { code: code(d), answer: "deny", current: { target: gone, binding: BINDING, args: {} } })?.type, "approval");
    assert.equal(d.resultOf(CALL).reason, "approval.denied");
  });
  test("[AP6] the call is handed over as the machine is now, not as it was when it was asked about", () => {
    const b = paused();
    answer(b, { code: code(b), current: { target: target({ ask: ASK, ledger: false }), binding: BINDING, args: {} } });
    const [open] = b.state.run.phase === "acting" ? b.state.run.calls : [];
    assert.equal(open?.status, "planned");
    assert.equal(b.effect("DispatchTool").repeatable, false);
  });
});

describe("what follows from an answer", () => {
  const OFFER = {
    scope: { agentId: "main", tool: "Bash", nodeId: "lap", what: { kind: "commands", sandbox: "off", folder: "", commands: [] } },
  } as const;
  const withOffer = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("", [{ ...call({ ask: { ...ASK, offer: OFFER } }), binding: BINDING }]);
    return b;
  };
  test("[GR1] a grant is recorded only where one was offered and chosen", () => {
    const recorded = (b: Bench, choice?: "1h") => {
      answer(b, { code: code(b), ...(choice ? { choice } : {}) });
      return b.state.questions?.map(({ choice: taken }) => taken);
    };
    assert.deepEqual(recorded(withOffer(), "1h"), ["1h"]);
    assert.deepEqual(recorded(withOffer()), [undefined]);
    assert.deepEqual(recorded(paused(), "1h"), [undefined]);
  });
  test("[AP6] asked again unless policy, arguments and machine are those of the question; the new question is shown", () => {
    for (const current of [
      { target: target({ ask: ASK }), binding: { ...BINDING, policy: "p2" }, args: {} },
      { target: target({ ask: ASK }), binding: { ...BINDING, hash: "hash-2" }, args: {} },
      { target: target({ ask: ASK, nodeId: "other" }), binding: BINDING, args: {} },
    ]) {
      const b = paused();
      const step = b.apply({ type: "ApprovalAnswered", code: code(b), answer: "allow", by: "x", current });
      assert.deepEqual(step.answer, { type: "approval", ended: "asked_again", code: code(b) });
      assert.deepEqual(step.transitions, ["approvalAskedAgain"]);
      assert.deepEqual(b.notices(), ["paused:", "paused:"]);
    }
  });
  test("[AP8] the last denial is a transition of its own", () => {
    const b = new Bench();
    b.say("a");
    for (let times = 1; times < LIMITS.approvalDenials; times++) {
      b.reply("", [asked({ hash: `h${times}` })]);
      assert.equal(answer(b, { code: code(b), answer: "deny" })?.type, "approval");
    }
    b.reply("", [asked({ hash: "last" })]);
    const step = b.apply({ type: "ApprovalAnswered", code: code(b), answer: "deny", by: "x" });
    assert.deepEqual(step.transitions, ["approvalDenied", "deniedTooOften", "nothingWaits"]);
  });
});

test("a hand-over has what allowed the call, and the state of the file that the owner has seen", () => {
  const handedOver = (more: object) => {
    const b = new Bench();
    b.say("a");
    const native = { kind: "native", tool: "gsv__WriteFile", idempotent: false, timeoutMs: 1, deadlineMs: 1, ...more } as const;
    b.reply("", [{ providerId: "x", name: "gsv__WriteFile", arguments: {}, target: native }]);
    const { rule, expect } = b.effect("DispatchTool");
    return { rule, expect, names: ["rule", "expect"].filter((name) => name in b.effect("DispatchTool")) };
  };
  assert.deepEqual(handedOver({ rule: "mode:auto", expect: "sha" }), { rule: "mode:auto", expect: "sha", names: ["rule", "expect"] });
  assert.deepEqual(handedOver({}).names, []);
});

describe("questions that end with their run", () => {
  for (const event of [{ type: "Abort" }, { type: "Reset" }] as const)
    test(`[AP7] [R3] ${event.type}: the call is closed, no machine is told to stop it, and a late answer changes nothing`, () => {
      const b = paused();
      const first = code(b);
      b.apply(event);
      assert.equal(b.resultOf(CALL).outcome, "cancelled");
      assert.ok(b.state.outbox.every(({ type }) => type !== "CancelTool"));
      assert.deepEqual(answer(b, { code: first }), { type: "approval", ended: "withdrawn", before: b.state.clock.wall });
      assert.equal(dispatches(b), 0);
      assert.deepEqual(b.apply({ type: "ToolResult", callId: CALL, from: LAP, content: [], outcome: "ok" }).answer, { type: "duplicate" });
    });
  test("[AP8] the same call denied three times ends the run with a sentence", () => {
    const b = new Bench();
    b.say("a");
    for (let times = 1; times <= LIMITS.approvalDenials; times++) {
      b.reply("", [asked({ hash: `h${times}` }), call()]);
      answer(b, { code: code(b), answer: "deny" });
      if (times < LIMITS.approvalDenials) b.result(`ref0000000/r1/${times}/1`, "two");
    }
    assert.deepEqual(b.notices().slice(-1), ["error:approval.repeated"]);
    assert.equal(b.resultOf("ref0000000/r1/3/1").outcome, "cancelled");
  });
  test("[AP8] more than 20 questions at once end the run, and nothing is run", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [...Array.from({ length: LIMITS.approvalsOpen + 1 }, () => asked()), call()]);
    assert.deepEqual(b.notices(), ["error:approval.too_many"]);
    assert.equal(dispatches(b), 0);
  });
  test("[AP9] each change is reported to the gateway, and one report is open at most", () => {
    const b = paused();
    const first = b.state.outbox.find(({ type }) => type === "ReportApprovals");
    answer(b, { code: code(b) });
    const reports = b.state.outbox.filter(({ type }) => type === "ReportApprovals");
    assert.deepEqual([first?.id, reports.map(({ id }) => id)], ["approvals/1", ["approvals/2"]]);
  });
  test("[AP9] a step with several questions makes one report", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [asked({ hash: "h1", argsHash: "a1" }), asked({ hash: "h2", argsHash: "a2" })]);
    const reports = () => b.state.outbox.flatMap((effect) => (effect.type === "ReportApprovals" ? [effect.revision] : []));
    assert.deepEqual([b.state.approvalRevision, reports()], [1, [1]]);
    answer(b, { code: code(b), answer: "deny" });
    assert.deepEqual([b.state.approvalRevision, reports()], [2, [2]]);
  });
  test("[AP1] [R1] the time in which the owner is waited for does not count as the run's", () => {
    const b = paused();
    b.now = LIMITS.approvalMs - 1;
    answer(b, { code: code(b), answer: "deny" });
    assert.equal(b.state.run.phase, "thinking");
    assert.equal(b.state.run.phase === "thinking" && b.state.run.waitedMs, LIMITS.approvalMs - 1);
  });
});

describe("[AP13] [S14] where a question is sent", () => {
  const peer = { kind: "dm", id: "anna" } as const;
  const sent = (role: "owner" | "guest", kind: "dm" | "group"): readonly string[] => {
    const b = new Bench();
    const route = { channel: "test", accountId: "default", peer: { ...peer, kind } };
    b.say("a", { origin: { kind: "channel", channel: "test", accountId: "default", senderId: "anna", role }, reply: route });
    b.reply("", [asked()]);
    return b.state.outbox.flatMap((effect) => (effect.type === "Reply" ? [effect.deliveryId] : []));
  };
  test("to the owner's own direct chat, and to no guest and no group", () => {
    assert.equal(sent("owner", "dm").length, 1);
    assert.match(sent("owner", "dm")[0] ?? "", /^ref0000000\/a\d+$/);
    assert.deepEqual([sent("guest", "dm"), sent("owner", "group"), sent("guest", "group")], [[], [], []]);
  });
  test("[AP10] with everything that the call will do, where, and how to answer", () => {
    const b = paused();
    const row = b.log.find((candidate) => candidate.kind === "notice" && candidate.notice === "paused");
    const text = row?.kind === "notice" ? row.text : "";
    for (const part of ["lap__Bash on lap needs your word. It runs a program.", "| ls", `allow ${code(b)}`, `deny ${code(b)}`])
      assert.ok(text.includes(part), text);
  });
});
