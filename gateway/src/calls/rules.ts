/**
 * PURE. What happens to an open tool call; the one place of these rules, for sessions and for client calls. It never sends,
 * stores or answers anything: it gives a ruling, and the caller carries it out.
 *
 *   P6  A call that changes something starts at most once. If its start can't be ruled out, its outcome is `unknown`.
 *   G1  Only the target that the call was handed to can report its result.
 *   G2  A node with a ledger may get the same call again at any time. To one without, a call is handed over once, and only after
 *       the status `dispatched` is committed.
 *   G3  A node that is offline at the first hand-over: `node.offline`. A link that breaks later: a call that changes nothing fails at
 *       once with `node.offline`; any other waits in grace for its node (`LIMITS.nodeGraceMs`), then its outcome is unknown. A node
 *       that comes back with a ledger decides the call by what the ledger says (K14, K15); without one only a result ends the grace.
 *   G5  At the deadline: `tool.timeout` if nothing can have changed, else `tool.outcome_unknown`. The caller cancels it on its node.
 *   OM2 A call that may wait for its machine waits when the node is offline at the first hand-over. Until it is handed over, no report,
 *       node or restart changes it. At its deadline: `node.offline`.
 *   AP1 A call that waits for the owner's word was handed to no one: no report, node or restart changes it. At its deadline it is denied.
 *   P8  A native call that was interrupted runs again, at most `LIMITS.recoveryAttempts` times.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { ToolTarget } from "../ports/tool-target.ts";
import { type CallInGrace, type Closing, type DispatchedCall, dueAt, isHeldBack, nodeOf, type OpenCall, sameTarget } from "./open-call.ts";
import * as closings from "./closings.ts";

export type Ruling =
  | { readonly type: "unchanged" }
  /** The call continues with this record. */
  | { readonly type: "continue"; readonly call: OpenCall }
  /** As `continue`, and it must be handed over (again). A caller that can't do that closes it with `neverStarted`. */
  | { readonly type: "hand_over"; readonly call: OpenCall }
  /** The call waits for its machine, until this time at most. Only for calls of sessions. */
  | { readonly type: "wait"; readonly until: number }
  /** The call's machine may be back: the policy is to be asked. Only for calls of sessions. */
  | { readonly type: "look" }
  | { readonly type: "close"; readonly closing: Closing };
const UNCHANGED: Ruling = { type: "unchanged" };
const close = (closing: Closing): Ruling => ({ type: "close", closing });

/** What a node's ledger says about a call. */
export interface LedgerEntry {
  readonly callId: string;
  /** `lost`: it was started, and the node that ran it died. */
  readonly state: "accepted" | "started" | "finished" | "lost";
}

/** G1: whether `from` may report this call's result now. */
export const mayReport = (call: OpenCall, from: ToolTarget): boolean =>
  call.status !== "planned" && !isHeldBack(call) && sameTarget(call.target, from);

/** Before the one hand-over of a call that may be handed over once. Commit it first (G2). */
export const handingOver = (call: OpenCall): Ruling =>
  call.status === "planned" ? { type: "continue", call: { ...call, status: "dispatched", restarts: 0 } } : UNCHANGED;

/** The node was not connected. `first`: no earlier hand-over of the call can have reached it. */
export function nodeOffline(call: OpenCall, { first }: { readonly first: boolean }, now: number): Ruling {
  if (first && call.waitUntil !== undefined && now < call.waitUntil) return { type: "wait", until: call.waitUntil };
  if (first) return close(closings.notConnected(call));
  return call.idempotent ? close(closings.linkBroke(call)) : beginGrace(call, now);
}
/** The hand-over failed in a way that leaves open whether the node has the call. */
export const handOverUncertain = (call: OpenCall, now: number): Ruling => beginGrace(call, now);

function beginGrace(call: OpenCall, now: number): Ruling {
  return call.status === "in_grace" ? UNCHANGED : { type: "continue", call: inGrace(call, now + LIMITS.nodeGraceMs) };
}
function inGrace(call: OpenCall, graceUntil: number): CallInGrace {
  const { callId, index, name, target, ledger, idempotent, dispatch, startedAt, deadline } = call;
  return { status: "in_grace", callId, index, name, target, ledger, idempotent, dispatch, startedAt, deadline, graceUntil };
}
function dispatched(call: OpenCall): DispatchedCall {
  const { callId, index, name, target, ledger, idempotent, dispatch, startedAt, deadline } = call;
  const restarts = call.status === "dispatched" ? call.restarts : 0;
  return { status: "dispatched", callId, index, name, target, ledger, idempotent, dispatch, restarts, startedAt, deadline };
}

/** The link to the call's node broke. */
export function nodeDisconnected(call: OpenCall, now: number): Ruling {
  if (isHeldBack(call)) return UNCHANGED;
  if (call.idempotent) return close(closings.linkBroke(call));
  // The hand-over that is still to come will find the node offline.
  return call.status === "planned" ? UNCHANGED : beginGrace(call, now);
}

/** The call's node is connected again. `ledger`: everything that it still answers for; absent when it keeps none. */
export function nodeConnected(call: OpenCall, ledger: readonly LedgerEntry[] | undefined, now: number): Ruling {
  if (call.status === "awaiting_node") return { type: "look" };
  if (!ledger || !call.ledger || call.status === "awaiting_approval") return UNCHANGED;
  switch (ledger.find(({ callId }) => callId === call.callId)?.state) {
    case undefined:
    case "accepted":
      // Never seen (K14), or written down and not started by a node that died since (K15): a hand-over starts it once in both cases.
      return { type: "hand_over", call: { ...dispatched(call), dispatch: call.dispatch + 1 } };
    case "lost": {
      // The node's report of what it knows is on its way.
      const until = now + LIMITS.nodeGraceMs;
      return { type: "continue", call: inGrace(call, call.status === "in_grace" ? Math.min(call.graceUntil, until) : until) };
    }
    case "started":
    case "finished":
      return call.status === "in_grace" ? { type: "continue", call: dispatched(call) } : UNCHANGED;
  }
}

/** Undefined while the call still has time. */
export function expired(call: OpenCall, now: number): Closing | undefined {
  if (now < dueAt(call)) return undefined;
  if (call.status === "awaiting_approval") return closings.notAnswered(call);
  if (call.status === "awaiting_node") return now < call.deadline ? undefined : closings.notBack(call, now);
  if (now < call.deadline) return closings.unknownOutcome(call);
  const nothingChanged = call.idempotent || call.status === "planned";
  return nothingChanged ? closings.timedOut(call, now) : closings.unknownAtDeadline(call, now);
}

/** The object that ran native calls died (P8). Calls on nodes are not affected. */
export function interrupted(call: OpenCall): Ruling {
  if (nodeOf(call) !== undefined || call.status !== "dispatched") return UNCHANGED;
  if (call.isWait === undefined && call.restarts >= LIMITS.recoveryAttempts)
    return close(closings.interruptedTooOften(call, call.restarts));
  return { type: "continue", call: { ...call, restarts: call.restarts + 1 } };
}
