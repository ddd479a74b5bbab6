/** Days and months of the owner's time zone (rule SP4). PURE. */
import { localDay } from "../../prompt/dates.ts";

export const dayOf = (at: number, timeZone: string): string => localDay(at, timeZone).today;
/** YYYY-MM */
export const monthOf = (day: string): string => day.slice(0, 7);

/** The day `days` before `day`. */
export const daysBefore = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) - days * 86_400_000).toISOString().slice(0, 10);
