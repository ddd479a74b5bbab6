/** Lengths of time in words: `2h30m`, `90 minutes`, `1 day 2 hours`. PURE. Refuses what it does not know. */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const UNITS: readonly (readonly [RegExp, number])[] = [
  [/^(?:s|secs?|seconds?)$/, 1_000],
  [/^(?:m|mins?|minutes?)$/, MINUTE_MS],
  [/^(?:h|hrs?|hours?)$/, HOUR_MS],
  [/^(?:d|days?)$/, DAY_MS],
  [/^(?:w|weeks?)$/, 7 * DAY_MS],
];

/** What is longer is no length: to look for parts takes the square of the time. */
const MAX_LENGTH_CHARS = 128;
/** `2h30m`, `90 minutes`, `1 day 2 hours`. Undefined: it is no length. */
export function readLength(text: string): number | undefined {
  if (text.length > MAX_LENGTH_CHARS) return undefined;
  const said = text.trim().toLowerCase();
  const parts = [...said.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)\s*(?:,|and\b)?\s*/g)];
  if (parts.length === 0 || parts.map(([whole]) => whole).join("") !== said) return undefined;
  let sum = 0;
  for (const [, count = "", unit = ""] of parts) {
    const ms = UNITS.find(([names]) => names.test(unit))?.[1];
    if (ms === undefined) return undefined;
    sum += Number(count) * ms;
  }
  return Number.isSafeInteger(Math.round(sum)) ? Math.round(sum) : undefined;
}
