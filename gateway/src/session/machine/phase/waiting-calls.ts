/** Calls whose machine is not connected: the begin of their wait, and what the owner is told of it (rules OM1, OM6). PURE. */
import { awaitNode, type CallPlan, isAwaitingNode, nodeOf, type OpenCall, tellAt, type WaitingCall } from "../../../calls/open-call.ts";
import { durationText } from "../../../calls/wait.ts";
import { isUnsure } from "../../../ports/taint.ts";
import { type Draft, appendNotice, settle, status, take } from "../draft.ts";
import { dispatchEffectId } from "../ids.ts";
import type { Acting, RunCore } from "../state.ts";
import { openReply } from "./replies.ts";

/** Until `until` at most, on the session's clock. */
export function beginWait(d: Draft, run: Pick<RunCore, "runId" | "step">, plan: Omit<CallPlan, "deadlineMs">, until: number): WaitingCall {
  const { now, wall } = d.at;
  const heard = isUnsure(d.state.taint) ? d.state.taint : undefined;
  const call = awaitNode(plan, { now, until, wall, heard });
  status(d, run.runId, run.step, `${nodeOf(call)} is not connected: ${call.name} waits for it, for at most ${durationText(until - now)}.`);
  return call;
}
/** The call could not be handed over, and no earlier hand-over can have reached its machine. */
export function waitInstead(d: Draft, run: Acting, call: OpenCall, until: number): WaitingCall {
  settle(d, dispatchEffectId(run, call));
  return beginWait(d, run, call, until);
}
/** The call's machine may be back: the report that is opened for it asks the policy. */
export function lookAgain(call: OpenCall): OpenCall {
  return isAwaitingNode(call) ? { ...call, looks: call.looks + 1 } : call;
}

/**
 * Tells the owner once of the calls that have waited for a minute: by a notice of the conversation, and in their own direct chat when the
 * run came from there. Returns the run with the calls marked.
 */
export function tellWaits(d: Draft, run: Acting): Acting {
  const { now } = d.at;
  const isDue = (call: OpenCall): call is WaitingCall => isAwaitingNode(call) && call.told === undefined && now >= tellAt(call);
  const due = run.calls.filter(isDue);
  if (due.length === 0) return run;
  take(d, "waitTold");
  const open = due.filter((call) => now < call.deadline);
  if (open.length > 0) {
    const { seq } = appendNotice(d, { notice: "note", runId: "", text: toldText(open, now) });
    const { reply, origin } = run;
    if (reply?.peer.kind === "dm" && origin.kind === "channel" && origin.role === "owner")
      openReply(d, reply, `reply/w${seq}`, `${d.state.identity.ref}/w${seq}`, seq);
  }
  return { ...run, calls: run.calls.map((call) => (isDue(call) ? { ...call, told: true } : call)) };
}
function toldText(calls: readonly WaitingCall[], now: number): string {
  const machines = [...new Set(calls.flatMap((call) => nodeOf(call) ?? []))];
  const names = [...new Set(calls.map(({ name }) => name))];
  const left = Math.max(...calls.map(({ deadline }) => deadline - now));
  const [are, wait, them] = [
    machines.length === 1 ? "is" : "are",
    names.length === 1 ? "waits" : "wait",
    machines.length === 1 ? "it" : "them",
  ];
  const start = machines.map((machine) => `\`gsv node\` on ${machine}`).join(" and ");
  return `${machines.join(" and ")} ${are} not connected. ${names.join(", ")} ${wait} for ${them}, for ${durationText(left)} more. Start ${start}, or end the run with /stop.`;
}
