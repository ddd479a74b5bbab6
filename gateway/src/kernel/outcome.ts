/** Failures with the texts of the contract's table. PURE. */
import { ERRORS, type ErrorReason } from "../../../protocol/gen/errors.ts";
import type { Failure } from "../ports/result.ts";

/** Without a message, both texts of the contract's table. `hint` is what to do next, where the table's hint is not specific enough. */
export function fail(reason: ErrorReason, message?: string, hint?: string): Failure {
  const told = message === undefined ? ERRORS[reason].hint : hint;
  return { ok: false, error: { reason, message: message ?? ERRORS[reason].text, ...(told === undefined ? {} : { hint: told }) } };
}
