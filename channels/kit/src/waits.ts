/** How long the kit waits: before the next attempt, until a row is due, and for an answer. */
import { backoffMs, withJitter } from "../../../protocol/runtime/backoff.ts";
import { type After, within } from "../../../protocol/runtime/within.ts";
import { KIT } from "./limits.ts";

/** Backoff in ms: 1, 2, 4 ... s, at most five minutes, plus or minus 25 %. `random` is in [0, 1). */
export const retryWait = (attempt: number, random: number): number =>
  withJitter(backoffMs(attempt, KIT.retryMinMs, KIT.retryMaxMs), random);

/** When a row with the due time `at` is really due. A wait longer than any backoff means that the clock was set back. */
export const dueAt = (at: number, now: number): number => (at > now + 2 * KIT.retryMaxMs ? now : at);

/** Rejects after `ms`; the work goes on and its result is dropped. */
export const withinOrThrow = <T>(ms: number, what: string, after: After, work: Promise<T>): Promise<T> =>
  within(after, ms, work, () => {
    throw new Error(`${what} took longer than ${Math.round(ms / 1000)} s`);
  });
