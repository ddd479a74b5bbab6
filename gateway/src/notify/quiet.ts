/** The end of quiet hours (rule NT4). PURE. */
import { type Hours, isWithin } from "../schedule/beat.ts";

const MINUTE_MS = 60_000;
const STEP_MINUTES = 5;
const MOST_MINUTES = 26 * 60;

/**
 * When the quiet hours that a moment is in are over; undefined: it is in none. Looks at the local time step by step, because on the day
 * of a change of clocks an hour comes twice or not at all.
 */
export function quietUntil(hours: Hours | undefined, at: number): number | undefined {
  if (hours === undefined || !isWithin(hours, at)) return undefined;
  const from = Math.floor(at / MINUTE_MS) * MINUTE_MS;
  let minutes = STEP_MINUTES;
  while (minutes < MOST_MINUTES && isWithin(hours, from + minutes * MINUTE_MS)) minutes += STEP_MINUTES;
  const last = minutes;
  minutes -= STEP_MINUTES - 1;
  while (minutes < last && isWithin(hours, from + minutes * MINUTE_MS)) minutes++;
  return from + minutes * MINUTE_MS;
}
