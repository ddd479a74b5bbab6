/**
 * Computes civil dates in a time zone from a given moment. PURE; an unknown zone counts as UTC.
 */
export interface LocalDay {
  /** YYYY-MM-DD */
  readonly today: string;
  readonly yesterday: string;
  /** `Friday` */
  readonly weekday: string;
  /** The zone that was used. */
  readonly timeZone: string;
}
/** Creating a formatter costs far more than using it. */
const formatters = new Map<string, Intl.DateTimeFormat>();
const MAX_ZONES = 64;

function formatterFor(timeZone: string): { zone: string; format: Intl.DateTimeFormat } {
  const known = formatters.get(timeZone);
  if (known) return { zone: timeZone, format: known };
  try {
    const format = new Intl.DateTimeFormat("en-CA", { timeZone, year: "numeric", month: "2-digit", day: "2-digit", weekday: "long" });
    if (formatters.size >= MAX_ZONES) formatters.clear();
    formatters.set(timeZone, format);
    return { zone: timeZone, format };
  } catch {
    return formatterFor("UTC");
  }
}

const MINUTE_MS = 60_000;
/** Cached for a minute, since every model call asks for it and zones differ by whole minutes. */
let last: { readonly minute: number; readonly asked: string; readonly day: LocalDay } | undefined;

/** Yesterday is the previous calendar day, not 24 hours ago: a day has 23 or 25 hours when clocks change. */
export function localDay(now: number, timeZone: string): LocalDay {
  const minute = Math.floor(now / MINUTE_MS);
  if (last?.minute !== minute || last.asked !== timeZone) last = { minute, asked: timeZone, day: dayOf(now, timeZone) };
  return last.day;
}
function dayOf(now: number, timeZone: string): LocalDay {
  const { zone, format } = formatterFor(timeZone === "" ? "UTC" : timeZone);
  const parts = new Map(format.formatToParts(now).map(({ type, value }) => [type, value]));
  const today = `${(parts.get("year") ?? "1970").padStart(4, "0")}-${parts.get("month")}-${parts.get("day")}`;
  const yesterday = new Date(Date.parse(`${today}T00:00:00Z`) - 86_400_000).toISOString().slice(0, 10);
  return { today, yesterday, weekday: parts.get("weekday") ?? "", timeZone: zone };
}

const LONGEST_DAY_MS = 26 * 3_600_000;
/** The first minute of the next day: a search, because days have 23 to 25 hours and zones change. */
export function nextDay(at: number, timeZone: string): number {
  const today = localDay(at, timeZone).today;
  let [before, after] = [Math.floor(at / MINUTE_MS), Math.ceil((at + LONGEST_DAY_MS) / MINUTE_MS)];
  while (after - before > 1) {
    const middle = Math.floor((before + after) / 2);
    if (localDay(middle * MINUTE_MS, timeZone).today === today) before = middle;
    else after = middle;
  }
  return after * MINUTE_MS;
}

const clocks = new Map<string, Intl.DateTimeFormat>();
/** HH:MM in that zone. */
export function localTime(now: number, timeZone: string): string {
  const { zone } = formatterFor(timeZone === "" ? "UTC" : timeZone);
  let clock = clocks.get(zone);
  if (!clock) {
    clock = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    if (clocks.size >= MAX_ZONES) clocks.clear();
    clocks.set(zone, clock);
  }
  return clock.format(now);
}
