/** A state and a step in which one thing is wrong, for each invariant: a wrong state that is committed stays. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bench, CALL, call } from "../../../test/session/machine-bench.ts";
import type { Step } from "./draft.ts";
import type { Effect } from "./effect.ts";
import { checkState, checkStep, InvariantError } from "./invariants.ts";
import { CLOSED_CALLS, LIMITS, OUTBOX_EFFECTS } from "./limits.ts";
import type { LogRow } from "./log.ts";
import type { Acting, Archiving, ClosedCall, State } from "./state.ts";

const problemOf = (check: () => void): string => {
  try {
    check();
  } catch (error) {
    assert.ok(error instanceof InvariantError, String(error));
    return error.message;
  }
  return "none";
};
const inState = (state: State): string => problemOf(() => checkState(state));

const ask = (hash: string) => ({
  ...call({ ask: { rule: "r", why: "w" } }),
  binding: { hash, argsHash: hash, policy: "p" },
});
/** States as the machine makes them. */
const made = (work: (b: Bench) => void): State => {
  const b = new Bench();
  work(b);
  assert.equal(inState(b.state), "none");
  return b.state;
};
const idle = made((b) => {
  b.say("a");
  b.reply("one");
});
const thinking = made((b) => {
  b.say("a");
});
/** Two calls: one that may be handed over once, one that may be handed over again. */
const acting = made((b) => {
  b.say("a");
  b.reply("", [call({ ledger: false }), call()]);
});
const asking = made((b) => {
  b.say("a");
  b.reply("", [ask("h1"), ask("h2")]);
});
const resetting = made((b) => {
  b.say("a");
  b.reply("one");
  b.apply({ type: "Reset" });
});
const summarizing = made((b) => {
  b.say("a");
  b.reply("one");
  b.say("b");
  b.full(b.plan(3));
});
const actingWith = (more: Partial<Acting>, state = acting): State => {
  assert.ok(state.run.phase === "acting");
  return { ...state, run: { ...state.run, ...more } };
};
const archivingWith = (more: Partial<Archiving>, state: State): State => {
  assert.ok(state.run.phase === "archiving");
  return { ...state, run: { ...state.run, ...more } };
};
const callsOf = ({ run }: State): Acting["calls"] => (run.phase === "acting" ? run.calls : []);
const withEffects = (state: State, ...effects: readonly Effect[]): State => ({ ...state, outbox: [...state.outbox, ...effects] });
const without = (state: State, type: Effect["type"]): State => ({
  ...state,
  outbox: state.outbox.filter((effect) => effect.type !== type),
});
const cancels = (count: number): Effect[] =>
  Array.from({ length: count }, (_, at) => ({ type: "CancelTool", id: `c${at}`, nodeId: "lap", callIds: [], reason: "" }));
const changed = (state: State, index: number, more: object): State =>
  actingWith({ calls: callsOf(state).map((each, at) => (at === index ? { ...each, ...more } : each)) as Acting["calls"] }, state);
const report = (id: string): Effect => ({ type: "ReportApprovals", id, revision: 1 });
const closed = (count: number): ClosedCall[] =>
  Array.from({ length: count }, (_, at) => ({ callId: `x${at}`, target: { kind: "native" }, name: "n", runId: "r", outcome: "unknown" }));
const room = OUTBOX_EFFECTS - idle.outbox.length;
const queued = (count: number, bytes: number): State => ({ ...thinking, queue: { count, bytes } });

describe("a state", () => {
  for (const [what, state, problem] of [
    ["two effects with one id", withEffects(idle, ...cancels(1), ...cancels(1)), "two open effects have the same id"],
    ["as many effects as fit", withEffects(idle, ...cancels(room)), "none"],
    ["more effects than fit", withEffects(idle, ...cancels(room + 1)), `${OUTBOX_EFFECTS + 1} effects are open at once`],
    ["thinking without a model call", without(thinking, "CallModel"), "thinking with 0 model calls"],
    ["idle with a model call", withEffects(idle, { type: "CallModel", id: "r1/t1/m0", notBefore: 0 }), "idle with 1 model calls"],
    [
      "thinking about an earlier attempt",
      { ...thinking, run: { ...thinking.run, attempt: 1 } as State["run"] },
      "thinking about another call than the open one",
    ],
    ["archiving without an effect", without(resetting, "Archive"), "archiving with 0 archives"],
    ["idle with an archive", withEffects(idle, { type: "Archive", id: "a1/0", notBefore: 0 }), "idle with 1 archives"],
    ["archiving without its work", (({ work: _work, ...rest }) => rest)(resetting), "archiving without work on an archive"],
    ["idle with work", { ...idle, work: { summary: "", memories: "" } }, "idle with work on an archive"],
    ["an archive of an earlier attempt", archivingWith({ attempt: 1 }, resetting), "archiving something else than the open effect"],
    [
      "a summary in the stage of an archive",
      withEffects(without(resetting, "Archive"), { type: "Summarize", id: "a1/0", notBefore: 0 }),
      "archive with Summarize",
    ],
    [
      "an archive that begins later than the conversation",
      archivingWith({ from: 2, cursor: 2 }, resetting),
      "archiving rows that are not the beginning of the conversation",
    ],
    [
      "an archive of a row that is not there",
      archivingWith({ upto: resetting.nextSeq }, resetting),
      "archiving rows that are not the beginning of the conversation",
    ],
    ["a summary up to the cut", archivingWith({ cursor: 3 }, summarizing), "none"],
    ["a summary beyond the cut", archivingWith({ cursor: 4 }, summarizing), "summarising outside of what is archived"],
    ["a summary before the cut's beginning", archivingWith({ cursor: 0 }, summarizing), "summarising outside of what is archived"],
    ["an archive of too few", archivingWith({ count: 1 }, summarizing), "the archive and what stays are not the conversation"],
    ["a reset that keeps a message", archivingWith({ count: 1, kept: 1 }, resetting), "a reset that keeps something"],
    [
      "a reset behind which a run waits",
      archivingWith(summarizing.run.phase === "archiving" && summarizing.run.resume ? { resume: summarizing.run.resume } : {}, resetting),
      "a reset that keeps something",
    ],
    [
      "thinking with a hand-over",
      withEffects(thinking, ...acting.outbox.filter(({ type }) => type === "DispatchTool")),
      "thinking with open calls",
    ],
    ["acting without a call", actingWith({ calls: [], deadline: 1 }, without(acting, "DispatchTool")), "acting without a call"],
    [
      "more calls than a step may have",
      actingWith({ calls: Array.from({ length: LIMITS.toolCallsPerStep + 1 }, () => callsOf(acting)[0]) as Acting["calls"] }),
      `${LIMITS.toolCallsPerStep + 1} open calls`,
    ],
    ["two calls with one id", changed(acting, 1, { callId: CALL }), "two open calls have the same id"],
    ["a call without its hand-over", changed(acting, 0, { dispatch: 7 }), `the call ${CALL} is planned, and its effect is not`],
    [
      "a call that waits for the owner and is handed over",
      changed(acting, 0, { status: "awaiting_approval", approval: { code: "A" } }),
      `the call ${CALL} is awaiting_approval, and its effect is not`,
    ],
    [
      "a planned call that may be handed over again",
      changed(acting, 0, { ledger: true }),
      `the call ${CALL} may be handed over again, yet it is planned`,
    ],
    [
      "a native call that waits for its node",
      changed(acting, 1, { status: "in_grace", target: { kind: "native" } }),
      "the call ref0000000/r1/1/1 waits for a node that it does not have",
    ],
    [
      "a hand-over of no call",
      withEffects(acting, { ...acting.outbox.find(({ type }) => type === "DispatchTool"), id: "r1/t1/d9.0" } as Effect),
      "an effect without an open call",
    ],
    ["no deadline", actingWith({ deadline: Number.NaN }), "acting without a deadline"],
    ["two questions with one code", changed(asking, 1, { approval: { ...approvalOf(0) } }), "two questions have the same code"],
    [
      "more questions than are open at most",
      actingWith(
        {
          calls: Array.from({ length: LIMITS.approvalsOpen + 1 }, (_, index) => ({
            ...callsOf(asking)[0],
            index,
            callId: `c${index}`,
            approval: { ...approvalOf(0), code: `Q${index}` },
          })) as Acting["calls"],
        },
        asking,
      ),
      `${LIMITS.approvalsOpen + 1} questions are open`,
    ],
    ["a wait that is not counted", withoutWait(asking), "2 calls are held back, and the wait is not counted"],
    ["a wait without a question", actingWith({ waitingSince: 0 }), "0 calls are held back, and the wait is not counted"],
    ["idle while messages wait", { ...idle, queue: { count: 1, bytes: 5 } }, "idle while 1 messages wait"],
    ["held while messages wait", { ...idle, held: true, queue: { count: 1, bytes: 5 } }, "none"],
    [
      "idle while a compaction waits",
      { ...idle, afterRun: { kind: "compact", requestId: "x", cause: "asked" } },
      "idle while a compaction waits",
    ],
    ["held while a compaction waits", { ...idle, held: true, afterRun: { kind: "compact", requestId: "x", cause: "asked" } }, "none"],
    ["a full queue", queued(LIMITS.queueMessages, LIMITS.queueBytes), "none"],
    [
      "a queue with too many messages",
      queued(LIMITS.queueMessages + 1, 5),
      `the queue is ${LIMITS.queueMessages + 1} messages and 5 bytes`,
    ],
    ["a queue with too many bytes", queued(1, LIMITS.queueBytes + 1), `the queue is 1 messages and ${LIMITS.queueBytes + 1} bytes`],
    ["a queue with fewer than no messages", queued(-1, 5), "the queue is -1 messages and 5 bytes"],
    ["a queue with fewer than no bytes", queued(1, -5), "the queue is 1 messages and -5 bytes"],
    ["an empty queue with a size", queued(0, 5), "the queue's size and count differ"],
    ["two deliveries", withEffects(idle, { type: "Deliver", id: "deliver/9", upto: 9 }), "more than one delivery"],
    ["two reports of questions", withEffects(idle, report("approvals/8"), report("approvals/9")), "more than one report of questions"],
    ["one report of questions", withEffects(idle, report("approvals/9")), "none"],
    ["a conversation behind the log's end", { ...idle, contextFrom: idle.nextSeq + 1 }, "the log's numbers are out of order"],
    ["a conversation at the log's end", { ...idle, contextFrom: idle.nextSeq }, "none"],
    ["more delivered than there is", { ...idle, deliveredSeq: idle.nextSeq }, "the log's numbers are out of order"],
    ["everything delivered", { ...idle, deliveredSeq: idle.nextSeq - 1 }, "none"],
    ["fewer than no messages", { ...idle, messageCount: -1 }, "fewer than no messages"],
    ["as many closed calls as are remembered", { ...idle, closed: closed(CLOSED_CALLS) }, "none"],
    ["more closed calls than are remembered", { ...idle, closed: closed(CLOSED_CALLS + 1) }, "too many closed calls are remembered"],
  ] as const satisfies readonly (readonly [string, State, string])[])
    test(what, () => assert.equal(inState(state), problem));
});
function approvalOf(index: number): { readonly code: string } {
  const found = callsOf(asking)[index];
  assert.ok(found?.status === "awaiting_approval");
  return found.approval;
}
function withoutWait(state: State): State {
  assert.ok(state.run.phase === "acting");
  const { waitingSince: _since, ...run } = state.run;
  return { ...state, run };
}

describe("a step", () => {
  interface Taken {
    readonly before: State;
    readonly step: Step;
  }
  const taken = (prepare: (b: Bench) => void, act: (b: Bench) => void): Taken => {
    const b = new Bench();
    prepare(b);
    const before = b.state;
    act(b);
    assert.ok(b.last);
    assert.equal(
      problemOf(() => checkStep(before, { ...b.last } as Step)),
      "none",
    );
    return { before, step: b.last };
  };
  const of = ({ before, step }: Taken, more: Partial<Step>): string => problemOf(() => checkStep(before, { ...step, ...more }));
  const answered = taken(
    (b) => b.say("a"),
    (b) => b.reply("", [call(), call()]),
  );
  const first = taken(
    () => {},
    (b) => b.say("a"),
  );
  const result = taken(
    (b) => {
      b.say("a");
      b.reply("", [call(), call()]);
    },
    (b) => b.result(CALL, "one"),
  );
  const row = ({ step }: Taken): LogRow => step.append[0] ?? assert.fail("no row");

  test("numbers its rows without a gap", () => {
    assert.equal(of(first, { append: [{ ...row(first), seq: 2 }] }), "the row 2 should be 1");
    assert.equal(of(first, { state: { ...first.step.state, nextSeq: 3 } }), "the next number is wrong");
    assert.equal(of(first, { append: [], state: { ...first.step.state, messageCount: 0 } }), "the next number is wrong");
  });
  test("has the state of its rows", () => {
    const { state } = first.step;
    assert.equal(of(first, { state: { ...state, messageCount: 0 } }), "messages came or went without a row");
    assert.equal(
      problemOf(() => checkStep(state, { ...first.step, state, append: [{ ...row(first), seq: state.nextSeq }] })),
      "the next number is wrong",
    );
  });
  test("leaves those calls open that the log has open", () => {
    const missing = "the open calls are not those of the log";
    const state = answered.step.state;
    const [one, two] = callsOf(state);
    assert.ok(one && two);
    const half = { ...state, outbox: state.outbox.filter((effect) => effect.type !== "DispatchTool" || effect.callId === CALL) };
    assert.equal(of(answered, { state: actingWith({ calls: [one] }, half) }), missing);
    assert.equal(of(answered, { state: changed(state, 1, { callId: "other" }) }), missing);
  });
  test("delivers the events of its rows", () => {
    const { state } = answered.step;
    assert.equal(of(answered, { state: without(state, "Deliver") }), "events without a delivery");
    const early = withEffects(without(state, "Deliver"), { type: "Deliver", id: "deliver/1", upto: 1 });
    assert.equal(of(answered, { state: early }), "events without a delivery");
    // A user's message is no event.
    assert.ok(!first.step.state.outbox.some(({ type }) => type === "Deliver"));
  });
  test("has each call's result before the next message, once", () => {
    const between = { ...row(first), seq: result.before.nextSeq };
    const added = (rows: readonly LogRow[]): string => {
      const nextSeq = result.before.nextSeq + rows.length;
      const state = { ...result.step.state, nextSeq, messageCount: result.before.messageCount + rows.length };
      return of(result, { append: rows, state });
    };
    assert.equal(added([between]), "a user message between a call and its result");
    const again = { ...row(result), seq: result.before.nextSeq + 1 };
    assert.equal(added([row(result), again]), `a result for ${CALL}, which is not open`);
    const answer: LogRow = { ...row(answered), seq: result.before.nextSeq };
    assert.equal(added([answer]), "an answer before all results are there");
    assert.ok(answer.kind === "assistant");
    assert.equal(of(answered, { append: [{ ...answer, seq: 2, calls: [...answer.calls].slice(1) }] }), "calls and their blocks differ");
  });
  test("[TA2] keeps the conversation's label, and its rows are not above it", () => {
    const before: State = { ...idle, taint: { label: "world", source: "x" } };
    const step: Step = { ...answered.step, append: [], state: idle, cause: "Tick" };
    assert.equal(
      problemOf(() => checkStep(before, step)),
      "the label fell from world to owner",
    );
    assert.equal(
      problemOf(() => checkStep(before, { ...step, cause: "Trusted" })),
      "none",
    );
    assert.equal(
      problemOf(() => checkStep(before, { ...step, state: { ...idle, sessionId: "s2" } })),
      "none",
    );
    const heard: LogRow = { ...row(first), taint: "peer" } as LogRow;
    assert.equal(of(first, { append: [heard] }), "a row of peer in a conversation of owner");
    assert.equal(of(first, { append: [heard], state: { ...first.step.state, taint: { label: "peer", source: "x" } } }), "none");
  });
  test("has the text of what it adds to a daily file", () => {
    const memory: Effect = { type: "AppendMemory", id: "memory/1", date: "2026-03-01" };
    const kept = (text: string) => ({ effects: [memory], results: [{ op: "keep", callId: "memory/1", text }] as const });
    assert.equal(of(first, { effects: [memory] }), "memory/1 has no text");
    assert.equal(of(first, kept("")), "memory/1 has no text");
    assert.equal(of(first, kept("x")), "none");
  });
  describe("[P17] by which messages leave the conversation", () => {
    const without = "messages left the conversation without an archive";
    const said = taken(
      (b) => {
        b.say("a");
        b.reply("one");
      },
      (b) => b.apply({ type: "SettingsPatched", text: "x" }),
    );
    const gone = (contextFrom: number, messageCount: number) => ({ state: { ...said.step.state, contextFrom, messageCount } });
    test("has an archive, unless there were none", () => {
      assert.equal(of(said, gone(3, 0)), without);
      assert.equal(of(said, gone(3, 2)), without);
      const empty = { ...said, before: { ...said.before, messageCount: 0 } };
      assert.equal(of(empty, gone(3, 0)), "none");
      assert.equal(of(empty, gone(3, 1)), without);
    });
    const turned = taken(
      (b) => {
        b.say("a");
        b.reply("one");
        b.apply({ type: "Reset" });
        b.archive();
      },
      (b) => b.summarize(),
    );
    test("has an archive that was read back, with exactly those messages", () => {
      const { run } = turned.before;
      assert.ok(run.phase === "archiving" && run.archivedTo !== undefined);
      const { archivedTo: _key, ...unread } = run;
      assert.equal(of({ ...turned, before: { ...turned.before, run: unread } }, {}), "messages left before their archive was there");
      const { state } = turned.step;
      const other = "other messages left than those in the archive";
      assert.equal(of(turned, { state: { ...state, messageCount: state.messageCount + 1 } }), other);
      assert.equal(of(turned, { state: { ...state, contextFrom: state.contextFrom + 1 } }), other);
    });
  });
});
