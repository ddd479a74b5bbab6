/** The result of an operation that may fail as expected. Crosses Durable Object RPC, where thrown errors lose their class. */
import type { ErrorReason } from "../../../protocol/gen/errors.ts";

export interface GsvError {
  readonly reason: ErrorReason;
  /** What happened, for a person. Never a secret, and never the next step, which is `hint`. */
  readonly message: string;
  /** What to do next. Absent: the hint of the contract's table. Readers that get no table, such as models, then get none. */
  readonly hint?: string;
  /** The next step for the sender of a task, who writes in no conversation (rule RT2; `calls/task-advice.ts`). Absent: `hint` is for them too. */
  readonly taskHint?: string;
  readonly details?: unknown;
}
/** What is wrong and what to do next, without a reason. */
export type Problem = Pick<GsvError, "message" | "hint">;

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: GsvError };

export type Failure = { readonly ok: false; readonly error: GsvError };

export const succeed = <T>(value: T): Result<T> => ({ ok: true, value });
/** `hint`: what to do next, where the table's hint is not specific enough or the reader gets no table. */
export const failure = (reason: ErrorReason, message: string, hint?: string): Failure => ({
  ok: false,
  error: { reason, message, ...(hint === undefined ? {} : { hint }) },
});

/** A failure of the storage that passes. Its hint is the table's, given here because models get no table. */
export const storageFailed = (message: string): Failure => failure("storage.failed", message, "Try again in a moment.");

/** For readers that get one text: the message and, when the error has one of its own, the hint. */
export const sentence = ({ message, hint }: Problem): string => (hint === undefined ? message : `${message} ${hint}`);
