/**
 * Time limits of one model call: to the first byte, between bytes, and in total. Uses one timer for any number of bytes.
 * Must not read a clock or set a timer itself: the caller supplies both.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";

export interface Timers {
  /** Runs `run` after `ms`; returns a function that cancels it. */
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
  /** Call this when bytes arrive. */
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
      // The timer is not reset for each chunk; it checks again when it fires. Only the first byte resets it, because silence
      // after the first byte has a shorter limit than the wait for it.
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
