/** How long to wait after failures in a row. PURE: randomness is an argument. */

/** So that the power stays a number, however often something fails. */
const MAX_DOUBLINGS = 20;

/** `firstMs` after the first failure, twice as long after each further one, at most `maxMs`. */
export const backoffMs = (failures: number, firstMs: number, maxMs = Number.POSITIVE_INFINITY): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(MAX_DOUBLINGS, Math.max(0, failures - 1)));

/** A quarter more or less, so that many that fail together do not return together. `random` is in [0, 1). */
export const withJitter = (ms: number, random: number): number => Math.round(ms * (0.75 + random / 2));
