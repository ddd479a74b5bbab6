/** The result of an operation that may fail as expected. Crosses Durable Object RPC, where thrown errors lose their class. */
import type { ErrorReason } from "../../../protocol/gen/errors.ts";

export interface GsvError {
  readonly reason: ErrorReason;
  /** A whole sentence for a person: what happened, what to do. Never a secret. */
  readonly message: string;
  readonly details?: unknown;
}

export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: GsvError };
