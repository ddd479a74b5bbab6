/**
 * The session machine for tests: its state, log and queue as plain lists, and short names for events. Every step checks the
 * invariants, the transition, and that nothing was changed in place. Time, ids and random numbers are counters.
 */
import type { GsvError } from "../../src/ports/result.ts";
import assert from "node:assert/strict";
import type { Usage } from "../../../protocol/gen/types.ts";
import { type AssistantMessage, textOf } from "../../src/ports/messages.ts";
import type { MoreOffer } from "../../src/ports/spend.ts";
import type { SessionIdentity } from "../../src/ports/session.ts";
import type { ToolTarget } from "../../src/ports/tool-target.ts";
import type { Step } from "../../src/session/machine/draft.ts";
import type { EffectOf } from "../../src/session/machine/effect.ts";
import type { Answer, CallTarget, EventBody, ReplyCall, Stamp } from "../../src/session/machine/event.ts";
import { checkStep } from "../../src/session/machine/invariants.ts";
import { isMessageRow, type LogRow, type MessageRow } from "../../src/session/machine/log.ts";
import { reduce } from "../../src/session/machine/reduce.ts";
import {
  type Budget,
  type CutPlan,
  type IncomingMessage,
  newborn,
  type QueuedMessage,
  type State,
  type Thinking,
} from "../../src/session/machine/state.ts";
import { jsonBytes } from "../../src/session/machine/text.ts";
import { frontOf, type QueueFront } from "../../src/session/store/session-store.ts";
import { transitionProblem } from "../../src/session/machine/transitions.ts";

export const IDENTITY: SessionIdentity = { key: "agent:main:main", ref: "ref0000000", agentId: "main", isOwnersSession: true };
export const BUDGET = { steps: 50, ms: 1_800_000, costUsd: 1 };
export const USAGE: Usage = { input: 10, output: 5, total: 15, costUsd: 0.01 };

/** A session with a log and a queue, as plain lists. */
export class Bench {
  state: State = newborn({ identity: IDENTITY, sessionId: "s1", wall: 1_000_000 });
  readonly log: LogRow[] = [];
  readonly queue: QueuedMessage[] = [];
  readonly results = new Map<string, string>();
  now = 0;
  published = 0;
  settled = 0;
  jitter = 0.5;
  #ids = 0;
  #queued = 0;
  last: Step | undefined;
  /** A look at the current limits ends at once, with the limits of the run's last model call. */
  looksAtOnce = true;

  apply(body: EventBody): Step {
    const step = this.#apply(body);
    const { run } = this.state;
    if (this.looksAtOnce && run.phase === "thinking" && run.looksAtLimit && run.budget) this.look(run.budget);
    return step;
  }
  look(budget: Budget): Step {
    return this.#apply({ type: "LimitsKnown", effectId: this.effect("CallModel").id, budget });
  }
  #apply(body: EventBody): Step {
    const stamp: Stamp = {
      now: this.now,
      wall: 1_000_000 + this.now,
      jitter: this.jitter,
      freshId: `id${++this.#ids}`,
      published: this.published,
      settled: this.settled,
      ...((this.state.queue.steered ?? 0) > 0 ? frontOf(this.queue) : plainFront(this.queue)),
      named: body.type === "Abort" ? this.queue.find((message) => message.incoming.runId === body.runId) : undefined,
    };
    const frozen = JSON.stringify(this.state);
    const step = reduce(this.state, { ...body, ...stamp });
    assert.equal(JSON.stringify(this.state), frozen, "the old state was changed in place");
    if (step.state !== this.state) {
      checkStep(this.state, step);
      assert.equal(transitionProblem(this.state.run.phase, step.cause, step.transitions, step.state.run.phase), undefined);
    }
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
  say(id: string, more: Partial<IncomingMessage> = {}, whileBusy?: "steer" | "interrupt"): Answer | undefined {
    const incoming: IncomingMessage = {
      messageId: id,
      runId: `run-${id}`,
      origin: { kind: "client", clientId: "t" },
      message: { role: "user", content: `say ${id}`, timestamp: 0 },
      directives: {},
      ...more,
    };
    const bytes = jsonBytes(incoming);
    return this.apply({ type: "UserMessage", identity: IDENTITY, incoming, bytes, ...(whileBusy ? { whileBusy } : {}) }).answer;
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
  fail(
    more: {
      retryable?: boolean;
      retryAfterMs?: number;
      models?: number;
      error?: GsvError;
      reason?: "model.overloaded" | "model.auth";
      offer?: MoreOffer;
    } = {},
  ): Step {
    return this.apply({
      type: "ModelFailed",
      effectId: this.effect("CallModel").id,
      error: more.error ?? { reason: more.reason ?? "model.overloaded", message: "The model is overloaded." },
      retryable: more.retryable ?? true,
      models: more.models ?? 1,
      streamed: false,
      budget: BUDGET,
      ...(more.retryAfterMs === undefined ? {} : { retryAfterMs: more.retryAfterMs }),
      ...(more.offer ? { offer: more.offer } : {}),
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
/** What a store gives of a queue without messages for a run. */
function plainFront(queue: readonly QueuedMessage[]): QueueFront {
  const at = queue.findIndex(({ incoming }) => !incoming.quiet);
  return at === -1 ? { quiet: [...queue], head: undefined } : { quiet: queue.slice(0, at), head: queue[at] };
}
export const target = (over: Partial<Extract<CallTarget, { kind: "node" }>> = {}): CallTarget => ({
  kind: "node",
  nodeId: "lap",
  tool: "Bash",
  ledger: true,
  idempotent: false,
  timeoutMs: 60_000,
  deadlineMs: 60_000,
  ...over,
});
export const call = (over: Partial<Extract<CallTarget, { kind: "node" }>> = {}, name = "lap__Bash"): ReplyCall => ({
  providerId: "call_0",
  name,
  arguments: { command: "ls" },
  target: target(over),
});
export const CALL = "ref0000000/r1/1/0";
export const LAP: ToolTarget = { kind: "node", nodeId: "lap" };
