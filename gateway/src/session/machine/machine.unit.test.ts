/** The machine's rules one by one, in the order of gateway/SPEC.md. Time, ids and chance are numbers here. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Usage } from "../../../../protocol/gen/types.ts";
import type { AssistantMessage } from "../../ports/messages.ts";
import type { SessionIdentity } from "../../ports/session.ts";
import type { ToolTarget } from "../../ports/tool-target.ts";
import type { Step } from "./draft.ts";
import type { EffectOf } from "./effect.ts";
import type { Answer, CallTarget, EventBody, ReplyCall, Stamp } from "./event.ts";
import { checkStep, InvariantError } from "./invariants.ts";
import { ARCHIVE_ATTEMPTS, LIMITS, SUMMARY_ATTEMPTS } from "./limits.ts";
import { isMessageRow, type LogRow, type MessageRow } from "./log.ts";
import { reduce } from "./reduce.ts";
import { type CutPlan, type IncomingMessage, newborn, type QueuedMessage, shownState, type State, type Thinking } from "./state.ts";
import { jsonBytes, textOf } from "./text.ts";

const IDENTITY: SessionIdentity = { key: "agent:main:main", ref: "ref0000000", agentId: "main", isOwnersSession: true };
const BUDGET = { steps: 50, ms: 1_800_000, costUsd: 1 };
const USAGE: Usage = { input: 10, output: 5, total: 15, costUsd: 0.01 };

/** A session with a log and a queue, as plain lists. */
class Bench {
  state: State = newborn({ identity: IDENTITY, sessionId: "s1", wall: 1_000_000 });
  readonly log: LogRow[] = [];
  readonly queue: QueuedMessage[] = [];
  readonly results = new Map<string, string>();
  now = 0;
  published = 0;
  jitter = 0.5;
  #ids = 0;
  #queued = 0;
  last: Step | undefined;

  apply(body: EventBody): Step {
    const stamp: Stamp = {
      now: this.now,
      wall: 1_000_000 + this.now,
      jitter: this.jitter,
      freshId: `id${++this.#ids}`,
      published: this.published,
      ...this.#front(),
      named: body.type === "Abort" ? this.queue.find((message) => message.incoming.runId === body.runId) : undefined,
    };
    const frozen = JSON.stringify(this.state);
    const step = reduce(this.state, { ...body, ...stamp });
    assert.equal(JSON.stringify(this.state), frozen, "the old state was changed in place");
    if (step.state !== this.state) checkStep(this.state, step);
    this.state = JSON.parse(JSON.stringify(step.state));
    this.log.push(...step.append);
    for (const op of step.queue) {
      if (op.op === "add") this.queue.push({ id: ++this.#queued, bytes: op.bytes, incoming: op.incoming });
      else
        this.queue.splice(
          this.queue.findIndex((message) => message.id === op.id),
          1,
        );
    }
    for (const op of step.results) {
      if (op.op === "keep") this.results.set(op.callId, op.text);
      else this.results.delete(op.callId);
    }
    this.last = step;
    return step;
  }
  /** What a store gives of its queue. */
  #front(): { readonly quiet: readonly QueuedMessage[]; readonly head: QueuedMessage | undefined } {
    const at = this.queue.findIndex(({ incoming }) => !incoming.quiet);
    return at === -1 ? { quiet: [...this.queue], head: undefined } : { quiet: this.queue.slice(0, at), head: this.queue[at] };
  }
  say(id: string, more: Partial<IncomingMessage> = {}): Answer | undefined {
    const incoming: IncomingMessage = {
      messageId: id,
      runId: `run-${id}`,
      origin: { kind: "client", clientId: "t" },
      message: { role: "user", content: `say ${id}`, timestamp: 0 },
      directives: {},
      ...more,
    };
    return this.apply({ type: "UserMessage", identity: IDENTITY, incoming, bytes: jsonBytes(incoming) }).answer;
  }
  effect<
    T extends
      | "CallModel"
      | "Archive"
      | "Summarize"
      | "AppendMemory"
      | "DeleteMedia"
      | "Deliver"
      | "DispatchTool"
      | "CancelTool"
      | "StoreResult",
  >(type: T): EffectOf<T> {
    const found = this.state.outbox.find((effect): effect is EffectOf<T> => effect.type === type);
    assert.ok(found, `no ${type} is open: ${JSON.stringify(this.state.outbox)}`);
    return found;
  }
  reply(
    text: string,
    calls: readonly ReplyCall[] = [],
    more: { usage?: Usage; budget?: typeof BUDGET; stopReason?: AssistantMessage["stopReason"] } = {},
  ): Step {
    const usage = more.usage ?? USAGE;
    const message: AssistantMessage = {
      role: "assistant",
      content: [
        ...(text === "" ? [] : [{ type: "text" as const, text }]),
        ...calls.map((call) => ({ type: "toolCall" as const, id: call.providerId, name: call.name, arguments: call.arguments })),
      ],
      api: "a",
      provider: "p",
      model: "m",
      usage,
      stopReason: more.stopReason ?? "stop",
      timestamp: 0,
    };
    return this.apply({
      type: "ModelReplied",
      effectId: this.effect("CallModel").id,
      message,
      calls,
      usage,
      budget: more.budget ?? BUDGET,
    });
  }
  fail(more: { retryable?: boolean; retryAfterMs?: number; models?: number; reason?: "model.overloaded" | "model.auth" } = {}): Step {
    return this.apply({
      type: "ModelFailed",
      effectId: this.effect("CallModel").id,
      error: { reason: more.reason ?? "model.overloaded", message: "The model is overloaded." },
      retryable: more.retryable ?? true,
      models: more.models ?? 1,
      streamed: false,
      budget: BUDGET,
      ...(more.retryAfterMs === undefined ? {} : { retryAfterMs: more.retryAfterMs }),
    });
  }
  result(callId: string, text: string, nodeId = "lap"): Answer | undefined {
    return this.apply({ type: "ToolResult", callId, from: { kind: "node", nodeId }, content: [{ type: "text", text }], outcome: "ok" })
      .answer;
  }
  /** The one that keeps all before that row. */
  plan(contextFrom: number, more: { task?: string } = {}): CutPlan {
    const messages = this.log.filter((row): row is MessageRow => isMessageRow(row) && row.seq >= this.state.contextFrom);
    const gone = messages.filter((row) => row.seq < contextFrom);
    return { contextFrom, count: gone.length, kept: messages.length - gone.length, firstAt: 1, lastAt: 2, ...more };
  }
  full(plan: CutPlan): Step {
    return this.apply({ type: "ContextFull", effectId: this.effect("CallModel").id, plan, budget: BUDGET });
  }
  summarize(more: { cursor?: number; summary?: string; memories?: string; usage?: Usage } = {}): Step {
    const { run } = this.state;
    assert.ok(run.phase === "archiving", `${run.phase} instead of archiving`);
    return this.apply({
      type: "Summarized",
      effectId: this.effect("Summarize").id,
      cursor: run.upto + 1,
      summary: "what was said",
      memories: "",
      day: { date: "2026-03-01", time: "14:30" },
      ...more,
    });
  }
  summaryFails(retryable = true): Step {
    const error = { reason: "model.overloaded", message: "The model is overloaded." } as const;
    return this.apply({ type: "SummarizeFailed", effectId: this.effect("Summarize").id, error, retryable });
  }
  archive(key = "k"): Step {
    const { run } = this.state;
    assert.ok(run.phase === "archiving", `${run.phase} instead of archiving`);
    return this.apply({ type: "Archived", effectId: this.effect("Archive").id, key, count: run.count });
  }
  thinking(): Thinking {
    const { run } = this.state;
    assert.ok(run.phase === "thinking", `${run.phase} instead of thinking`);
    return run;
  }
  notices(): string[] {
    return this.log.flatMap((row) => (row.kind === "notice" ? [`${row.notice}:${row.reason ?? ""}`] : []));
  }
  resultOf(callId: string): LogRow & { kind: "toolResult" } {
    const row = this.log.find(
      (candidate): candidate is LogRow & { kind: "toolResult" } => candidate.kind === "toolResult" && candidate.callId === callId,
    );
    assert.ok(row, `no result of ${callId}`);
    return row;
  }
  textOf(callId: string): string {
    return textOf(this.resultOf(callId).message.content);
  }
}
const target = (over: Partial<Extract<CallTarget, { kind: "node" }>> = {}): CallTarget => ({
  kind: "node",
  nodeId: "lap",
  tool: "Bash",
  ledger: true,
  idempotent: false,
  timeoutMs: 60_000,
  deadlineMs: 60_000,
  ...over,
});
const call = (over: Partial<Extract<CallTarget, { kind: "node" }>> = {}, name = "lap__Bash"): ReplyCall => ({
  providerId: "call_0",
  name,
  arguments: { command: "ls" },
  target: target(over),
});
const CALL = "ref0000000/r1/1/0";
const LAP: ToolTarget = { kind: "node", nodeId: "lap" };

describe("messages", () => {
  test("[P1] an idle session starts a run with the message, and says where it is in the log", () => {
    const b = new Bench();
    assert.deepEqual(b.say("a"), { type: "accepted", runId: "run-a", queued: false, seq: 1 });
    assert.equal(b.state.run.phase, "thinking");
    assert.equal(b.effect("CallModel").id, "r1/t1/m0");
  });
  test("[P3] [C6] messages that come during a run wait in order and each gets a run of its own", () => {
    const b = new Bench();
    b.say("a");
    assert.deepEqual(b.say("b"), { type: "accepted", runId: "run-b", queued: true });
    b.say("c");
    b.reply("one");
    b.reply("two");
    b.reply("three");
    assert.deepEqual(
      b.log.map((row) => (row.kind === "user" ? row.messageId : row.kind)),
      ["a", "assistant", "b", "assistant", "c", "assistant"],
    );
    assert.equal(b.state.run.phase, "idle");
  });
  test("[P2] what is only to be known enters the log in its place, and no run answers it", () => {
    const b = new Bench();
    assert.deepEqual(b.say("late", { quiet: true }), { type: "accepted", runId: "run-late", queued: false, seq: 1 });
    assert.deepEqual([b.state.run, b.state.runCount], [{ phase: "idle" }, 0]);
    b.say("a");
    assert.deepEqual(b.say("q1", { quiet: true }), { type: "accepted", runId: "run-q1", queued: true });
    b.say("q2", { quiet: true });
    b.say("b");
    b.say("q3", { quiet: true });
    assert.deepEqual(b.apply({ type: "Abort", runId: "run-q1" }).answer, { type: "aborted", wasRunning: false, cancelled: 0 });
    b.reply("one");
    b.reply("two");
    assert.deepEqual(b.state.run, { phase: "idle" });
    assert.deepEqual(
      b.log.map((row) => (row.kind === "user" ? row.messageId : row.kind)),
      ["late", "a", "assistant", "q1", "q2", "b", "assistant", "q3"],
    );
    assert.deepEqual([b.queue.length, b.state.queue, b.state.runCount], [0, { count: 0, bytes: 0 }, 2]);
  });
  test("[P4] [P19] over the limit a message is refused before it is accepted, at exactly the limit not", () => {
    const b = new Bench();
    b.say("first");
    for (let n = 0; n < LIMITS.queueMessages; n++) assert.equal(b.say(`m${n}`)?.type, "accepted");
    const refused = b.say("over");
    assert.equal(refused?.type === "refused" && refused.error.reason, "session.queue_full");
    assert.equal(b.queue.length, LIMITS.queueMessages);
  });
  test("[P4] [P19] [W19] bytes count too", () => {
    const b = new Bench();
    b.say("first");
    const big = { message: { role: "user" as const, content: "x".repeat(261_900), timestamp: 0 } };
    let taken = 0;
    while (b.say(`m${taken}`, big)?.type === "accepted") taken += 1;
    assert.equal(taken, 16);
    assert.ok(b.state.queue.bytes <= LIMITS.queueBytes);
  });
  test("[W9] [P4] what arrives while an archive is made waits", () => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.apply({ type: "Reset" });
    assert.equal(b.say("b")?.type, "accepted");
    b.archive();
    b.summarize();
    assert.equal(b.state.run.phase, "thinking");
    assert.equal(b.log.at(-1)?.kind, "user");
  });
  test("[D2] what one message makes: two rows, and nothing but the state grows", () => {
    const b = new Bench();
    const accepted = b.apply({
      type: "UserMessage",
      identity: IDENTITY,
      incoming: {
        messageId: "a",
        runId: "r",
        origin: { kind: "client", clientId: "o" },
        message: { role: "user", content: "hi", timestamp: 0 },
        directives: {},
      },
      bytes: 100,
    });
    assert.deepEqual([accepted.append.length, accepted.queue.length, accepted.results.length], [1, 0, 0]);
    const answered = b.reply("hello");
    assert.equal(answered.append.length, 1);
    b.published = b.state.nextSeq - 1;
    const delivered = b.apply({ type: "Delivered", upto: b.published });
    assert.equal(delivered.append.length, 0);
    assert.deepEqual(b.state.outbox, []);
  });
  test("the end of a background process wakes the agent, and becomes a note when too much waits", () => {
    const b = new Bench();
    const incoming: IncomingMessage = {
      messageId: "exec:lap:1",
      runId: "x1",
      origin: { kind: "node_event", nodeId: "lap" },
      message: { role: "user", content: "process p ended", timestamp: 0 },
      directives: {},
    };
    b.apply({ type: "ExecEnded", incoming, bytes: 100 });
    assert.equal(b.state.run.phase, "thinking");
    for (let n = 0; n < LIMITS.queueMessages; n++) b.say(`m${n}`);
    assert.equal(b.apply({ type: "ExecEnded", incoming: { ...incoming, messageId: "exec:lap:2" }, bytes: 100 }).answer?.type, "taken");
    assert.deepEqual(b.notices(), ["note:"]);
  });
});

describe("the model", () => {
  test("[R2] [P5] four tries with 1, 2, 4 s and a quarter of chance, then an error in plain words", () => {
    const b = new Bench();
    b.say("a");
    for (const [tries, jitter, waitMs] of [
      [1, 0, 750],
      [2, 0.5, 2_000],
      [3, 1, 5_000],
    ] as const) {
      b.jitter = jitter;
      const step = b.fail();
      assert.equal(b.effect("CallModel").notBefore, b.now + waitMs);
      assert.equal(b.effect("CallModel").id, `r1/t1/m${tries}`);
      assert.equal(step.status.length, 1);
      b.now += waitMs;
    }
    b.fail();
    assert.deepEqual(b.notices(), ["error:model.overloaded"]);
    assert.equal(b.state.run.phase, "idle");
  });
  test("[R2] then the next model gets its own four tries", () => {
    const b = new Bench();
    b.say("a");
    for (let n = 0; n < LIMITS.modelAttempts; n++) b.fail({ models: 2 });
    assert.equal(b.state.run.phase === "thinking" && b.state.run.modelIndex, 1);
    for (let n = 0; n < LIMITS.modelAttempts - 1; n++) b.fail({ models: 2 });
    assert.equal(b.state.run.phase, "thinking");
    b.fail({ models: 2 });
    assert.deepEqual(b.notices(), ["error:model.overloaded"]);
  });
  test("[R2] a model that is down is not asked first again at the next step", () => {
    const b = new Bench();
    b.say("a");
    for (let n = 0; n < LIMITS.modelAttempts; n++) b.fail({ models: 2 });
    b.reply("", [call()]);
    b.result(CALL, "done");
    assert.equal(b.state.run.phase === "thinking" && b.state.run.modelIndex, 1);
  });
  test("[R2] [P5] retry-after is honoured up to 60 s, longer means the next model", () => {
    const b = new Bench();
    b.say("a");
    b.fail({ retryAfterMs: 60_000, models: 2 });
    assert.equal(b.effect("CallModel").notBefore, 60_000);
    b.now = 60_000;
    b.fail({ retryAfterMs: 60_001, models: 2 });
    assert.equal(b.state.run.phase === "thinking" && b.state.run.modelIndex, 1);
  });
  test("[R2] [W4] what can't be mended by trying again ends the run at once, visibly", () => {
    const b = new Bench();
    b.say("a");
    b.fail({ retryable: false, reason: "model.auth", models: 3 });
    assert.deepEqual(b.notices(), ["error:model.auth"]);
  });
  test("[P5] an empty answer is no answer", () => {
    const b = new Bench();
    b.say("a");
    b.reply("  ");
    assert.equal(b.effect("CallModel").id, "r1/t1/m1");
    assert.equal(b.log.length, 1);
  });
  test("[P5] [K7] a completion of an earlier attempt, or a second one, drops itself", () => {
    const b = new Bench();
    b.say("a");
    const old = b.effect("CallModel").id;
    b.apply({ type: "Woke" });
    const before = b.state;
    const message: AssistantMessage = {
      role: "assistant",
      content: [{ type: "text", text: "old" }],
      api: "a",
      provider: "p",
      model: "m",
      usage: USAGE,
      stopReason: "stop",
      timestamp: 0,
    };
    b.apply({ type: "ModelReplied", effectId: old, message, calls: [], usage: USAGE, budget: BUDGET });
    assert.deepEqual(b.state, before);
    const now = b.effect("CallModel").id;
    b.reply("new");
    b.apply({ type: "ModelReplied", effectId: now, message, calls: [], usage: USAGE, budget: BUDGET });
    assert.equal(b.log.filter((row) => row.kind === "assistant").length, 1);
  });
  test("[R4] [P13] [K7] restarts of one step are counted, and the run is sealed once", () => {
    const b = new Bench();
    b.say("a");
    for (let n = 1; n <= LIMITS.recoveryAttempts; n++) {
      b.apply({ type: "Woke" });
      assert.equal(b.effect("CallModel").id, `r1/t1/m${n}`);
    }
    b.apply({ type: "Woke" });
    assert.deepEqual(b.notices(), ["error:run.no_progress"]);
    b.apply({ type: "Woke" });
    assert.equal(b.notices().length, 1);
  });
  test("[R4] [P13] five minutes without progress from the first interruption on seal the run", () => {
    const b = new Bench();
    b.say("a");
    // The answer may take longer than that; only what is lost again and again is stuck.
    b.now = LIMITS.noProgressMs + 60_000;
    b.apply({ type: "Woke" });
    assert.equal(b.state.run.phase, "thinking");
    b.now += LIMITS.noProgressMs;
    b.apply({ type: "Woke" });
    assert.equal(b.state.run.phase, "thinking");
    b.now += 1;
    b.apply({ type: "Woke" });
    assert.deepEqual(b.notices(), ["error:run.no_progress"]);
  });
  test("[P12] [D4] a lost lease starts the call again, one that is under way keeps it", () => {
    const b = new Bench();
    b.say("a");
    const id = b.effect("CallModel").id;
    b.now = LIMITS.leaseMs;
    b.apply({ type: "Tick", inFlight: [id] });
    assert.equal(b.effect("CallModel").id, id);
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.effect("CallModel").id, "r1/t1/m1");
  });
  test("[R2] a try that waits for its time had not been made, so waking does not count it", () => {
    const b = new Bench();
    b.say("a");
    b.fail();
    const waiting = b.effect("CallModel");
    b.apply({ type: "Woke" });
    assert.deepEqual(b.effect("CallModel"), waiting);
  });
});

describe("budgets", () => {
  const run = (budget: typeof BUDGET, usage: Usage = USAGE): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()], { budget, usage });
    return b;
  };
  test("[R1] [W22] steps", () => {
    const b = run({ ...BUDGET, steps: 1 });
    b.result(CALL, "done");
    assert.deepEqual(b.notices(), ["error:budget.steps"]);
    assert.equal(b.say("continue")?.type, "accepted");
    b.reply("going on");
  });
  test("[R1] [P13] time, of the session's clock", () => {
    const b = run({ ...BUDGET, ms: 30_000 });
    b.now = 30_001;
    b.result(CALL, "done");
    assert.deepEqual(b.notices(), ["error:budget.time"]);
  });
  test("[R1] cost, and exactly the budget is allowed", () => {
    const at = run({ ...BUDGET, costUsd: 0.5 }, { ...USAGE, costUsd: 0.5 });
    at.result(CALL, "done");
    assert.equal(at.state.run.phase, "thinking");
    const over = run({ ...BUDGET, costUsd: 0.5 }, { ...USAGE, costUsd: 0.51 });
    over.result(CALL, "done");
    assert.deepEqual(over.notices(), ["error:budget.cost"]);
  });
  test("[R1] also between two tries", () => {
    const b = run({ ...BUDGET, ms: 30_000 });
    b.result(CALL, "done");
    b.now = 31_000;
    b.apply({
      type: "ModelFailed",
      effectId: b.effect("CallModel").id,
      error: { reason: "model.overloaded", message: "x" },
      retryable: true,
      models: 1,
      streamed: true,
    });
    assert.deepEqual(b.notices(), ["error:budget.time"]);
  });
});

describe("calls", () => {
  test("[G1] [W7] ids are the session's own and unique over runs and steps, whatever the provider says", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call()]);
    const row = b.log.find((candidate) => candidate.kind === "assistant");
    assert.deepEqual(row?.kind === "assistant" && row.calls.map((c) => c.callId), [CALL, "ref0000000/r1/1/1"]);
    assert.deepEqual(row?.kind === "assistant" && row.message.content.map((block) => block.type === "toolCall" && block.id), [
      "call_1_1_0",
      "call_1_1_1",
    ]);
    b.result(CALL, "one");
    b.result("ref0000000/r1/1/1", "two");
    b.reply("", [call()]);
    assert.equal(b.effect("DispatchTool").callId, "ref0000000/r1/2/0");
  });
  test("[G1] only the machine that has the call can end it", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    assert.deepEqual(b.result(CALL, "SECRET", "evil"), { type: "unknown" });
    assert.deepEqual(b.apply({ type: "ToolResult", callId: CALL, from: { kind: "native" }, content: [], outcome: "ok" }).answer, {
      type: "unknown",
    });
    assert.deepEqual(b.result(CALL, "mine"), { type: "taken" });
    assert.deepEqual(b.result(CALL, "mine"), { type: "duplicate" });
    assert.deepEqual(b.result("other00000/r1/1/0", "x"), { type: "unknown" });
    assert.deepEqual(b.result("ref0000000/r9/1/0", "x"), { type: "unknown" });
  });
  test("[W15] [K21] the next step begins with the last result, once", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call()]);
    b.result("ref0000000/r1/1/1", "two");
    assert.equal(b.state.run.phase, "acting");
    b.result(CALL, "one");
    assert.equal(b.effect("CallModel").id, "r1/t2/m0");
  });
  test("[G4] calls that can't be made get an error result and the run goes on", () => {
    const b = new Bench();
    b.say("a");
    const none: ReplyCall = {
      providerId: "x",
      name: "nope__Bash",
      arguments: {},
      target: { kind: "none", reason: "tool.unknown", message: "There is no tool nope__Bash." },
    };
    b.reply("", [none, call()]);
    assert.equal(b.resultOf(CALL).reason, "tool.unknown");
    assert.equal(b.state.run.phase, "acting");
    b.result("ref0000000/r1/1/1", "ok");
    b.reply("", [none]);
    assert.equal(b.effect("CallModel").id, "r1/t3/m0");
  });
  test("[G4] arguments that are no object", () => {
    const b = new Bench();
    b.say("a");
    const args: unknown = ["not", "an", "object"];
    b.reply("", [{ ...call(), arguments: args as ReplyCall["arguments"] }]);
    assert.equal(b.resultOf(CALL).reason, "tool.bad_args");
  });
  test("[G4] the 32nd call is made, the 33rd gets an error, the 200th is not even kept", () => {
    const b = new Bench();
    b.say("a");
    b.reply(
      "",
      Array.from({ length: 200 }, () => call()),
    );
    assert.equal(b.state.run.phase === "acting" && b.state.run.calls.length, LIMITS.toolCallsPerStep);
    assert.equal(b.resultOf("ref0000000/r1/1/32").reason, "tool.queue_full");
    const row = b.log.find((candidate) => candidate.kind === "assistant");
    assert.equal(row?.kind === "assistant" && row.calls.length, 128);
  });
  test("[P5] an answer that was cut off makes no calls", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()], { stopReason: "length" });
    assert.equal(b.resultOf(CALL).reason, "tool.bad_args");
    assert.ok(!b.state.outbox.some((effect) => effect.type === "DispatchTool"));
  });
  test("[G4] a long result is cut in the middle, and the whole text is kept", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    const text = `BEGIN${"x".repeat(100_000)}END`;
    b.result(CALL, text);
    const shown = b.textOf(CALL);
    assert.ok(shown.length < LIMITS.toolResultChars + 500);
    assert.match(shown, /^BEGIN/);
    assert.match(shown, /END$/);
    assert.match(shown, /results\/ref0000000-r1-1-0\.txt/);
    assert.equal(b.results.get(CALL), text);
    assert.equal(b.effect("StoreResult").callId, CALL);
    b.apply({ type: "EffectDone", effectId: b.effect("StoreResult").id });
    assert.equal(b.results.size, 0);
  });
  test("[G4] a result of exactly the limit is left whole", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    b.result(CALL, "x".repeat(LIMITS.toolResultChars));
    assert.equal(b.textOf(CALL).length, LIMITS.toolResultChars);
  });
  test("[W19] an answer of 5 MB and arguments of 2 MB fit their row", () => {
    const b = new Bench();
    b.say("a");
    b.reply("y".repeat(5_000_000), [{ ...call(), arguments: { content: "z".repeat(2_000_000) } }]);
    const row = b.log.find((candidate) => candidate.kind === "assistant");
    assert.ok(row && jsonBytes(row) < LIMITS.rowBytes);
    assert.equal(b.resultOf(CALL).reason, "tool.bad_args");
  });
  test("[W19] whatever a model or a machine says, each row fits", () => {
    const b = new Bench();
    b.say("a");
    const nasty = "\u0000".repeat(300_000);
    const calls = Array.from({ length: 150 }, (_, n) => ({
      ...call({}, `lap__${nasty}`),
      providerId: nasty,
      arguments: { n, nasty: nasty.slice(0, 20_000) },
    }));
    b.reply(nasty, calls);
    const image = { type: "image" as const, data: "x".repeat(900_000), mimeType: "image/png" };
    b.apply({
      type: "ToolResult",
      callId: CALL,
      from: LAP,
      content: [{ type: "text", text: nasty.slice(0, 50_000) }, image],
      outcome: "ok",
    });
    b.apply({
      type: "ToolResult",
      callId: "ref0000000/r1/1/1",
      from: LAP,
      content: [{ type: "text", text: nasty }, image],
      outcome: "ok",
    });
    for (const row of b.log) assert.ok(jsonBytes(row) < LIMITS.rowBytes, `${row.kind} ${row.seq} has ${jsonBytes(row)} bytes`);
  });
});

describe("machines that come and go", () => {
  const acting = (over: Partial<Extract<CallTarget, { kind: "node" }>> = {}): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(over)]);
    return b;
  };
  const sent = (b: Bench): Bench => {
    b.apply({ type: "ToolSent", effectId: b.effect("DispatchTool").id, callId: CALL });
    return b;
  };
  test("[G3] the first dispatch finds nobody: told at once, and nothing can come late", () => {
    const b = acting();
    b.apply({ type: "ToolOffline", effectId: b.effect("DispatchTool").id, callId: CALL, first: true });
    assert.equal(b.resultOf(CALL).reason, "node.offline");
    assert.equal(b.state.run.phase, "thinking");
    assert.deepEqual(b.state.closed, []);
  });
  test("[G3] [P6] a later dispatch finds nobody: the first may have started it", () => {
    const b = acting();
    b.apply({ type: "ToolOffline", effectId: b.effect("DispatchTool").id, callId: CALL, first: false });
    assert.equal(b.state.run.phase, "acting");
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).reason, "tool.outcome_unknown");
  });
  test("[G3] [W5] [K16'] a changing call waits for its node, then its outcome is unknown", () => {
    const b = acting();
    const step = b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    assert.match(step.status[0]?.text ?? "", /lap dropped off/);
    b.now = LIMITS.nodeGraceMs - 1;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.state.run.phase, "acting");
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).outcome, "unknown");
    assert.match(b.textOf(CALL), /check the state of lap before you repeat it/);
  });
  test("[G3] a read-only call fails at once", () => {
    const b = acting({ idempotent: true });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    assert.equal(b.resultOf(CALL).reason, "node.offline");
  });
  test("[G3] [P7] a result that comes after that is a late note: once, told, never restarting the run", () => {
    const b = acting();
    b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    b.reply("I don't know");
    assert.deepEqual(b.result(CALL, "deployed"), { type: "late" });
    assert.equal(b.state.run.phase, "idle");
    const note = b.log.at(-1);
    assert.match(note?.kind === "notice" ? (note.forModel ?? "") : "", /deployed/);
    assert.deepEqual(b.result(CALL, "deployed"), { type: "duplicate" });
  });
  test("[K16] the node comes back and still works on it: the call goes on", () => {
    const b = acting();
    b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [{ callId: CALL, state: "started" }] });
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.state.run.phase, "acting");
    assert.deepEqual(b.result(CALL, "done"), { type: "taken" });
  });
  test("[K14] the node comes back and never saw it: handed over again under the same call id", () => {
    const b = acting();
    const first = b.effect("DispatchTool");
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [] });
    const again = b.effect("DispatchTool");
    assert.equal(again.callId, first.callId);
    assert.notEqual(again.id, first.id);
  });
  test("[K15] the node comes back and has only accepted it: handed over again, for a node that died waits to be asked", () => {
    const b = acting();
    const first = b.effect("DispatchTool");
    b.apply({ type: "NodeChanged", nodeId: "lap", online: false });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [{ callId: CALL, state: "accepted" }] });
    const again = b.effect("DispatchTool");
    assert.equal(again.callId, first.callId);
    assert.notEqual(again.id, first.id);
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.state.run.phase, "acting");
  });
  test("[T3] the node lost it: its report is waited for, not for ever", () => {
    const b = acting();
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [{ callId: CALL, state: "lost" }] });
    b.now = LIMITS.nodeGraceMs;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).reason, "tool.outcome_unknown");
  });
  test("[G2] [T4] without a ledger: committed as sent, then never dispatched again", () => {
    const b = sent(acting({ ledger: false }));
    assert.ok(!b.state.outbox.some((effect) => effect.type === "DispatchTool"));
    b.apply({ type: "Woke" });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true });
    assert.ok(!b.state.outbox.some((effect) => effect.type === "DispatchTool"));
    b.now = 60_000;
    b.apply({ type: "Tick", inFlight: [] });
    assert.equal(b.resultOf(CALL).reason, "tool.outcome_unknown");
  });
  test("[G1] [G2] a result of a call that was never handed over is nobody's", () => {
    const b = acting({ ledger: false });
    assert.deepEqual(b.result(CALL, "made up"), { type: "unknown" });
    sent(b);
    assert.deepEqual(b.result(CALL, "real"), { type: "taken" });
  });
  test("[G2] handing over failed midway: unknown after the grace, unless the result comes", () => {
    const b = sent(acting({ ledger: false }));
    const effectId = "r1/t1/d0.0";
    b.apply({ type: "ToolUncertain", effectId, callId: CALL });
    b.now = LIMITS.nodeGraceMs - 1;
    assert.deepEqual(b.result(CALL, "it was there"), { type: "taken" });
  });
  test("[G5] after its deadline a call is cancelled; read-only: timeout, changing: unknown", () => {
    for (const [idempotent, reason] of [
      [true, "tool.timeout"],
      [false, "tool.outcome_unknown"],
    ] as const) {
      const b = acting({ idempotent });
      b.now = 59_999;
      b.apply({ type: "Tick", inFlight: [] });
      assert.equal(b.state.run.phase, "acting");
      b.now = 60_000;
      b.apply({ type: "Tick", inFlight: [] });
      assert.equal(b.resultOf(CALL).reason, reason);
      assert.deepEqual(b.effect("CancelTool").callIds, [CALL]);
    }
  });
  test("[P14] a call that nobody wants is cancelled again when its node comes back", () => {
    const b = acting();
    b.apply({ type: "Abort" });
    b.apply({ type: "EffectDone", effectId: b.effect("CancelTool").id });
    b.apply({ type: "NodeChanged", nodeId: "lap", online: true, calls: [{ callId: CALL, state: "started" }] });
    assert.deepEqual(b.effect("CancelTool").callIds, [CALL]);
  });
  test("[P8] native calls are run again after a death, but not for ever", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [
      {
        providerId: "x",
        name: "gsv__WriteFile",
        arguments: {},
        target: { kind: "native", tool: "gsv__WriteFile", idempotent: false, timeoutMs: 60_000, deadlineMs: 60_000 },
      },
    ]);
    for (let n = 0; n < LIMITS.recoveryAttempts; n++) b.apply({ type: "Woke" });
    assert.equal(b.state.run.phase, "acting");
    b.apply({ type: "Woke" });
    assert.equal(b.resultOf(CALL).reason, "tool.failed");
  });
});

describe("stopping", () => {
  test("[R3] [P14] open calls get a result, nodes are told, the next message starts", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call({ nodeId: "old", ledger: false })]);
    b.say("b");
    const { answer } = b.apply({ type: "Abort" });
    assert.deepEqual(answer, { type: "aborted", wasRunning: true, runId: "run-a", cancelled: 2 });
    assert.equal(b.resultOf(CALL).outcome, "cancelled");
    assert.deepEqual(
      b.state.outbox.filter((effect) => effect.type === "CancelTool").map((effect) => effect.type === "CancelTool" && effect.nodeId),
      ["lap", "old"],
    );
    assert.equal(b.log.at(-1)?.runId, "run-b");
    assert.deepEqual(b.notices(), ["aborted:run.aborted"]);
  });
  test("[P14] that a cancelled call was cancelled is no news; anything else is", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call(), call()]);
    b.apply({ type: "Abort" });
    assert.equal(b.apply({ type: "ToolResult", callId: CALL, from: LAP, content: [], outcome: "cancelled" }).answer?.type, "late");
    assert.deepEqual(b.notices(), ["aborted:run.aborted"]);
    b.result("ref0000000/r1/1/1", "it was done already");
    assert.deepEqual(b.notices(), ["aborted:run.aborted", "late:"]);
  });
  test("[P10] a waiting message can be stopped by its run id, and its end is told", () => {
    const b = new Bench();
    b.say("a");
    b.say("b");
    b.say("c");
    assert.equal(b.apply({ type: "Abort", runId: "run-b" }).answer?.type, "aborted");
    assert.deepEqual(
      b.queue.map((message) => message.incoming.messageId),
      ["c"],
    );
    assert.equal(b.log.at(-1)?.runId, "run-b");
    assert.equal(b.state.run.phase, "thinking");
  });
  test("a run that is not there is not stopped", () => {
    const b = new Bench();
    b.say("a");
    const before = b.state;
    assert.deepEqual(b.apply({ type: "Abort", runId: "run-z" }).answer, { type: "aborted", wasRunning: false, cancelled: 0 });
    assert.deepEqual(b.state, before);
  });
});

describe("reset and compaction", () => {
  const talked = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    return b;
  };
  test("[R5] [P17] nothing moves before the archive is known to be right", () => {
    const b = talked();
    b.apply({ type: "Reset" });
    assert.equal(b.state.contextFrom, 1);
    assert.equal(b.archive().ended.length, 0);
    assert.equal(b.state.contextFrom, 1);
    const { ended } = b.summarize();
    assert.equal(ended[0]?.ok, true);
    assert.equal(b.state.contextFrom, 3);
    assert.deepEqual(b.state.previousSessionIds, ["s1"]);
    assert.deepEqual(b.state.usage, { input: 0, output: 0, total: 0, costUsd: 0 });
    assert.equal(b.state.messageCount, 0);
    assert.deepEqual(b.notices(), ["reset:"]);
  });
  test("[R5] [P17] [W16] a wrong count or a failure removes nothing, and is told after three tries", () => {
    const b = talked();
    b.apply({ type: "Reset" });
    b.apply({ type: "Archived", effectId: b.effect("Archive").id, key: "k", count: 1 });
    assert.equal(b.state.run.phase, "archiving");
    let ended: Step["ended"] = [];
    for (let n = 1; n < ARCHIVE_ATTEMPTS; n++) {
      ended = b.apply({
        type: "ArchiveFailed",
        effectId: b.effect("Archive").id,
        error: { reason: "storage.failed", message: "The bucket is away." },
      }).ended;
    }
    assert.equal(ended[0]?.ok === false && ended[0].error.reason, "session.archive_failed");
    assert.equal(b.state.contextFrom, 1);
    assert.equal(b.state.messageCount, 2);
    assert.equal(b.state.sessionId, "s1");
    assert.equal(b.state.run.phase, "idle");
  });
  test("[K25] [K26] an archive that was interrupted is made again from the same intent", () => {
    const b = talked();
    b.apply({ type: "Reset" });
    const first = b.state.run;
    b.now = 5_000;
    b.apply({ type: "Woke" });
    const second = b.state.run;
    assert.ok(first.phase === "archiving" && second.phase === "archiving");
    assert.deepEqual([second.archivedAt, second.newSessionId, second.upto], [first.archivedAt, first.newSessionId, first.upto]);
    assert.equal(b.effect("Archive").id, "a1/1");
    assert.equal(b.apply({ type: "Archived", effectId: "a1/0", key: "k", count: 2 }).append.length, 0);
  });
  test("[R5] a reset during a run stops it visibly first", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    b.apply({ type: "Reset" });
    assert.deepEqual(b.notices(), ["aborted:run.aborted"]);
    assert.equal(b.state.run.phase, "archiving");
  });
  test("[R6] a compaction during a run waits for its end; a second archive is refused meanwhile", () => {
    const b = talked();
    b.say("b");
    assert.deepEqual(b.apply({ type: "Compact", keep: 1 }).answer, { type: "archiving", requestId: "id4", waits: true });
    assert.equal(b.apply({ type: "Compact", keep: 1 }).answer?.type, "refused");
    b.say("c");
    b.reply("two");
    assert.equal(b.state.run.phase, "archiving");
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(3) });
    b.archive();
    assert.equal(b.state.messageCount, 3);
    assert.equal(b.log.at(-1)?.runId, "run-c");
  });
  test("nothing to put away: over at once", () => {
    const b = talked();
    const { ended, answer } = b.apply({ type: "Compact", keep: 20 });
    assert.deepEqual(ended, [
      {
        ok: true,
        kind: "compact",
        requestId: answer?.type === "archiving" ? answer.requestId : "",
        trimmed: 0,
        kept: 2,
        summarized: false,
      },
    ]);
    assert.equal(b.state.run.phase, "idle");
  });
  test("[W18] [R5] the message that a daily reset comes with is durable before it, and opens the fresh conversation", () => {
    const b = talked();
    const incoming: IncomingMessage = {
      messageId: "b",
      runId: "run-b",
      origin: { kind: "client", clientId: "o" },
      message: { role: "user", content: "morning", timestamp: 0 },
      directives: {},
    };
    b.apply({ type: "UserMessage", identity: IDENTITY, incoming, bytes: 50, resetDue: "daily" });
    assert.equal(b.queue.length, 1);
    assert.equal(b.state.run.phase, "archiving");
    b.archive();
    b.summarize();
    assert.equal(b.state.messageCount, 1);
    assert.equal(b.log.at(-1)?.runId, "run-b");
  });
  test("[R5] when the bucket is away the message is answered all the same, in the old conversation", () => {
    const b = talked();
    const incoming: IncomingMessage = {
      messageId: "b",
      runId: "run-b",
      origin: { kind: "client", clientId: "o" },
      message: { role: "user", content: "morning", timestamp: 0 },
      directives: {},
    };
    b.apply({ type: "UserMessage", identity: IDENTITY, incoming, bytes: 50, resetDue: "daily" });
    for (let n = 0; n < ARCHIVE_ATTEMPTS; n++)
      b.apply({ type: "ArchiveFailed", effectId: b.effect("Archive").id, error: { reason: "storage.failed", message: "away" } });
    assert.equal(b.log.at(-1)?.runId, "run-b");
    assert.equal(b.state.messageCount, 3);
    b.reply("hello");
    // Not with every message again while it is away.
    assert.equal(
      b.apply({
        type: "UserMessage",
        identity: IDENTITY,
        incoming: { ...incoming, messageId: "c", runId: "run-c" },
        bytes: 50,
        resetDue: "daily",
      }).answer?.type,
      "accepted",
    );
    assert.equal(b.state.run.phase, "thinking");
  });
});

describe("compaction", () => {
  /** Two exchanges, and a run that has made one step; its calls are answered, and the model is to be asked again. */
  const busy = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.say("b");
    b.reply("two");
    b.say("c");
    b.reply("", [call()]);
    b.result("ref0000000/r3/1/0", "found it");
    return b;
  };
  test("[R7] [P17] a run that needs room waits, and goes on as a new attempt once the archive is safe", () => {
    const b = busy();
    b.full(b.plan(3));
    assert.equal(b.state.run.phase, "archiving");
    assert.equal(shownState(b.state.run), "thinking");
    assert.match(b.last?.status[0]?.text ?? "", /Making room: summarising 2 older messages/);
    b.summarize();
    assert.equal(b.state.contextFrom, 1);
    b.archive("agents/main/sessions/s1-part1.jsonl.gz");
    assert.deepEqual([b.state.contextFrom, b.state.messageCount, b.state.compactions], [3, 5, 1]);
    assert.deepEqual(b.state.summary, { text: "what was said", count: 2, at: 1_000_000 });
    assert.deepEqual([b.thinking().step, b.thinking().attempt], [2, 1]);
    assert.equal(b.state.work, undefined);
    assert.deepEqual(b.log.at(-1)?.kind === "notice" && b.log.at(-1), {
      ...b.log.at(-1),
      archive: { key: "agents/main/sessions/s1-part1.jsonl.gz", count: 2 },
    });
    b.reply("done");
    assert.equal(b.log.filter((row) => row.kind === "assistant" && row.runId === "run-c" && row.calls.length === 0).length, 1);
  });
  test("[R7] a plan that is not one for this conversation makes no compaction: the model is asked with what there is", () => {
    const b = busy();
    b.full({ ...b.plan(3), kept: 1 });
    assert.equal(b.thinking().compactionTried, true);
  });
  test("[R7] the completion of a call that was given up for room is dropped", () => {
    const b = busy();
    const { id } = b.effect("CallModel");
    b.full(b.plan(3));
    const step = b.apply({ type: "ContextFull", effectId: id, plan: b.plan(3), budget: BUDGET });
    assert.deepEqual([step.append.length, step.effects.length], [0, 0]);
  });
  test("[R8] chunks go on where the last one ended, and each has all failures to itself", () => {
    const b = busy();
    b.full(b.plan(5));
    b.summarize({ cursor: 2, summary: "first", memories: "- a" });
    assert.deepEqual(b.state.work, { summary: "first", memories: "- a", day: { date: "2026-03-01", time: "14:30" } });
    for (let n = 1; n < SUMMARY_ATTEMPTS; n++) b.summaryFails();
    b.summarize({ cursor: 3, summary: "second", memories: "- a\n- b" });
    for (let n = 1; n < SUMMARY_ATTEMPTS; n++) b.summaryFails();
    b.summarize({ summary: "third", memories: "- a\n- b" });
    b.archive();
    assert.equal(b.state.summary?.text, "third");
    assert.equal(b.effect("AppendMemory").date, "2026-03-01");
    assert.equal(b.results.get(b.effect("AppendMemory").id), "### Extracted from context compaction (14:30)\n- a\n- b\n");
  });
  test("[R8] a kill repeats the chunk that was under way, not those before it", () => {
    const b = busy();
    b.full(b.plan(5));
    b.summarize({ cursor: 3, summary: "first" });
    const { id } = b.effect("Summarize");
    b.apply({ type: "Woke" });
    assert.ok(b.state.run.phase === "archiving" && b.state.run.cursor === 3);
    assert.equal(b.state.work?.summary, "first");
    const late = b.apply({ type: "Summarized", effectId: id, cursor: 5, summary: "from the grave", memories: "" });
    assert.equal(late.effects.length, 0);
  });
  test("[R8] [W16] a model that fails stops nothing: a note says how many, when and where, and what there is of a summary stays", () => {
    const b = busy();
    b.full(b.plan(5));
    b.summarize({ cursor: 3, summary: "the first half" });
    for (let n = 0; n < SUMMARY_ATTEMPTS; n++) b.summaryFails();
    b.archive("agents/main/sessions/part.jsonl.gz");
    assert.equal(b.state.contextFrom, 5);
    assert.match(
      b.state.summary?.text ?? "",
      /^the first half\n\n\[The later part of 4 earlier messages .*agents\/main\/sessions\/part\.jsonl\.gz/,
    );
    assert.equal(b.state.run.phase, "thinking");
  });
  test("[R8] a failure that trying again can't mend is not tried again", () => {
    const b = busy();
    b.full(b.plan(5));
    b.summaryFails(false);
    assert.ok(b.effect("Archive"));
    b.archive();
    assert.match(b.state.summary?.text ?? "", /^\[4 earlier messages/);
  });
  test("[R8] more chunks than allowed: the rest goes without a summary", () => {
    const b = new Bench();
    for (let n = 0; n < 40; n++) {
      b.say(`m${n}`);
      b.reply("yes");
    }
    b.apply({ type: "Compact" });
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(79) });
    for (let n = 0; n < LIMITS.compactionChunks; n++) b.summarize({ cursor: 2 + n, summary: "so far" });
    assert.ok(b.effect("Archive"));
    const { ended } = b.archive();
    assert.match(b.state.summary?.text ?? "", /^so far\n\n\[The later part/);
    assert.ok(ended[0]?.ok && ended[0].kind === "compact" && ended[0].summarized && ended[0].trimmed === 78 && ended[0].kept === 2);
  });
  test("[R8] a summary costs the session and the run", () => {
    const b = busy();
    const before = b.state.usage;
    b.full(b.plan(3));
    b.summarize({ usage: { input: 100, output: 10, total: 110, costUsd: 2 } });
    assert.equal(b.state.usage.total, before.total + 110);
    b.archive();
    // The run's budget is used up, so it ends visibly, and the room that was made stays.
    assert.deepEqual(b.notices().slice(-1), ["error:budget.cost"]);
    assert.equal(b.state.run.phase, "idle");
    assert.equal(b.state.contextFrom, 3);
  });
  test("[P17] [W16] an archive that fails removes nothing, and the run goes on without", () => {
    const b = busy();
    b.full(b.plan(3));
    b.summarize({ memories: "- a" });
    for (let n = 0; n < ARCHIVE_ATTEMPTS; n++)
      b.apply({ type: "ArchiveFailed", effectId: b.effect("Archive").id, error: { reason: "storage.failed", message: "away" } });
    assert.deepEqual([b.state.contextFrom, b.state.messageCount, b.state.summary, b.results.size], [1, 7, undefined, 0]);
    assert.equal(b.thinking().compactionTried, true);
    assert.ok(b.state.autoResetAfter > b.now);
  });
  test("[P17] a wrong count removes nothing", () => {
    const b = busy();
    b.full(b.plan(3));
    b.summarize();
    b.apply({ type: "Archived", effectId: b.effect("Archive").id, key: "k", count: 1 });
    assert.equal(b.state.contextFrom, 1);
    assert.equal(b.state.run.phase, "archiving");
  });
  test("[R3] /stop while room is made ends the run and removes nothing", () => {
    const b = busy();
    b.full(b.plan(3));
    b.say("d");
    const { answer } = b.apply({ type: "Abort" });
    assert.deepEqual(answer, { type: "aborted", wasRunning: true, runId: "run-c", cancelled: 0 });
    assert.deepEqual([b.state.contextFrom, b.state.work], [1, undefined]);
    assert.equal(b.thinking().runId, "run-d");
    assert.equal(b.log.filter((row) => row.runId === "run-c" && row.kind === "notice" && row.notice === "aborted").length, 1);
  });
  test("[R3] /stop ends a compaction that was asked for, and whoever asked is told", () => {
    const b = busy();
    b.reply("three");
    b.apply({ type: "Compact" });
    const { ended, answer } = b.apply({ type: "Abort" });
    assert.equal(answer?.type === "aborted" && answer.wasRunning, true);
    assert.equal(ended[0]?.ok, false);
    assert.deepEqual(
      [b.state.run.phase, b.state.contextFrom, b.state.outbox.some((effect) => effect.type === "Summarize")],
      ["idle", 1, false],
    );
  });
  test("[R5] a reset while room is made ends the run visibly and archives everything", () => {
    const b = busy();
    b.full(b.plan(3));
    assert.equal(b.apply({ type: "Reset" }).answer?.type, "archiving");
    assert.deepEqual(b.notices(), ["aborted:run.aborted"]);
    assert.ok(b.state.run.phase === "archiving" && b.state.run.kind === "reset" && b.state.run.count === 7);
    assert.equal(b.apply({ type: "Reset" }).answer?.type, "refused");
  });
  test("[P4.4] on overflow room is made once; a second one in the step ends with what to do", () => {
    const b = busy();
    const overflow = (plan?: CutPlan): Step =>
      b.apply({
        type: "ModelFailed",
        effectId: b.effect("CallModel").id,
        error: { reason: "model.context_overflow", message: "Too long." },
        retryable: false,
        models: 2,
        streamed: false,
        budget: BUDGET,
        ...(plan ? { plan } : {}),
      });
    overflow(b.plan(3));
    assert.ok(b.state.run.phase === "archiving" && b.state.run.cause === "overflow");
    b.summarize();
    b.archive();
    assert.equal(b.thinking().overflows, 1);
    overflow(b.plan(5));
    assert.deepEqual(b.notices().slice(-1), ["error:model.context_overflow"]);
    assert.match(b.log.at(-1)?.kind === "notice" ? (b.log.at(-1) as { text: string }).text : "", /\/new/);
    // The next step, and the next message, may overflow anew.
    b.say("d");
    assert.equal(b.thinking().overflows, undefined);
  });
  test("[P4.4] where nothing can leave, the model is asked once more with less", () => {
    const b = new Bench();
    b.say("a");
    b.apply({
      type: "ModelFailed",
      effectId: b.effect("CallModel").id,
      error: { reason: "model.context_overflow", message: "Too long." },
      retryable: false,
      models: 1,
      streamed: false,
    });
    assert.deepEqual([b.thinking().overflows, b.thinking().compactionTried], [1, true]);
  });
  test("[R6] /compact N archives without asking the model, and a summary that is there stays", () => {
    const b = busy();
    b.full(b.plan(3));
    b.summarize({ summary: "the beginning" });
    b.archive();
    b.reply("three");
    b.apply({ type: "Compact", keep: 2 });
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(5) });
    const { ended } = b.archive();
    assert.ok(ended[0]?.ok && ended[0].kind === "compact" && !ended[0].summarized && ended[0].trimmed === 2);
    assert.deepEqual([b.state.summary?.text, b.state.summary?.count], ["the beginning", 4]);
  });
  test("[R9] the user's newest message is quoted when the cut is inside its run, until a newer one is there", () => {
    const b = new Bench();
    b.say("a");
    b.reply("", [call()]);
    b.result("ref0000000/r1/1/0", "one");
    b.reply("", [call()]);
    b.result("ref0000000/r1/2/0", "two");
    const second = b.log.findLast((row) => row.kind === "assistant")?.seq ?? 0;
    b.full(b.plan(second, { task: "say a" }));
    b.summarize();
    b.archive();
    assert.equal(b.state.summary?.task, "say a");
    b.reply("", [call()]);
    b.result("ref0000000/r1/3/0", "three");
    b.full(b.plan(b.log.findLast((row) => row.kind === "assistant")?.seq ?? 0));
    b.summarize();
    b.archive();
    assert.equal(b.state.summary?.task, "say a");
    b.reply("done");
    b.say("b");
    b.reply("two");
    b.apply({ type: "Compact" });
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(b.log.findLast((row) => row.kind === "user")?.seq ?? 0) });
    b.summarize();
    b.archive();
    assert.equal(b.state.summary?.task, undefined);
  });
  test("what a provider counted is known until the conversation or the model changes", () => {
    const b = busy();
    assert.deepEqual(b.state.context, { tokens: 15, seq: 6, model: "p/m" });
    b.full(b.plan(3));
    b.summarize();
    b.archive();
    assert.deepEqual([b.state.context], [undefined]);
    b.reply("three");
    assert.equal(b.state.context?.model, "p/m");
    b.say("d");
    const message = b.log.findLast((row) => row.kind === "assistant")?.message;
    assert.ok(message?.role === "assistant");
    b.apply({
      type: "ModelReplied",
      effectId: b.effect("CallModel").id,
      message,
      calls: [],
      usage: USAGE,
      budget: BUDGET,
      asked: "p/default",
    });
    assert.equal(b.state.context?.model, "p/default");
    b.apply({ type: "SettingsPatched", settings: { model: { provider: "x", id: "y" } }, text: "x" });
    assert.equal(b.state.context, undefined);
  });
});

describe("reset, step by step", () => {
  const over = (): Bench => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.apply({ type: "Reset" });
    return b;
  };
  test("[K26] [R5] archive, memories, then one commit: fresh id, zero tokens, media to be deleted; what came meanwhile opens it", () => {
    const b = over();
    b.say("b");
    b.archive("agents/main/sessions/s1.jsonl.gz");
    assert.deepEqual([b.state.sessionId, b.state.contextFrom], ["s1", 1]);
    const { ended } = b.summarize({ memories: "- likes tea" });
    assert.ok(ended[0]?.ok && ended[0].kind === "reset");
    assert.deepEqual(
      [ended[0].archived, ended[0].key, ended[0].memoriesTo, ended[0].tokens.total],
      [2, "agents/main/sessions/s1.jsonl.gz", "memory/2026-03-01.md", 15],
    );
    assert.deepEqual([b.state.previousSessionIds, b.state.usage.total, b.state.messageCount], [["s1"], 0, 1]);
    assert.deepEqual([b.effect("DeleteMedia").before, b.effect("DeleteMedia").from], [1_000_000, 3]);
    assert.match(b.results.get(b.effect("AppendMemory").id) ?? "", /- likes tea/);
    assert.equal(b.log.at(-1)?.runId, "run-b");
  });
  test("[K26] killed between archive and memories, the archive is not made again", () => {
    const b = over();
    b.archive("k1");
    b.apply({ type: "Woke" });
    assert.ok(b.effect("Summarize"));
    const { ended } = b.summarize();
    assert.ok(ended[0]?.ok && ended[0].key === "k1");
    assert.equal(b.state.previousSessionIds.length, 1);
  });
  test("[R5] memories that can't be picked are skipped with a word about it", () => {
    const b = over();
    b.archive();
    for (let n = 0; n < SUMMARY_ATTEMPTS; n++) b.summaryFails();
    assert.equal(b.state.sessionId === "s1", false);
    assert.match(b.log.at(-1)?.kind === "notice" ? (b.log.at(-1) as { text: string }).text : "", /because the model failed/);
  });
  test("[S8] only the owner's own conversation is remembered", () => {
    const b = new Bench();
    b.state = { ...b.state, identity: { ...IDENTITY, isOwnersSession: false } };
    const incoming: IncomingMessage = {
      messageId: "a",
      runId: "r",
      origin: { kind: "client", clientId: "o" },
      message: { role: "user", content: "hi", timestamp: 0 },
      directives: {},
    };
    b.apply({ type: "UserMessage", identity: { ...IDENTITY, isOwnersSession: false }, incoming, bytes: 9 });
    b.reply("one");
    b.apply({ type: "Reset" });
    assert.equal(b.archive().ended[0]?.ok, true);
  });
  test("[K27] [W17] what was learnt stays in its row until the file has it, and holds up nothing", () => {
    const b = over();
    b.archive();
    b.summarize({ memories: "- likes tea" });
    const { id } = b.effect("AppendMemory");
    b.say("b");
    b.reply("two");
    b.apply({ type: "Parked", effectId: id, text: "The bucket is away." });
    assert.equal(b.results.size, 1);
    b.apply({ type: "EffectDone", effectId: id });
    assert.equal(b.results.size, 0);
    assert.equal(
      b.state.outbox.some((effect) => effect.id === id),
      false,
    );
  });
  test("[R5] a reset drops the summary, and the archive of a conversation that had one counts without it", () => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.say("b");
    b.reply("two");
    b.apply({ type: "Compact" });
    b.apply({ type: "Planned", effectId: b.effect("Summarize").id, plan: b.plan(3) });
    b.summarize();
    b.archive();
    assert.ok(b.state.summary);
    b.apply({ type: "Reset" });
    b.archive();
    b.summarize();
    assert.deepEqual([b.state.summary, b.state.compactions], [undefined, 0]);
  });
});

describe("events and settings", () => {
  test("[C3] [P11] every event has a number of its own, and deliveries ride along with later commits", () => {
    const b = new Bench();
    b.say("a");
    b.reply("let me look", [call(), call()]);
    assert.deepEqual(
      b.log.map((row) => row.seq),
      [1, 2],
    );
    assert.equal(b.state.nextSeq, 5);
    b.published = 4;
    b.result(CALL, "one");
    assert.equal(b.state.deliveredSeq, 4);
    assert.equal(b.effect("Deliver").upto, 5);
  });
  test("an event that changes nothing writes nothing", () => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.published = 99;
    const state = b.state;
    for (const body of [
      { type: "Tick", inFlight: [] },
      { type: "Woke" },
      { type: "NodeChanged", nodeId: "lap", online: false },
      { type: "EffectDone", effectId: "nope" },
    ] as const satisfies EventBody[]) {
      const step = b.apply(body);
      assert.deepEqual([step.append.length, step.queue.length, step.effects.length], [0, 0, 0], body.type);
    }
    assert.deepEqual(b.state, state);
  });
  test("settings are set and taken back", () => {
    const b = new Bench();
    b.say("a");
    b.apply({
      type: "SettingsPatched",
      settings: { thinkingLevel: "high", maxTokens: 5 },
      label: "mine",
      resetPolicy: { mode: "idle" },
      text: "x",
    });
    assert.deepEqual(b.state.settings, { thinkingLevel: "high", maxTokens: 5 });
    b.apply({ type: "SettingsPatched", clear: ["thinkingLevel", "label", "resetPolicy"], text: "y" });
    assert.deepEqual([b.state.settings, b.state.label, b.state.resetPolicy], [{ maxTokens: 5 }, undefined, {}]);
  });
  test("a step that breaks an invariant is refused", () => {
    const b = new Bench();
    b.say("a");
    const step = b.apply({ type: "Delivered", upto: 0 });
    const broken: State = { ...b.state, run: { phase: "idle" } };
    assert.throws(() => checkStep(b.state, { ...step, state: broken }), InvariantError);
  });
});
