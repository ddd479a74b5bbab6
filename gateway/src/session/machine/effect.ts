/**
 * The effects that the machine decides on. An effect is in the state's outbox from the commit that decides on it until the commit of its
 * end, so it survives crashes. It refers to its inputs (log rows, calls) and never contains them. PURE data.
 *
 * Ids derive from the state: the same decision has the same id in every incarnation, and each attempt has an id of its own.
 */

import type { Taint } from "../../ports/taint.ts";
import type { SandboxProfile } from "../../../../protocol/gen/types.ts";
import type { ToolTarget } from "../../ports/tool-target.ts";
import type { ReplyRoute } from "../../ports/session.ts";

/** Ask the model. What to ask is the history and the run. Ends in ModelReplied or ModelFailed. */
export interface CallModel {
  readonly type: "CallModel";
  readonly id: string;
  /** Not before this, on the session's clock: the wait between two tries. */
  readonly notBefore: number;
}
/** Run a tool. Ends in ToolResult; before that ToolSent, ToolOffline or ToolUncertain may come. */
export interface DispatchTool {
  readonly type: "DispatchTool";
  readonly id: string;
  readonly callId: string;
  /** The row that has the arguments, and which of its calls. */
  readonly seq: number;
  readonly index: number;
  readonly target: ToolTarget;
  /** As the executor knows it: bare on a node, the full name for native ones. */
  readonly tool: string;
  readonly timeoutMs: number;
  /** What allowed the call, for the audit. Absent: stored by a program that did not record it. */
  readonly rule?: string;
  /** What a program's machine had for a sandbox when the call was decided: with another one the decision does not hold. */
  readonly sandbox?: SandboxProfile;
  /** May be handed over any number of times. Else a ToolSent must be committed first, and only once. */
  readonly repeatable: boolean;
  /** The machine does not get the argument `wait`, which is for the gateway. */
  readonly withoutWait?: true;
  /** The state of the file that the owner has seen, which the call may change. */
  readonly expect?: string;
}
/** Tell a node that calls are no longer wanted. Ends in EffectDone. */
export interface CancelTool {
  readonly type: "CancelTool";
  readonly id: string;
  readonly nodeId: string;
  readonly callIds: readonly string[];
  readonly reason: string;
}
/** Hand clients the log's events up to `upto`. Ends in Delivered, or silently in any later commit. */
export interface Deliver {
  readonly type: "Deliver";
  readonly id: string;
  readonly upto: number;
}
/** Plan where to cut, or summarise the next chunk, by the archive's stage. Ends in Planned, Summarized or SummarizeFailed. */
export interface Summarize {
  readonly type: "Summarize";
  readonly id: string;
  readonly notBefore: number;
}
/** Add a text to a daily file; the text is stored under the effect's id. Never given up. Ends in EffectDone. */
export interface AppendMemory {
  readonly type: "AppendMemory";
  readonly id: string;
  /** YYYY-MM-DD */
  readonly date: string;
  /** Others may have written what it was learnt from: it waits for the owner instead. */
  readonly taint?: Taint;
}
/** Delete media of a conversation that is over. Ends in EffectDone. */
export interface DeleteMedia {
  readonly type: "DeleteMedia";
  readonly id: string;
  /** Wall time: what was stored later belongs to the new conversation. */
  readonly before: number;
  /** The new conversation's first row; what it names stays. */
  readonly from: number;
}
/** Write the transcript to the bucket. Ends in Archived or ArchiveFailed. */
export interface Archive {
  readonly type: "Archive";
  readonly id: string;
  readonly notBefore: number;
}
/** Send the end of a run to the platform that its message came from. Ends in EffectDone. */
export interface Reply {
  readonly type: "Reply";
  readonly id: string;
  readonly route: ReplyRoute;
  /** The row that says how: the answer, or a notice. */
  readonly seq: number;
  /** Names the delivery in every retry. */
  readonly deliveryId: string;
}
/** Move the full text of a long result from its rows to the bucket. Ends in EffectDone. */
export interface StoreResult {
  readonly type: "StoreResult";
  readonly id: string;
  readonly callId: string;
}
/**
 * Tell the gateway what it shows of the session: which questions wait, how the last ones ended, the conversation and its own mode. What to
 * tell is the state. Ends in EffectDone.
 */
export interface ReportApprovals {
  readonly type: "ReportApprovals";
  readonly id: string;
  /** Rises with each report: the gateway drops an older one. */
  readonly revision: number;
}
/**
 * Tell the gateway which calls of the session wait for machines, and ask the policy about those whose machine is back. Open as long as a
 * call waits. Ends in NodesLooked, or, when none waits, in EffectDone.
 */
export interface AwaitNodes {
  readonly type: "AwaitNodes";
  readonly id: string;
  readonly revision: number;
}
export type Effect =
  | CallModel
  | DispatchTool
  | CancelTool
  | Deliver
  | Summarize
  | Archive
  | AppendMemory
  | DeleteMedia
  | Reply
  | StoreResult
  | ReportApprovals
  | AwaitNodes;
export type EffectOf<T extends Effect["type"]> = Extract<Effect, { readonly type: T }>;
