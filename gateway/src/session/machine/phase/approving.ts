/** Calls that wait for the owner's word: the answer, and what follows from it. A question ends exactly once. PURE. */
import type { Binding } from "../../../calls/approval.ts";
import { denied, noLongerPossible } from "../../../calls/closings.ts";
import { hintsOf } from "../../../calls/task-advice.ts";
import {
  awaitApproval,
  type AwaitingCall,
  type CallPlan,
  type Closing,
  isRepeatable,
  type OpenCall,
  planCall,
  sameTarget,
} from "../../../calls/open-call.ts";
import type { ToolTarget } from "../../../ports/tool-target.ts";
import { type Draft, open, take } from "../draft.ts";
import type { DispatchTool } from "../effect.ts";
import type { Answer, CallTarget, EventOf } from "../event.ts";
import { DENIED_CALLS, LIMITS } from "../limits.ts";
import { dispatchEffectId } from "../ids.ts";
import type { Acting, EndedQuestion, RunCore } from "../state.ts";
import { head } from "../text.ts";
import type { TransitionName } from "../transitions.ts";
import { closeCall, endWithError } from "./ending.ts";
import { limitAnswered } from "./limit.ts";
import { announce, endQuestion, isAwaiting, newQuestion } from "./questions.ts";

export type Possible = Exclude<CallTarget, { readonly kind: "none" }>;

export const targetOf = (resolved: Possible): ToolTarget =>
  resolved.kind === "node" ? { kind: "node", nodeId: resolved.nodeId } : { kind: "native" };
export function planOf(callId: string, index: number, name: string, resolved: Possible): CallPlan {
  const { idempotent, deadlineMs, taint } = resolved;
  const ledger = resolved.kind === "node" && resolved.ledger;
  const wait = resolved.kind === "node" && resolved.waitMs !== undefined ? { waitMs: resolved.waitMs } : {};
  const isFileTool = resolved.kind === "node" && resolved.isFileTool ? { isFileTool: resolved.isFileTool } : {};
  const isWait = resolved.kind === "native" && resolved.isWait ? { isWait: resolved.isWait } : {};
  return {
    callId,
    index,
    name,
    target: targetOf(resolved),
    ledger,
    idempotent,
    ...isWait,
    deadlineMs,
    ...wait,
    ...(taint ? { taint } : {}),
    ...isFileTool,
  };
}
/** The effect that hands the call over. `seq`: the row with its arguments. */
export function dispatchOf(run: Pick<RunCore, "ordinal" | "step">, seq: number, call: OpenCall, resolved: Possible): DispatchTool {
  const { callId, index, target } = call;
  const { tool, timeoutMs, rule } = resolved;
  return {
    type: "DispatchTool",
    id: dispatchEffectId(run, call),
    callId,
    seq,
    index,
    target,
    tool,
    timeoutMs,
    ...(rule === undefined ? {} : { rule }),
    repeatable: isRepeatable(call),
    ...(resolved.kind === "node" && resolved.sandbox !== undefined ? { sandbox: resolved.sandbox } : {}),
    ...(resolved.kind === "node" && resolved.withoutWait ? { withoutWait: true } : {}),
    ...(resolved.kind === "native" && resolved.expect !== undefined ? { expect: resolved.expect } : {}),
  };
}

/** The first answer to a question counts; a later one gets the result of the first, and an unknown code changes nothing. */
export function approvalAnswered(d: Draft, event: EventOf<"ApprovalAnswered">, done: Done): void {
  const { run } = d.state;
  if (run.phase === "paused" && run.question.code === event.code && (event.hash ?? run.question.hash) === run.question.hash)
    return limitAnswered(d, run, event);
  const call = run.phase === "acting" ? run.calls.find((open) => isAwaiting(open) && open.approval.code === event.code) : undefined;
  if (run.phase !== "acting" || !call || !isAwaiting(call)) {
    const before = d.state.questions?.findLast(({ code }) => code === event.code);
    d.answer = before ? { ...told(before), before: before.at } : { type: "unknown" };
    return;
  }
  if (event.hash !== undefined && event.hash !== call.approval.hash) {
    d.answer = { type: "unknown" };
    return;
  }
  if (event.answer === "deny") return deny(d, run, call, event, done);
  // Without the current decision no one knows whether the call may be made.
  if (event.current === undefined) {
    d.answer = { type: "unknown" };
    return;
  }
  allow(d, run, call, event, event.current, done);
}
/** The run with other calls, by a transition. */
export type Done = (d: Draft, name: TransitionName, run: Acting, calls: readonly OpenCall[]) => void;

const told = ({ ended, by, again }: EndedQuestion): Extract<Answer, { readonly type: "approval" }> => ({
  type: "approval",
  ended,
  ...(by === undefined ? {} : { by }),
  ...(again === undefined ? {} : { code: again }),
});
const without = (run: Acting, call: OpenCall): readonly OpenCall[] => run.calls.filter((other) => other !== call);
const instead = (run: Acting, call: OpenCall, next: OpenCall): readonly OpenCall[] =>
  run.calls.map((other) => (other === call ? next : other));

function deny(d: Draft, run: Acting, call: AwaitingCall, { by, word }: EventOf<"ApprovalAnswered">, done: Done): void {
  d.answer = told(endQuestion(d, call, { ended: "denied", by }));
  closeCall(d, run, call, denied(call, word === undefined ? undefined : head(word, LIMITS.approvalWordChars)));
  closedAsDenied(d, "approvalDenied", run, [call], without(run, call), done);
}
function allow(
  d: Draft,
  run: Acting,
  call: AwaitingCall,
  { by, choice }: EventOf<"ApprovalAnswered">,
  { target, binding, args }: NonNullable<EventOf<"ApprovalAnswered">["current"]>,
  done: Done,
): void {
  const { approval } = call;
  if (target.kind === "none") {
    return impossible(d, run, call, by, noLongerPossible(target.reason, target.message), done);
  }
  const isAsAsked = binding.policy === approval.policy && binding.hash === approval.hash && sameTarget(call.target, targetOf(target));
  if (!isAsAsked && target.ask !== undefined) return askAgain(d, run, call, target.ask, { target, binding, args }, done);
  if (!sameTarget(call.target, targetOf(target))) {
    const text = `Not run: ${call.name} is another tool now. Make the call again.`;
    return impossible(d, run, call, by, noLongerPossible("tool.unknown", text), done);
  }
  // Only what was offered can be granted, and only with the answer that counts.
  const granted = choice === undefined || approval.offer === undefined ? {} : { choice };
  d.answer = told(endQuestion(d, call, { ended: "allowed", by, ...granted }));
  // From the current target: a machine may have come back with other abilities since the question was asked.
  const { code, hash, policy } = approval;
  const plan = planOf(call.callId, call.index, call.name, target);
  const planned = planCall(plan.waitMs === undefined ? plan : { ...plan, allowed: { code, hash, policy } }, d.at.now);
  open(d, dispatchOf(run, run.assistantSeq, planned, { ...target, rule: `approval:${code}` }));
  done(d, "approvalAllowed", run, instead(run, call, planned));
}
/** The owner learns why, as the model does. */
function impossible(d: Draft, run: Acting, call: AwaitingCall, by: string, closing: Closing, done: Done): void {
  d.answer = { ...told(endQuestion(d, call, { ended: "void", by })), why: closing.text };
  closeCall(d, run, call, closing);
  done(d, "approvalVoid", run, without(run, call));
}
/** The call is no longer the one that was asked about, so the answer is void. */
function askAgain(
  d: Draft,
  run: Acting,
  call: AwaitingCall,
  ask: NonNullable<Possible["ask"]>,
  { target, binding, args }: { readonly target: Possible; readonly binding: Binding; readonly args: Readonly<Record<string, unknown>> },
  done: Done,
): void {
  const approval = newQuestion(d, call.callId, ask, binding, run.calls);
  const again = awaitApproval(planOf(call.callId, call.index, call.name, target), approval, d.at.now);
  d.answer = told(endQuestion(d, call, { ended: "asked_again", again: approval.code }));
  announce(d, run, again, args);
  done(d, "approvalAskedAgain", run, instead(run, call, again));
}

/** Calls of the run were denied and closed. The same call denied again and again ends the run. */
export function closedAsDenied(
  d: Draft,
  name: TransitionName,
  run: Acting,
  calls: readonly AwaitingCall[],
  left: readonly OpenCall[],
  done: Done,
): void {
  let counts = run.denied ?? [];
  let repeated: AwaitingCall | undefined;
  for (const call of calls) {
    const { argsHash } = call.approval;
    const times = (counts.find((entry) => entry.argsHash === argsHash)?.times ?? 0) + 1;
    counts = [...counts.filter((entry) => entry.argsHash !== argsHash), { argsHash, times }].slice(-DENIED_CALLS);
    if (times >= LIMITS.approvalDenials) repeated = call;
  }
  const counted: Acting = { ...run, denied: counts };
  if (!repeated) return done(d, name, counted, left);
  take(d, name);
  endWithError(
    d,
    "deniedTooOften",
    { ...counted, calls: left },
    {
      reason: "approval.repeated",
      message: `${repeated.name} was denied ${LIMITS.approvalDenials} times with the same arguments, so the run was ended.`,
      ...hintsOf("approval.repeated"),
    },
  );
}
