/**
 * The rows of a session's log, from which the model's history, the clients' events and the archives are made. PURE data.
 *
 * A row takes `seqSpan` numbers: its own, and one more for each event beyond the first that clients get of it, so that every
 * event has a `sessionSeq` of its own and none has to be stored twice.
 */
import type { Directives, ToolOutcome, Usage } from "../../../../protocol/gen/types.ts";
import type { Origin } from "../../ports/origin.ts";
import type { TaintLabel } from "../../ports/taint.ts";
import type { AssistantMessage, MediaBlock, ToolResultMessage, UserMessage } from "../../ports/messages.ts";

interface RowBase {
  readonly seq: number;
  /** Wall time, for people. */
  readonly at: number;
  /** The run that the row belongs to; empty for none. */
  readonly runId: string;
}
export interface UserRow extends RowBase {
  readonly kind: "user";
  readonly messageId: string;
  readonly origin: Origin;
  readonly message: UserMessage;
  readonly directives?: Directives;
  /** Absent: the owner's, or of a version that kept none. */
  readonly taint?: TaintLabel;
  /** The message came while the run was under way. `runId`: under which it waited; `step`: the first one that has it. */
  readonly steered?: { readonly runId: string; readonly step: number };
}
/** One call of an answer, under our id and the provider's. */
export interface CallRef {
  readonly callId: string;
  readonly providerId: string;
  readonly name: string;
}
/** What one call of the model was sent, measured when the call began. Estimates. */
export interface SentCall {
  /** Wall time at which the call began. */
  readonly at: number;
  /** As it was asked for; the answer may name it otherwise. */
  readonly provider: string;
  readonly model: string;
  /** Tokens of the context layers 1 to 6. */
  readonly layers: readonly number[];
  /** Tokens of the definitions of the tools, which are a part of layer 3. */
  readonly tools: number;
}
/** A call of the model without an answer. */
export interface FailedCall {
  /** Wall time at which the failure was stored. */
  readonly at: number;
  readonly reason: string;
  readonly usage?: Usage;
  /** Absent: the call was lost with the program that made it, or it was stopped. */
  readonly sent?: SentCall;
}
export interface AssistantRow extends RowBase {
  readonly kind: "assistant";
  readonly step: number;
  readonly attempt: number;
  readonly message: AssistantMessage;
  /** In the order of the message's `toolCall` blocks. None: this is the run's final answer. */
  readonly calls: readonly CallRef[];
  /** Absent: of a version that kept none. */
  readonly sent?: SentCall;
  /** The step's calls before this answer. Absent: none. */
  readonly failed?: readonly FailedCall[];
  /** With a final answer: what the whole run used. */
  readonly runUsage?: Usage;
  /** With a final answer: the files that go out with it. */
  readonly files?: readonly MediaBlock[];
  /** The whole run is no part of the model's history: a heartbeat that had nothing to say. */
  readonly swallowed?: true;
}
export interface ToolResultRow extends RowBase {
  readonly kind: "toolResult";
  readonly step: number;
  readonly callId: string;
  readonly message: ToolResultMessage;
  readonly outcome: ToolOutcome;
  readonly reason?: string;
  readonly durationMs?: number;
  /** The machine that the call waited for in vain. */
  readonly away?: string;
  /** Absent: the session's own text, or of a version that kept none. */
  readonly taint?: TaintLabel;
}
export type NoticeKind = "error" | "aborted" | "late" | "note" | "reset" | "compacted" | "settings" | "paused";
/** A notice to clients. Never a message of the conversation; `forModel` is put before the next user message. */
export interface NoticeRow extends RowBase {
  readonly kind: "notice";
  readonly notice: NoticeKind;
  readonly text: string;
  readonly reason?: string;
  /** With `error`: the end of the text that says what to do next. Absent: the text has no such end, or it is of a version that kept none. */
  readonly hint?: string;
  readonly forModel?: string;
  /** The text is an answer of the agent, in Markdown. */
  readonly isAnswer?: true;
  /** With `forModel`, when others may have written it. */
  readonly taint?: TaintLabel;
  readonly usage?: Usage;
  /** With `error` and `aborted`: the calls of the model in the step that got no answer. Absent: none. */
  readonly failed?: readonly FailedCall[];
  /** With `paused`: the question, and the call that waits for its answer; `limit`: the run itself waits. */
  readonly question?: { readonly code: string; readonly callId: string; readonly step: number; readonly limit?: true };
  /** With `late`: the call that it is the result of. Absent: of a version that kept none. */
  readonly lateOf?: string;
  /** The archive that the notice reports: its key, and the number of its messages. */
  readonly archive?: { readonly key: string; readonly count: number };
}
export type LogRow = UserRow | AssistantRow | ToolResultRow | NoticeRow;
export type MessageRow = UserRow | AssistantRow | ToolResultRow;

export const isMessageRow = (row: LogRow): row is MessageRow => row.kind !== "notice";
/** How many sequence numbers the row takes. */
export const seqSpan = (row: LogRow): number => (row.kind === "assistant" ? 1 + row.calls.length : 1);
/** True when clients get an event of the row. */
export const hasEvent = (row: LogRow): boolean => row.kind !== "user" || row.steered !== undefined;
