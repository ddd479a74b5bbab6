/** One tool in the tool registry. Plain data: entries of machines' tools travel from the gateway to sessions. */
import type { PolicyClass, ToolDefinition } from "../../../protocol/gen/types.ts";
import type { ToolTarget } from "./tool-target.ts";

/**
 * Which sessions that are not the owner's may use a tool (promises S8, X7): none, all of them, or those on a channel for which the
 * owner opened it (`channels.{name}.guestTools`).
 */
export type GuestAllowance = "none" | "always" | "opened";

export interface ToolEntry {
  /** Full name, JSON Schema of the arguments, whether a call may be repeated, the tool's own time limit. */
  readonly definition: ToolDefinition;
  readonly target: ToolTarget;
  /** The name at the target: a machine knows its tool without the machine's prefix. */
  readonly tool: string;
  /** The feature that registered the tool. */
  readonly feature: string;
  /** The most that a call can do. The gateway decides it: a native tool's feature, or the contract's table for machines. */
  readonly policyClass: PolicyClass;
  readonly guests: GuestAllowance;
  /** The target starts a call id at most once, so dispatching a call again is safe. */
  readonly ledger: boolean;
  /** The argument, in ms, by which a call asks for more time than the tool's own limit. */
  readonly timeoutArgument?: string;
  /** A call waits for work that goes on without it. */
  readonly isWait?: true;
  /** Offered only to a run that has tools of a machine. */
  readonly needsMachine?: true;
  /** The machine is not connected: a call waits for it, when it may (OM1). */
  readonly isAway?: true;
}
