/** Exceptions of the storage that people get a reason for. RPC keeps an error's message and drops its class. PURE. */
import type { ErrorReason } from "../../../protocol/gen/errors.ts";
import { newerStateText } from "./newer-state.ts";

/** SQLite's name of the error (https://www.sqlite.org/rescode.html#full). workerd puts it at the end of the message. */
const FULL = "SQLITE_FULL";

/** The reason of an exception, and its own sentence where it has one. `internal`: a bug, or a fault that is not known. */
export function storageFault(error: unknown): { readonly reason: ErrorReason; readonly message?: string } {
  const newer = newerStateText(error);
  if (newer !== undefined) return { reason: "storage.newer_version", message: newer };
  return { reason: error instanceof Error && error.message.includes(FULL) ? "storage.full" : "internal" };
}

/** SQLite's own sentence, which names tables and columns and no value. Undefined: another exception, whose text may hold a secret. */
export const databaseFault = (error: unknown): string | undefined =>
  error instanceof Error && /: SQLITE_[A-Z_]+$/.test(error.message) ? error.message : undefined;
