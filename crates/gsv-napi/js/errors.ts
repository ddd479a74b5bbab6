/** The one kind of error that this package throws. Carries no token and no stack of another program. */
import type { ErrorReason } from "./gen/contract.ts";
import type { Problem } from "./gen/native.d.ts";

export class GsvError extends Error {
  /** What programs compare. A newer gateway may give a reason that this version does not know. */
  readonly reason: ErrorReason | (string & {});
  /** What to do next. */
  readonly hint: string | undefined;
  /** The same may succeed later. */
  readonly retryable: boolean;

  /** @internal */
  constructor({ reason, message, hint, retryable }: Problem) {
    super(message);
    this.name = "GsvError";
    this.reason = reason;
    this.hint = hint;
    this.retryable = retryable;
  }
}

/** @internal */
export const failure = (reason: ErrorReason, message: string, hint?: string): GsvError =>
  new GsvError({ reason, message, ...(hint === undefined ? {} : { hint }), retryable: false });
