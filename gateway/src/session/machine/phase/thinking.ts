/** The phase `thinking`, with a model call: its answers, failures and lost calls. PURE. */
import { callsDeadline, awaitApproval, isAwaitingNode, isHeldBack, type OpenCall, planCall } from "../../../calls/open-call.ts";
import { type AssistantMessage, textOf, type ToolCallBlock } from "../../../ports/messages.ts";
import { hintsOf } from "../../../calls/task-advice.ts";
import type { GsvError } from "../../../ports/result.ts";
import type { SpendSum } from "../../../ports/spend.ts";
import { type Draft, addUsage, append, appendMessage, countSpent, countUsage, open, settle, status, take } from "../draft.ts";
import type { DispatchTool } from "../effect.ts";
import type { EventOf, ReplyCall } from "../event.ts";
import { CALL_NAME_CHARS, CALLS_PER_REPLY, LIMITS, MESSAGE_ROW_BYTES, PROVIDER_ID_CHARS } from "../limits.ts";
import type { AssistantRow, CallRef } from "../log.ts";
import { countRepeats, MOST_REPEATS, NOTED_REPEATS, repeatNote } from "../repeats.ts";
import { callIdOf, modelEffectId, providerCallId } from "../ids.ts";
import type { Acting, ActiveRun, Thinking, WaitingRun } from "../state.ts";
import { fitAssistant, head, jsonBytes } from "../text.ts";
import { saysNothing } from "../../../prompt/heartbeat.ts";
import { dispatchOf, planOf } from "./approving.ts";
import { endWithAnswer, endWithError, isStuck, noProgress, overBudget } from "./ending.ts";
import { backoff, makeHeadroom } from "./archive-stages.ts";
import { announce, isAwaiting, newQuestion } from "./questions.ts";
import { askLimits, nextStep, usedUp } from "./limit.ts";
import { laterAttempt, runBase, sameStep, think, withFailed, withLost } from "./steps.ts";
import { beginWait } from "./waiting-calls.ts";

/** The thinking run that this completion belongs to; undefined drops the completion. */
function current(d: Draft, effectId: string): Thinking | undefined {
  const { run } = d.state;
  return run.phase === "thinking" && modelEffectId(run) === effectId ? run : undefined;
}

export function modelReplied(d: Draft, event: EventOf<"ModelReplied">): void {
  const run = current(d, event.effectId);
  if (!run) return;
  // Files alone are an answer.
  if (event.calls.length === 0 && run.files === undefined && textOf(event.message.content).trim() === "") {
    const reason = "model.bad_answer";
    const error: GsvError = { reason, message: "The model's answer was empty.", ...hintsOf(reason) };
    const { usage, spent, budget, sent } = event;
    // How many models there are is not known here, so no further one is tried.
    const had = { ...(spent ? { spent } : {}), ...(sent ? { sent } : {}) };
    failed(d, run, { error, retryable: true, usage, ...had, budget, models: 0, streamed: false });
    return;
  }
  settle(d, event.effectId);
  countUsage(d, event.usage);
  countSpent(d, event.spent);
  const spent = addUsage(run.spent, event.usage);
  const went: Thinking = { ...withUnpriced(run, event.spent), spent, budget: event.budget, progressAt: d.at.now };
  if (event.calls.length === 0) {
    const { message } = fitAssistant(
      { ...event.message, content: event.message.content.filter((block) => block.type !== "toolCall") },
      MESSAGE_ROW_BYTES,
    );
    const swallowed = isSwallowed(run, textOf(message.content));
    const seq = appendAnswer(d, run, event, {
      message,
      calls: [],
      runUsage: spent,
      ...(run.files ? { files: run.files } : {}),
      ...(swallowed ? { swallowed } : {}),
    });
    // The provider has counted what the history has no more.
    if (swallowed) delete d.state.context;
    endWithAnswer(d, run, seq);
    return;
  }
  act(d, went, event);
}

/** With what its call was sent, and the calls before it (rule AU8). Returns its place in the log. */
function appendAnswer(
  d: Draft,
  { runId, step, attempt, failed }: Thinking,
  event: EventOf<"ModelReplied">,
  said: Pick<AssistantRow, "message" | "calls" | "runUsage" | "files" | "swallowed">,
): number {
  const { seq } = append(d, {
    kind: "assistant",
    runId,
    step,
    attempt,
    ...said,
    ...(event.sent ? { sent: event.sent } : {}),
    ...(failed ? { failed } : {}),
  });
  knowContext(d, event, seq);
  return seq;
}

/** A heartbeat with nothing to say (rule HB5). */
const isSwallowed = ({ origin, files }: Thinking, text: string): boolean =>
  origin.kind === "schedule" && origin.heartbeat === true && files === undefined && saysNothing(text);

/** Counts as progress, because a recording may take as long as a call. */
export function transcribed(d: Draft, { effectId, row }: EventOf<"Transcribed">): void {
  const run = current(d, effectId);
  if (!run || row.seq < d.state.contextFrom || row.seq >= d.state.nextSeq || jsonBytes(row) > LIMITS.rowBytes) return;
  take(d, "recordingTranscribed");
  d.amend.push(row);
  d.state.run = { ...run, progressAt: d.at.now };
}

/** Stores the provider's token count, which is more exact than an estimate. Some providers count nothing. */
function knowContext(d: Draft, { usage, message, asked }: EventOf<"ModelReplied">, seq: number): void {
  const tokens = usage.input + usage.output + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0);
  if (usage.input + (usage.cacheRead ?? 0) + (usage.cacheWrite ?? 0) > 0)
    d.state.context = { tokens, seq, model: asked ?? `${message.provider}/${message.model}` };
  else delete d.state.context;
}

/** Turns the answer's calls into rows and effects. Calls that can't be made become error results, and the run continues. */
function act(d: Draft, before: Thinking, event: EventOf<"ModelReplied">): void {
  const calls = event.calls
    .slice(0, CALLS_PER_REPLY)
    .map((call) => ({ ...call, name: head(call.name, CALL_NAME_CHARS), providerId: head(call.providerId, PROVIDER_ID_CHARS) }));
  const { counts, last } = countRepeats(before.repeats, calls);
  const run: Thinking = { ...before, ...(last ? { repeats: last } : {}) };
  const { message, lost } = fitAssistant(withOwnIds(event.message, calls, run), MESSAGE_ROW_BYTES);
  const refs: CallRef[] = calls.map((call, index) => ({
    callId: callIdOf(d.state.identity.ref, run, index),
    providerId: call.providerId,
    name: call.name,
  }));
  const seq = appendAnswer(d, run, event, { message, calls: refs });
  if (Math.max(...counts) >= MOST_REPEATS) return stopRepeating(d, run, calls, counts);
  if (calls.filter(needsAnswer).length > LIMITS.approvalsOpen) return tooManyQuestions(d, run, calls);
  const repeated: Record<number, number> = {};
  const openCalls: OpenCall[] = [];
  const effects: DispatchTool[] = [];
  for (const [index, call] of calls.entries()) {
    const callId = callIdOf(d.state.identity.ref, run, index);
    const wrong = refusal(call, index, lost, event.message.stopReason);
    if (wrong !== undefined || call.target.kind === "none") {
      const { reason, text } = wrong ?? refusedTarget(call);
      const count = counts[index] ?? 0;
      refuseCall(d, run, index, call, reason, count >= NOTED_REPEATS ? `${text}\n${repeatNote(count)}` : text);
      continue;
    }
    const { target: resolved } = call;
    const count = counts[index] ?? 0;
    if (count >= NOTED_REPEATS) repeated[index] = count;
    const plan = planOf(callId, index, call.name, resolved);
    if (resolved.kind === "node" && resolved.isAway && plan.waitMs !== undefined) {
      openCalls.push(beginWait(d, run, plan, d.at.now + plan.waitMs));
      continue;
    }
    if (resolved.ask !== undefined && call.binding !== undefined) {
      openCalls.push(awaitApproval(plan, newQuestion(d, callId, resolved.ask, call.binding, openCalls), d.at.now));
      continue;
    }
    const planned = planCall(plan, d.at.now);
    openCalls.push(planned);
    effects.push(dispatchOf(run, seq, planned, resolved));
  }
  if (openCalls.length === 0) {
    nextStep(d, "allCallsRefused", run);
    return;
  }
  for (const effect of effects) open(d, effect);
  take(d, "callsMade");
  const asked = openCalls.filter(isAwaiting);
  const acting: Acting = {
    ...runBase(run),
    phase: "acting",
    assistantSeq: seq,
    calls: openCalls,
    ...(Object.keys(repeated).length === 0 ? {} : { repeated }),
    deadline: callsDeadline(openCalls),
    ...(openCalls.some(isHeldBack) ? { waitingSince: d.at.now } : {}),
  };
  d.state.run = acting;
  if (openCalls.some(isAwaitingNode)) take(d, "callsWait");
  if (asked.length > 0) take(d, "approvalAsked");
  for (const call of asked) announce(d, acting, call, calls[call.index]?.arguments ?? {});
}
/** The session's own result of a call that no tool gets. */
function refuseCall(d: Draft, run: Thinking, index: number, call: Pick<ReplyCall, "name">, reason: string, text: string): void {
  appendMessage(d, {
    kind: "toolResult",
    runId: run.runId,
    step: run.step,
    callId: callIdOf(d.state.identity.ref, run, index),
    outcome: "error",
    reason,
    durationMs: 0,
    message: {
      role: "toolResult",
      toolCallId: providerCallId(run, index),
      toolName: call.name,
      content: [{ type: "text", text }],
      isError: true,
      timestamp: d.at.wall,
    },
  });
}
/** The model is in a loop (rule SP9): no call of this answer is made, and the run ends. */
function stopRepeating(d: Draft, run: Thinking, calls: readonly ReplyCall[], counts: readonly number[]): void {
  for (const [index, call] of calls.entries())
    refuseCall(d, run, index, call, "budget.loop", "Not run: the same call was made too often in a row, so the run ended.");
  const name = calls[counts.findIndex((count) => count >= MOST_REPEATS)]?.name ?? "a tool";
  endWithError(d, "callRepeatedTooOften", run, {
    reason: "budget.loop",
    message: `The model made the same call of ${name} with the same arguments ${MOST_REPEATS} times in a row, so the run was ended.`,
    ...hintsOf("budget.loop"),
  });
}
const needsAnswer = ({ target }: ReplyCall): boolean =>
  target.kind !== "none" && target.ask !== undefined && !(target.kind === "node" && target.isAway);
function tooManyQuestions(d: Draft, run: Thinking, calls: readonly ReplyCall[]): void {
  const most = `more than ${LIMITS.approvalsOpen} approvals`;
  for (const [index, call] of calls.entries())
    refuseCall(d, run, index, call, "approval.too_many", `Not run: one answer needed ${most}. Do the work in smaller parts.`);
  endWithError(d, "tooManyQuestions", run, {
    reason: "approval.too_many",
    message: `One answer of the model needed ${most}, so the run was ended and nothing was run.`,
    hint: "Ask for the work in smaller parts.",
  });
}

/** Why the session itself refuses a call, before any tool runs. */
function refusal(
  call: ReplyCall,
  index: number,
  lost: readonly number[],
  stopReason: AssistantMessage["stopReason"],
): { readonly reason: string; readonly text: string } | undefined {
  if (index >= LIMITS.toolCallsPerStep) {
    return {
      reason: "tool.queue_full",
      text: `Not run: one answer may make at most ${LIMITS.toolCallsPerStep} calls. Make this call again in the next answer if it is still needed.`,
    };
  }
  if (stopReason === "length")
    return {
      reason: "tool.bad_args",
      text: "Not run: the answer was cut off at the token limit, so the arguments may be incomplete. Make the call again, shorter.",
    };
  if (lost.includes(index))
    return { reason: "tool.bad_args", text: "Not run: the arguments are too large. Write large content in several smaller calls." };
  if (needsAnswer(call) && call.binding === undefined) return { reason: "internal", text: "Not run: the question could not be asked." };
  const args: unknown = call.arguments;
  if (typeof args !== "object" || args === null || Array.isArray(args))
    return { reason: "tool.bad_args", text: "Not run: the arguments are not a JSON object." };
  return undefined;
}
function refusedTarget(call: ReplyCall): { readonly reason: string; readonly text: string } {
  return call.target.kind === "none" ? { reason: call.target.reason, text: call.target.message } : { reason: "internal", text: "Not run." };
}

/** The answer with our own call ids, because provider ids may be missing or repeated. Without the calls over CALLS_PER_REPLY. */
function withOwnIds(message: AssistantMessage, calls: readonly ReplyCall[], run: Pick<ActiveRun, "ordinal" | "step">): AssistantMessage {
  const block = (index: number, call: ReplyCall, old: ToolCallBlock | undefined): ToolCallBlock => {
    const args: unknown = call.arguments;
    const isObject = typeof args === "object" && args !== null && !Array.isArray(args);
    return { ...(old ?? {}), type: "toolCall", id: providerCallId(run, index), name: call.name, arguments: isObject ? call.arguments : {} };
  };
  let index = -1;
  const content: AssistantMessage["content"][number][] = [];
  for (const old of message.content) {
    if (old.type !== "toolCall") {
      content.push(old);
      continue;
    }
    index += 1;
    const call = calls[index];
    if (call) content.push(block(index, call, old));
  }
  const missing = calls.slice(index + 1).map((call, more) => block(index + 1 + more, call, undefined));
  return { ...message, content: [...content, ...missing] };
}

const withUnpriced = (run: Thinking, spent: SpendSum | undefined): Thinking =>
  spent === undefined || spent.tokens === 0 ? run : { ...run, unpriced: (run.unpriced ?? 0) + spent.tokens };

type Failure = Pick<
  EventOf<"ModelFailed">,
  "error" | "retryable" | "retryAfterMs" | "usage" | "spent" | "budget" | "models" | "streamed" | "plan" | "offer" | "sent"
>;
export function modelFailed(d: Draft, event: EventOf<"ModelFailed">): void {
  const run = current(d, event.effectId);
  if (run) failed(d, run, event);
}

/** Rule R2: four tries per model with growing waits, then the next model, then an error. */
function failed(d: Draft, before: Thinking, failure: Failure): void {
  settle(d, modelEffectId(before));
  if (failure.usage) countUsage(d, failure.usage);
  countSpent(d, failure.spent);
  const { sent, usage } = failure;
  const call = sent && { at: d.at.wall, reason: failure.error.reason, ...(usage ? { usage } : {}), sent };
  const tried = firstTrouble(d, before);
  const run: Thinking = {
    ...withUnpriced(call ? withFailed(tried, call) : tried, failure.spent),
    ...(failure.usage ? { spent: addUsage(before.spent, failure.usage) } : {}),
    ...(failure.budget ? { budget: failure.budget } : {}),
    ...(failure.streamed ? { progressAt: d.at.now } : {}),
  };
  if (failure.error.reason === "model.context_overflow") return overflowed(d, run, failure);
  if (failure.error.reason.startsWith("budget."))
    return usedUp(d, run, { error: failure.error, ...(failure.offer ? { offer: failure.offer } : {}) }, laterAttempt(run));
  if (!failure.retryable) return endWithError(d, "modelGaveUp", run, failure.error);
  const over = overBudget(d, run, run.step);
  // Without an answer of the gateway, the limits that are known count.
  if (over && run.looksAtLimit) return usedUp(d, run, over, withoutLook(laterAttempt(run)));
  if (over) return askLimits(d, "modelRetried", laterAttempt(run));
  if (isStuck(d, run)) return endWithError(d, "noProgress", run, noProgress(d, run));
  const tries = run.tries + 1;
  const retryAfter = failure.retryAfterMs ?? 0;
  const attempt = run.attempt + 1;
  if (tries < LIMITS.modelAttempts && retryAfter <= LIMITS.modelRetryAfterMaxMs) {
    const waitMs = Math.max(backoff(d, tries), retryAfter);
    status(d, run.runId, run.step, `${failure.error.message} Trying again in ${Math.max(1, Math.round(waitMs / 1000))} s.`);
    return think(d, "modelRetried", runBase(run), { ...sameStep(run), attempt, tries, waitMs });
  }
  if (run.modelIndex + 1 < failure.models) {
    status(d, run.runId, run.step, `${failure.error.message} Trying the next model.`);
    return think(
      d,
      "nextModelTried",
      { ...runBase(run), modelIndex: run.modelIndex + 1, progressAt: d.at.now },
      { ...sameStep(run), attempt, tries: 0, waitMs: 0 },
    );
  }
  endWithError(d, "modelGaveUp", run, failure.error);
}
const withoutLook = ({ looksAtLimit: _looked, ...next }: WaitingRun): WaitingRun => next;
/** Once per step: compacts the context, or shortens it for this call when nothing can be compacted. */
function overflowed(d: Draft, run: Thinking, failure: Failure): void {
  const overflows = (run.overflows ?? 0) + 1;
  if (overflows > 1)
    return endWithError(d, "contextTooLarge", run, {
      reason: "model.context_overflow",
      message: "The conversation does not fit the model, although it was made smaller.",
      ...hintsOf("model.context_overflow"),
      hint: "Send a shorter message, start a new conversation with /new, or choose a model with a larger window (`/model`, or set `model.contextWindow` to what it really takes).",
    });
  if (overBudget(d, run, run.step)) return askLimits(d, "modelRetried", laterAttempt(run));
  const again: Thinking = { ...run, overflows };
  if (failure.plan && makeHeadroom(d, again, failure.plan, "overflow")) return;
  shortened(d, again);
}
/** No headroom for an answer: compacts the oldest messages, then the run continues. */
export function contextFull(d: Draft, event: EventOf<"ContextFull">): void {
  const run = current(d, event.effectId);
  if (!run) return;
  settle(d, event.effectId);
  const known: Thinking = { ...run, budget: event.budget };
  if (makeHeadroom(d, known, event.plan, "pressure")) return;
  shortened(d, known);
}
/** The same step with what fits, when nothing more can be compacted. */
function shortened(d: Draft, run: Thinking): void {
  const { attempt, tries } = run;
  think(d, "contextShortened", runBase(run), { ...sameStep(run), attempt: attempt + 1, tries, compactionTried: true, waitMs: 0 });
}
/** Measures missing progress from a step's first failure, because a good answer may take longer than the limit. */
const firstTrouble = (d: Draft, run: Thinking): Thinking =>
  run.tries === 0 && run.restarts === 0 ? { ...run, progressAt: d.at.now } : run;

/** The call was lost with its incarnation, or its lease expired: repeats the step under a new attempt number. */
export function restartThinking(d: Draft, before: Thinking): void {
  settle(d, modelEffectId(before));
  const run = withLost(d, firstTrouble(d, before), "interrupted");
  const restarts = run.restarts + 1;
  if (restarts > LIMITS.recoveryAttempts || isStuck(d, run)) return endWithError(d, "noProgress", run, noProgress(d, run));
  status(d, run.runId, run.step, "Resuming after an interruption.");
  think(d, "modelCallRestarted", runBase(run), { ...sameStep(run), attempt: run.attempt + 1, tries: run.tries, restarts, waitMs: 0 });
}
