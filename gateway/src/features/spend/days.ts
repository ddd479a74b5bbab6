/** Days and months of the owner's time zone (rule SP4). PURE. */
import { localDay } from "../../prompt/dates.ts";

export const dayOf = (at: number, timeZone: string): string => localDay(at, timeZone).today;
/** YYYY-MM */
export const monthOf = (day: string): string => day.slice(0, 7);

const STEP_MS = 60_000;
const LONGEST_DAY_MS = 26 * 3_600_000;
/** The first minute of the next day: a search, because days have 23 to 25 hours and zones change. */
export function nextDay(at: number, timeZone: string): number {
  const today = dayOf(at, timeZone);
  let [before, after] = [Math.floor(at / STEP_MS), Math.ceil((at + LONGEST_DAY_MS) / STEP_MS)];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (dayOf(middle * STEP_MS, timeZone) === today) before = middle;
    else after = middle;
  }
  return after * STEP_MS;
}
/** The day `days` before `day`. */
export const daysBefore = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) - days * 86_400_000).toISOString().slice(0, 10);
