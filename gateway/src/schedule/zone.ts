/** Local times of a time zone as moments. PURE; the runtime's own table of zones is used. */
import { DAY_MS } from "../../../protocol/runtime/day.ts";

export interface LocalTime {
  readonly year: number;
  /** From 1. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
}
const MINUTE_MS = 60_000;
/** No change of clocks skips more, but for a whole day at the date line. */
const LONGEST_GAP_MINUTES = 24 * 60 + 60;

const formats = new Map<string, Intl.DateTimeFormat>();
const MAX_ZONES = 64;
/** Undefined: there is no such zone. */
function formatOf(tz: string): Intl.DateTimeFormat | undefined {
  const known = formats.get(tz);
  if (known !== undefined) return known;
  try {
    const format = new Intl.DateTimeFormat("en-GB", {
      timeZone: tz,
      calendar: "iso8601",
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
    });
    if (formats.size >= MAX_ZONES) formats.clear();
    formats.set(tz, format);
    return format;
  } catch {
    return undefined;
  }
}
export const isZone = (tz: string): boolean => formatOf(tz) !== undefined;

/** The local time of a moment; an unknown zone counts as UTC. */
export function localTimeOf(at: number, tz: string): LocalTime {
  const format = formatOf(tz) ?? formatOf("UTC");
  const parts = new Map(format?.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const of = (name: Intl.DateTimeFormatPartTypes): number => parts.get(name) ?? 0;
  return { year: of("year"), month: of("month"), day: of("day"), hour: of("hour"), minute: of("minute") };
}
const asIfUtc = ({ year, month, day, hour, minute }: LocalTime): number => Date.UTC(year, month - 1, day, hour, minute);

/**
 * The moment of a local time. One that the change of clocks skips is the next minute that exists; one that comes twice is the first.
 * Undefined: the calendar has no such day or time.
 */
export function momentOf(local: LocalTime, tz: string): number | undefined {
  const wanted = asIfUtc(local);
  const { year, month, day, hour, minute } = local;
  const back = new Date(wanted);
  const exists =
    back.getUTCFullYear() === year &&
    back.getUTCMonth() === month - 1 &&
    back.getUTCDate() === day &&
    back.getUTCHours() === hour &&
    back.getUTCMinutes() === minute;
  if (!exists) return undefined;
  for (let skipped = 0; skipped <= LONGEST_GAP_MINUTES; skipped++) {
    const moment = firstMoment(wanted + skipped * MINUTE_MS, tz);
    if (moment !== undefined) return moment;
  }
  return undefined;
}
/** Offsets differ only across a change of clocks, and there are no two within two days. */
function firstMoment(wanted: number, tz: string): number | undefined {
  const offsets = [wanted - DAY_MS, wanted + DAY_MS].map(
    (near) => asIfUtc(localTimeOf(near, tz)) - Math.floor(near / MINUTE_MS) * MINUTE_MS,
  );
  const moments = offsets.map((offset) => wanted - offset).filter((moment) => asIfUtc(localTimeOf(moment, tz)) === wanted);
  return moments.length === 0 ? undefined : Math.min(...moments);
}
