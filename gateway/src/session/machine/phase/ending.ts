/** How runs end: an answer, an error in plain words, or a stop. Exactly one of them for each run. PURE. */
import type { ErrorReason } from "../../../../../protocol/gen/errors.ts";
import { enoughMore, type RunLimit, settingOf } from "../../../ports/spend.ts";
import { cancelled, waitEnded, withdrawn } from "../../../calls/closings.ts";
import { limitAdvice } from "../../../calls/limit-question.ts";
import { forSender, hintsOf } from "../../../calls/task-advice.ts";
import { type Closing, isAwaitingNode, isHeldBack, nodeOf, type OpenCall } from "../../../calls/open-call.ts";
import { type GsvError, sentence } from "../../../ports/result.ts";
import { type Draft, appendMessage, appendNotice, open, settle, take } from "../draft.ts";
import { CANCEL_CALLS, CLOSED_CALLS, LIMITS } from "../limits.ts";
import { cancelEffectId, dispatchEffectId, modelEffectId, providerCallId, replyName } from "../ids.ts";
import type { NoticeRow } from "../log.ts";
import { withLost } from "./steps.ts";
import type { Acting, ActiveRun, IncomingMessage, RunCore, Shortage } from "../state.ts";
import type { TransitionName } from "../transitions.ts";
import { asked, endQuestion, isAwaiting } from "./questions.ts";
import { openReply } from "./replies.ts";

/** Makes the session idle. The end of the step starts the work that waits (`startWaiting`). */
export function rest(d: Draft, name?: TransitionName): void {
  if (name !== undefined) take(d, name);
  d.state.run = { phase: "idle" };
}

/** A delegated task has ended whole with its report: no background command of it goes on, or wakes its conversation again (rule DG5). */
function endDelegated(d: Draft, { origin }: Pick<ActiveRun, "origin">): void {
  const { processes = [] } = d.state;
  if (origin.kind !== "task" || origin.delegation === undefined || processes.length === 0) return;
  cancelOnNodes(
    d,
    processes.map(({ callId, nodeId }) => ({ callId, target: { kind: "node", nodeId } })),
    "The task has ended.",
  );
  d.state.processes = [];
}

/** The final answer is in the log already, as the row `seq`. */
export function endWithAnswer(d: Draft, run: ActiveRun, seq: number): void {
  endDelegated(d, run);
  rest(d, "answered");
  d.state.updatedAt = d.at.wall;
  reply(d, run, seq);
}
/** Opens the reply of a run that a platform started, in the commit that ends the run (promise P9). */
function reply(d: Draft, { reply: route, alsoTo = [], ordinal }: Pick<ActiveRun, "reply" | "alsoTo" | "ordinal">, seq: number): void {
  const name = replyName(d.state.identity.ref, ordinal);
  if (route) openReply(d, route, `reply/r${ordinal}`, name, seq);
  for (const [index, other] of alsoTo.entries()) openReply(d, other, `reply/r${ordinal}.${index + 1}`, `${name}.${index + 1}`, seq);
}
/** For a message that was removed from the queue: it has no run, so the id of the reply comes from the notice. */
export function replyUnbegun(d: Draft, { reply: route }: IncomingMessage, seq: number): void {
  if (route) openReply(d, route, `reply/q${seq}`, `${d.state.identity.ref}/q${seq}`, seq);
}
/** The calls of the model that the step made in vain (rule AU8). */
const failedOf = (run: ActiveRun): Pick<NoticeRow, "failed"> => (run.phase !== "acting" && run.failed ? { failed: run.failed } : {});
export function endWithError(d: Draft, name: TransitionName, run: ActiveRun, cause: GsvError): void {
  const error = forSender(cause, run.origin);
  rest(d, name);
  closeEffects(d, run, "The run ended.");
  endDelegated(d, run);
  const { seq } = appendNotice(d, {
    notice: "error",
    runId: run.runId,
    text: sentence(error),
    reason: error.reason,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    usage: run.spent,
    ...failedOf(run),
    // The model of a guest's conversation would say what it knows.
    forModel: `The previous run ended early${d.state.identity.isOwnersSession ? `: ${sentence(error)}` : "."}`,
  });
  d.state.updatedAt = d.at.wall;
  reply(d, run, seq);
}
/** Returns how many calls were cancelled. */
export function endByAbort(d: Draft, run: ActiveRun, why: string): number {
  const tried = run.phase === "thinking" ? withLost(d, run, "run.aborted") : run;
  rest(d);
  if (run.phase === "paused") endQuestion(d, asked(run), { ended: "withdrawn" });
  const count = closeEffects(d, run, why);
  endDelegated(d, run);
  const { seq } = appendNotice(d, {
    notice: "aborted",
    runId: run.runId,
    text: why,
    reason: "run.aborted",
    usage: run.spent,
    ...failedOf(tried),
    forModel: `The previous run was stopped: ${why}`,
  });
  d.state.updatedAt = d.at.wall;
  reply(d, run, seq);
  return count;
}

/** Undefined: the run may call the model again. Not checked before the first call, when the limits are not known yet. */
export function overBudget(d: Draft, run: RunCore, nextStep: number): Shortage | undefined {
  const { budget, extra = {} } = run;
  if (!budget) return undefined;
  const short = (reason: ErrorReason, used: string, of: RunLimit, limit: number, missing: number): Shortage => {
    const [why, setting] = [`The run used up ${used}.`, settingOf(of, budget.defined)];
    const error = { reason, message: why, hint: limitAdvice(run.origin, { of, limit, setting }) };
    return { error, offer: { of, amount: enoughMore(limit, missing), why, setting } };
  };
  const steps = budget.steps + (extra.steps ?? 0);
  if (nextStep > steps)
    return short("budget.steps", `its ${steps} ${steps === 1 ? "step" : "steps"}`, "steps", budget.steps, nextStep - steps);
  const [ms, mostMs] = [d.at.now - run.startedAt - (run.waitedMs ?? 0), budget.ms + (extra.ms ?? 0)];
  if (ms > mostMs)
    return short("budget.time", `its time (${Math.round(ms / 1000)} s of ${Math.round(mostMs / 1000)} s)`, "ms", budget.ms, ms - mostMs);
  const [cost, mostCost] = [run.spent.costUsd ?? 0, budget.costUsd + (extra.costUsd ?? 0)];
  if (cost > mostCost) {
    const used = `its cost budget ($${cost.toFixed(2)} of $${mostCost.toFixed(2)})`;
    return short("budget.cost", used, "costUsd", budget.costUsd, cost - mostCost);
  }
  const [tokens, mostTokens] = [run.unpriced ?? 0, (budget.tokens ?? Number.POSITIVE_INFINITY) + (extra.tokens ?? 0)];
  if (tokens > mostTokens)
    return short("budget.cost", `its tokens (${tokens} of ${mostTokens})`, "tokens", budget.tokens ?? 0, tokens - mostTokens);
  return undefined;
}
export const noProgress = (d: Draft, run: ActiveRun): GsvError => ({
  reason: "run.no_progress",
  message: `The run made no progress for ${Math.round((d.at.now - run.progressAt) / 1000)} s and was ended.`,
  ...hintsOf("run.no_progress"),
});
export const isStuck = (d: Draft, run: ActiveRun): boolean => d.at.now - run.progressAt > LIMITS.noProgressMs;

function closeEffects(d: Draft, run: ActiveRun, why: string): number {
  if (run.phase === "thinking") {
    settle(d, modelEffectId(run));
    return 0;
  }
  if (run.phase === "paused") return 0;
  cancelOnNodes(
    d,
    run.calls.filter((call) => !isHeldBack(call)),
    why,
  );
  for (const call of run.calls) {
    if (isAwaiting(call)) endQuestion(d, call, { ended: "withdrawn" });
    closeCall(d, run, call, isAwaiting(call) ? withdrawn(why) : isAwaitingNode(call) ? waitEnded(call, why) : cancelled(why));
  }
  return run.calls.length;
}

/** Gives a call the session's own result. The caller takes the call off the run. */
export function closeCall(d: Draft, run: Acting, call: OpenCall, { text, outcome, reason, mayReportLate }: Closing): void {
  settle(d, dispatchEffectId(run, call));
  const { callId, name, target, taint } = call;
  appendMessage(d, {
    kind: "toolResult",
    runId: run.runId,
    step: run.step,
    callId,
    outcome,
    reason,
    durationMs: Math.max(0, d.at.now - call.startedAt),
    ...(isAwaitingNode(call) && reason === "node.offline" ? { away: nodeOf(call) ?? "" } : {}),
    message: {
      role: "toolResult",
      toolCallId: providerCallId(run, call.index),
      toolName: name,
      content: [{ type: "text", text: outcome === "unknown" ? `${text} Tell the user.` : text }],
      isError: true,
      timestamp: d.at.wall,
    },
  });
  if (!mayReportLate) return;
  const closed = { callId, target, name, runId: run.runId, outcome, ...(taint ? { taint } : {}) };
  d.state.closed = [...d.state.closed, closed].slice(-CLOSED_CALLS);
}

/** Tells the nodes of these calls to stop them. Calls that no node runs are skipped. */
export function cancelOnNodes(d: Draft, calls: readonly Pick<OpenCall, "callId" | "target">[], reason: string): void {
  const byNode = new Map<string, string[]>();
  for (const call of calls) {
    const nodeId = nodeOf(call);
    if (nodeId === undefined) continue;
    const ids = byNode.get(nodeId);
    if (ids) ids.push(call.callId);
    else byNode.set(nodeId, [call.callId]);
  }
  for (const [nodeId, callIds] of byNode) {
    d.state.cancelCount += 1;
    open(d, { type: "CancelTool", id: cancelEffectId(d.state.cancelCount), nodeId, callIds: callIds.slice(0, CANCEL_CALLS), reason });
  }
}
