/**
 * What an end may say of its failure. Every other reason means something to the program that asked for the copy: `transfer.busy` and
 * `limit.rate` let it try again for as long as they come, `auth.required` makes it ask for another token. PURE.
 */
import { type ErrorReason, isErrorReason } from "../../../../protocol/gen/errors.ts";

/** Of the tools of a machine and of its files. */
const FAMILIES: ReadonlySet<string> = new Set(["tool", "path", "file"]);
/** The other reasons of this family are told by the gateway alone. */
const END_REASONS: ReadonlySet<string> = new Set<ErrorReason>(["transfer.source_changed", "transfer.checksum", "transfer.failed"]);

/** The reason of a transfer that fails because an end says this. */
export function reasonOfEnd(reason: string): ErrorReason {
  const [family = ""] = reason.split(".", 1);
  return isErrorReason(reason) && (FAMILIES.has(family) || END_REASONS.has(reason)) ? reason : "transfer.failed";
}
