/** Failures as values, and what they look like on the wire. Pure. */
import { ERRORS, type ErrorReason } from "../../../protocol/gen/errors.ts";
import type { ErrorShape } from "../../../protocol/gen/types.ts";
import type { GsvError, Result } from "../ports/result.ts";

export type Failure = { readonly ok: false; readonly error: Pick<GsvError, "reason" | "message"> };

export const succeed = <T>(value: T): Result<T> => ({ ok: true, value });
/** Without a message of its own, the one of the contract's table. */
export const fail = (reason: ErrorReason, message: string = ERRORS[reason].text): Failure => ({ ok: false, error: { reason, message } });

/** Errors that came over RPC have lost their type: an unknown reason is a bug of ours. */
export function errorShape(error: GsvError): ErrorShape {
  const known = Object.hasOwn(ERRORS, error.reason);
  const info = known ? ERRORS[error.reason] : ERRORS.internal;
  return {
    code: info.code,
    reason: known ? error.reason : "internal",
    message: error.message,
    ...(error.details === undefined ? {} : { details: error.details }),
    ...(info.retryable ? { retryable: true } : {}),
  };
}
