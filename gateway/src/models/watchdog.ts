/**
 * Time limits of one model call: to the first byte, between bytes, as a whole. One timer, however many bytes come.
 * Reads no clock and sets no timer of its own: both are given.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";

export interface Timers {
  /** Runs `run` after `ms`; gives a function that calls it off. */
  set(run: () => void, ms: number): () => void;
}
export const systemTimers: Timers = {
  set(run, ms) {
    const handle = setTimeout(run, ms);
    return () => clearTimeout(handle);
  },
};
export type TimeoutPhase = "first_byte" | "idle" | "whole";
export interface Watchdog {
  /** Bytes came. */
  touch(): void;
  stop(): void;
}

export function startWatchdog(
  timers: Timers,
  now: () => number,
  wholeMs: number,
  onTimeout: (phase: TimeoutPhase, ms: number) => void,
): Watchdog {
  const startedAt = now();
  let lastAt = startedAt;
  let began = false;
  let cancel: (() => void) | undefined;
  const due = () => {
    const quiet = lastAt + (began ? LIMITS.modelIdleMs : LIMITS.modelFirstByteMs);
    return Math.min(quiet, startedAt + wholeMs);
  };
  const arm = (): void => {
    cancel = timers.set(check, Math.max(1, due() - now()));
  };
  const check = (): void => {
    const at = now();
    if (at < due()) return arm();
    cancel = undefined;
    if (at >= startedAt + wholeMs) return onTimeout("whole", wholeMs);
    onTimeout(began ? "idle" : "first_byte", began ? LIMITS.modelIdleMs : LIMITS.modelFirstByteMs);
  };
  arm();
  return {
    touch() {
      // The timer stays as it is and looks again when it fires: no timer work for each chunk, except that silence
      // after the first byte is bounded more tightly than the wait for it.
      lastAt = now();
      if (began) return;
      began = true;
      cancel?.();
      arm();
    },
    stop() {
      cancel?.();
      cancel = undefined;
    },
  };
}
