/**
 * Calls that wait for their machines: what the gateway is told of them, and what becomes of them when a machine is back (rules OM3, OM4).
 * A call leaves the wait once, by the report that is open. PURE.
 */
import { noLongerPossible, tooManyWait } from "../../../calls/closings.ts";
import { awaitApproval, isAwaitingNode, type OpenCall, planCall, sameTarget, type WaitingCall } from "../../../calls/open-call.ts";
import { type Draft, open, settle } from "../draft.ts";
import type { EventOf, LookedCall, CurrentDecision } from "../event.ts";
import { LIMITS } from "../limits.ts";
import { waitsEffectId } from "../ids.ts";
import type { Acting, Run } from "../state.ts";
import type { TransitionName } from "../transitions.ts";
import { withCalls } from "./acting.ts";
import { dispatchOf, planOf, targetOf } from "./approving.ts";
import { closeCall } from "./ending.ts";
import { announce, isAwaiting, newQuestion } from "./questions.ts";

/** The calls that wait, and how often their machines may have come back. */
const keyOf = (run: Run): string =>
  run.phase === "acting" ? run.calls.flatMap((call) => (isAwaitingNode(call) ? [`${call.callId}#${call.looks}`] : [])).join(" ") : "";

/** Opens a report when the calls that wait are others than before, and the last one when none waits any more. */
export function reportWaits(d: Draft): void {
  if (keyOf(d.before.run) === keyOf(d.state.run)) return;
  const earlier = d.state.outbox.find(({ type }) => type === "AwaitNodes");
  if (earlier) settle(d, earlier.id);
  const revision = (d.state.waitRevision ?? 0) + 1;
  d.state.waitRevision = revision;
  open(d, { type: "AwaitNodes", id: waitsEffectId(revision), revision });
}

/** The machines of these calls are connected, and the policy was asked. */
export function nodesLooked(d: Draft, event: EventOf<"NodesLooked">): void {
  if (!d.state.outbox.some(({ id }) => id === event.effectId)) return;
  for (const looked of event.calls) {
    const { run } = d.state;
    const call = run.phase === "acting" ? run.calls.find(({ callId }) => callId === looked.callId) : undefined;
    if (run.phase === "acting" && call && isAwaitingNode(call)) leaveWait(d, run, call, looked);
  }
}
function leaveWait(d: Draft, run: Acting, call: WaitingCall, { current }: LookedCall): void {
  const close = (name: TransitionName, closing: Parameters<typeof closeCall>[3]): void => {
    closeCall(d, run, call, closing);
    withCalls(
      d,
      name,
      run,
      run.calls.filter((other) => other !== call),
    );
  };
  if (current === undefined) return close("waitNotKept", tooManyWait(call));
  const { target, binding, args } = current;
  if (target.kind === "none") return close("waitEndsInDenial", noLongerPossible(target.reason, target.message));
  if (!sameTarget(call.target, targetOf(target)))
    return close("waitEndsInDenial", noLongerPossible("tool.unknown", `Not run: ${call.name} is another tool now. Make the call again.`));
  const instead = (name: TransitionName, next: OpenCall): void =>
    withCalls(
      d,
      name,
      run,
      run.calls.map((other) => (other === call ? next : other)),
    );
  // A machine that leaves before the hand-over lets the call wait for the rest of its time.
  const plan = { ...planOf(call.callId, call.index, call.name, target), waitMs: Math.max(0, call.deadline - d.at.now) };
  const { allowed } = call;
  const isAllowed = allowed !== undefined && allowed.hash === binding.hash && allowed.policy === binding.policy;
  if (target.ask === undefined || isAllowed) {
    const planned = planCall(isAllowed ? { ...plan, allowed } : plan, d.at.now);
    open(d, dispatchOf(run, run.assistantSeq, planned, isAllowed ? { ...target, rule: `approval:${allowed.code}` } : target));
    return instead("waitEndsInCall", planned);
  }
  if (run.calls.filter(isAwaiting).length >= LIMITS.approvalsOpen)
    return close("waitEndsInDenial", noLongerPossible("approval.too_many", tooManyText(call)));
  asked(d, run, call, { target, binding, args, ask: target.ask, plan }, instead);
}
function asked(
  d: Draft,
  run: Acting,
  call: WaitingCall,
  {
    args,
    binding,
    ask,
    plan,
  }: CurrentDecision & { readonly ask: Parameters<typeof newQuestion>[2]; readonly plan: Parameters<typeof awaitApproval>[0] },
  instead: (name: TransitionName, next: OpenCall) => void,
): void {
  const question = awaitApproval(plan, newQuestion(d, call.callId, ask, binding, run.calls), d.at.now);
  announce(d, run, question, args);
  instead("waitEndsInQuestion", question);
}
const tooManyText = ({ name }: WaitingCall): string =>
  `Not run: ${name} needs the owner's approval, and ${LIMITS.approvalsOpen} other questions of this conversation wait already.`;
