/** Questions about tool calls between sessions, which own them, and the gateway, which shows them and takes the answers. */
import type { ApprovalOutcome } from "../../../protocol/gen/types.ts";
import type { Origin } from "./origin.ts";
import type { ToolTarget } from "./tool-target.ts";

/** A call that waits for the owner's word. Texts are escaped and safe to show. */
export interface WaitingQuestion {
  readonly code: string;
  readonly callId: string;
  readonly runId: string;
  /** As the model knows the tool. */
  readonly name: string;
  readonly target: ToolTarget;
  /** What an answer is bound to. */
  readonly hash: string;
  readonly rule: string;
  readonly why: string;
  /** Everything that the call will do: its arguments, or their beginning. */
  readonly text: string;
  /** The size of the whole, and its sha256 when `text` is only the beginning. */
  readonly bytes: number;
  readonly sha256?: string;
  /** Wall times. */
  readonly createdAt: number;
  readonly expiresAt: number;
}
export interface EndedQuestionReport {
  readonly code: string;
  readonly outcome: ApprovalOutcome;
  /** Who answered. */
  readonly by?: string;
  /** The code of the new question. */
  readonly again?: string;
  readonly at: number;
}
/** All questions of one session. The gateway drops a report that is older than one it has. */
export interface ApprovalReport {
  readonly sessionKey: string;
  readonly agentId: string;
  readonly revision: number;
  /** Of the run whose calls wait; absent when none waits. */
  readonly origin?: Origin;
  readonly waiting: readonly WaitingQuestion[];
  readonly ended: readonly EndedQuestionReport[];
}

/** An answer on its way to the session. The gateway has checked that it is the owner's. */
export interface ApprovalAnswer {
  readonly code: string;
  readonly answer: "allow" | "deny";
  readonly word?: string;
  readonly by: string;
  readonly hash?: string;
}
/** `outcome`: how the question ended; for a repeated answer the same as for the first. */
export interface ApprovalTaken {
  readonly outcome: ApprovalOutcome;
  readonly by?: string;
  readonly again?: string;
}
