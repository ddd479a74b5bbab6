/**
 * PURE. The record of one tool call that has no result yet. Sessions and client calls keep the same record and ask ./rules.ts what
 * happens to it. It says nothing about storage, sockets or runs.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { Taint } from "../ports/taint.ts";
import type { ToolTarget } from "../ports/tool-target.ts";
import type { Approval, Binding } from "./approval.ts";

interface CallBase {
  readonly callId: string;
  /** Position among the calls of one model answer, from 0; 0 for a call that stands alone. */
  readonly index: number;
  /** As the caller knows the tool: `laptop__Bash`, `gsv__ReadFile`. */
  readonly name: string;
  readonly target: ToolTarget;
  /** The node keeps a ledger and starts a callId at most once, so the call may be handed over any number of times. */
  readonly ledger: boolean;
  /** The tool changes nothing, so the call may run more than once. */
  readonly idempotent: boolean;
  /** The call waits for work that goes on without it, so that it may be started again any number of times. */
  readonly isWait?: true;
  /** The label of its result. Absent: not known. */
  readonly taint?: Taint;
  /** A machine's own tool for files: an error and an empty result of it have no text of others (TA17). */
  readonly isFileTool?: true;
  /** Rises by one each time the call is handed over again on purpose. */
  readonly dispatch: number;
  /** Ms on the caller's clock. */
  readonly startedAt: number;
  readonly deadline: number;
  /** Until then the call may wait for its machine, before the first hand-over. Absent: not at all. */
  readonly waitUntil?: number;
  /** With `waitUntil`: the owner's answer that allows the call. It holds after the wait, too, while nothing of it has changed. */
  readonly allowed?: Allowance;
}
export type Allowance = Pick<Binding, "hash" | "policy"> & Pick<Approval, "code">;
/** It is certain that nothing was handed over. Only calls that may be handed over once (G2) have this status. */
export interface PlannedCall extends CallBase {
  readonly status: "planned";
}
/** The call may be running. A call that may be handed over repeatedly has this status from the start. */
export interface DispatchedCall extends CallBase {
  readonly status: "dispatched";
  /** Native calls only: how often the session died while the call ran. */
  readonly restarts: number;
}
/** The link to the node broke, or the node can't account for the call. The outcome is unknown if no result comes in time (G3). */
export interface CallInGrace extends CallBase {
  readonly status: "in_grace";
  readonly graceUntil: number;
}
/** The owner is asked first, and nothing was handed over. The deadline is the end of the question. Only calls of sessions wait so. */
export interface AwaitingCall extends CallBase {
  readonly status: "awaiting_approval";
  readonly approval: Approval;
}
/** Its machine is not connected: nothing was handed over. The deadline is the end of the wait (OM2). Only calls of sessions wait so. */
export interface WaitingCall extends CallBase {
  readonly status: "awaiting_node";
  /** Rises each time that the machine may be back. */
  readonly looks: number;
  /** Wall times, for people. */
  readonly since: number;
  readonly expiresAt: number;
  /** The label of the conversation when the wait began. Absent: nothing of others. */
  readonly heard?: Taint;
  /** The owner was told that the call waits. */
  readonly told?: true;
}
export type OpenCall = PlannedCall | DispatchedCall | CallInGrace | AwaitingCall | WaitingCall;

export interface CallPlan
  extends Pick<CallBase, "callId" | "index" | "name" | "target" | "ledger" | "idempotent" | "isWait" | "taint" | "isFileTool" | "allowed"> {
  /** How long the call may take (G5). */
  readonly deadlineMs: number;
  /** How long it may wait for its machine. Absent: not at all. */
  readonly waitMs?: number;
}

/** The result that the gateway itself gives a call. */
export interface Closing {
  readonly outcome: "error" | "timeout" | "cancelled" | "unknown";
  /** A reason of the error table. */
  readonly reason:
    | "node.offline"
    | "tool.timeout"
    | "tool.outcome_unknown"
    | "tool.cancelled"
    | "tool.failed"
    | "tool.unknown"
    | "tool.bad_args"
    | "auth.forbidden"
    | "policy.denied"
    | "policy.error"
    | "approval.denied"
    | "approval.expired"
    | "approval.too_many";
  /** What happened, then what to do; for a model and for a person. */
  readonly text: string;
  /** The tool may have started, so its own result may still come and is worth a late note. */
  readonly mayReportLate: boolean;
}

export const nodeOf = ({ target }: Pick<OpenCall, "target">): string | undefined => (target.kind === "node" ? target.nodeId : undefined);
export const sameTarget = (left: ToolTarget, right: ToolTarget): boolean =>
  left.kind === "node" ? right.kind === "node" && left.nodeId === right.nodeId : right.kind === left.kind;
/** The call may be handed over any number of times (G2, P8). */
export const isRepeatable = ({ target, ledger, idempotent }: Pick<OpenCall, "target" | "ledger" | "idempotent">): boolean =>
  target.kind !== "node" || ledger || idempotent;
/** The call was handed to no one, and waits for the owner or for its machine. */
export const isHeldBack = (call: OpenCall): call is AwaitingCall | WaitingCall =>
  call.status === "awaiting_approval" || call.status === "awaiting_node";
export const isAwaitingNode = (call: OpenCall): call is WaitingCall => call.status === "awaiting_node";
/** When the owner is told that the call waits. */
export const tellAt = (call: WaitingCall): number => call.startedAt + LIMITS.nodeWaitToldMs;
/** When something must happen to the call at the latest. */
export function dueAt(call: OpenCall): number {
  if (call.status === "in_grace") return Math.min(call.deadline, call.graceUntil);
  return call.status === "awaiting_node" && call.told === undefined ? Math.min(call.deadline, tellAt(call)) : call.deadline;
}
/** When the first of the calls is due; never called without one. */
export const callsDeadline = (calls: readonly OpenCall[]): number => Math.min(...calls.map(dueAt));

/** The call waits for the owner's word. `code` and the times are of the question. */
export function awaitApproval(
  { deadlineMs: _later, waitMs: _afterwards, ...plan }: CallPlan,
  approval: Approval,
  now: number,
): AwaitingCall {
  return { ...plan, status: "awaiting_approval", dispatch: 0, startedAt: now, deadline: now + LIMITS.approvalMs, approval };
}
/** The call waits for its machine. `plan`: of a call that was handed to no one. */
export function awaitNode(
  { callId, index, name, target, ledger, idempotent, taint, isFileTool, allowed }: Omit<CallPlan, "deadlineMs" | "waitMs">,
  { now, until, wall, heard }: { readonly now: number; readonly until: number; readonly wall: number; readonly heard: Taint | undefined },
): WaitingCall {
  const label = { ...(taint ? { taint } : {}), ...(isFileTool ? { isFileTool } : {}) };
  const about = { ...label, ...(heard ? { heard } : {}), ...(allowed ? { allowed } : {}) };
  const plan = { callId, index, name, target, ledger, idempotent, ...about };
  const times = { startedAt: now, deadline: until, waitUntil: until, since: wall, expiresAt: wall + until - now };
  return { ...plan, ...times, status: "awaiting_node", dispatch: 0, looks: 0 };
}
export function planCall({ deadlineMs, waitMs, ...plan }: CallPlan, now: number): OpenCall {
  const until = waitMs === undefined ? {} : { waitUntil: now + waitMs };
  const call = { ...plan, ...until, dispatch: 0, startedAt: now, deadline: now + deadlineMs };
  return isRepeatable(plan) ? { ...call, status: "dispatched", restarts: 0 } : { ...call, status: "planned" };
}
