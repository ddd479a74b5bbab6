/** One call of the model client that ends in time, whatever the client does. */
import type { ModelOutcome } from "../../ports/model.ts";
import type { GsvError } from "../../ports/result.ts";
import { type After, within } from "../../../../protocol/runtime/within.ts";

/** Added to the time limit of the model client, in case the client exceeds it. */
const GUARD_MS = 10_000;

export interface Guard {
  readonly timeoutMs: number;
  /** The call is not wanted any more when this aborts. */
  readonly signal: AbortSignal;
  readonly after: After;
  readonly late: Pick<GsvError, "message" | "hint" | "taskHint">;
  readonly stopped: string;
}

/** `call` gets a signal that aborts when its result is no longer waited for. Rejects as the call does. */
export async function guardedCall(
  { timeoutMs, signal, after, late, stopped }: Guard,
  call: (signal: AbortSignal) => Promise<ModelOutcome>,
): Promise<ModelOutcome> {
  const inner = new AbortController();
  const failed = (error: GsvError, retryable: boolean): ModelOutcome => ({ kind: "failed", error, retryable });
  let stop = (): void => {};
  const aborted = new Promise<ModelOutcome>((resolve) => {
    stop = (): void => {
      inner.abort();
      resolve(failed({ reason: "run.aborted", message: stopped }, false));
    };
  });
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  const timedOut = (): ModelOutcome => {
    inner.abort();
    return failed({ reason: "model.timeout", ...late }, true);
  };
  try {
    return await within(after, timeoutMs + GUARD_MS, Promise.race([call(inner.signal), aborted]), timedOut);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
