/** Reads a duration in words: `2h30m`, `90 minutes`, `1 day 2 hours`. PURE. Refuses units that it does not know. */

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

/** Longer texts are refused, because the search for parts takes quadratic time. */
const MAX_CHARS = 128;
/** Milliseconds. Undefined: the text is not a duration. */
export function readDuration(text: string): number | undefined {
  if (text.length > MAX_CHARS) return undefined;
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
