/** The result of an operation that may fail as expected. Crosses Durable Object RPC, where thrown errors lose their class. */
import type { ErrorReason } from "../../../protocol/gen/errors.ts";

export interface GsvError {
  readonly reason: ErrorReason;
  /** What happened, for a person. Never a secret. */
  readonly message: string;
  /** What to do next. Absent: the contract's table has the hint, or the message itself says what to do. */
  readonly hint?: string;
  readonly details?: unknown;
}

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: GsvError };

export type Failure = { readonly ok: false; readonly error: GsvError };

export const succeed = <T>(value: T): Result<T> => ({ ok: true, value });
export const failure = (reason: ErrorReason, message: string): Failure => ({ ok: false, error: { reason, message } });

/** For readers that get one text: the message and, when the error has one of its own, the hint. */
export const sentence = ({ message, hint }: Pick<GsvError, "message" | "hint">): string =>
  hint === undefined ? message : `${message} ${hint}`;
