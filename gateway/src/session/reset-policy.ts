/** Decides when a session is reset automatically (product rule P3.2). PURE calendar arithmetic. */
import type { ResetPolicy, ResetPolicyConfig, ResetPolicyPatch } from "../../../protocol/gen/types.ts";

const DEFAULT_RESET_HOUR = 4;
const DEFAULT_IDLE_MINUTES = 60;

/** The session's own fields over the configuration's over the defaults. */
export function effectivePolicy(own: ResetPolicyPatch, configured: ResetPolicyConfig | undefined): Required<ResetPolicy> {
  return {
    mode: own.mode ?? configured?.mode ?? "daily",
    atHour: own.atHour ?? configured?.atHour ?? DEFAULT_RESET_HOUR,
    idleMinutes: own.idleMinutes ?? configured?.idleMinutes ?? DEFAULT_IDLE_MINUTES,
  };
}

/** Whether the conversation, last active at `lastAt`, is over now. Instants are epoch ms. */
export function resetDue(policy: Required<ResetPolicy>, timezone: string, lastAt: number, wall: number): "daily" | "idle" | undefined {
  if (policy.mode === "idle") return wall - lastAt >= policy.idleMinutes * MINUTE_MS ? "idle" : undefined;
  if (policy.mode === "daily") return lastAt < lastHour(policy.atHour, timezone, wall) ? "daily" : undefined;
  return undefined;
}

/** The latest instant not after `wall` at which it was `hour` o'clock there; in the hour that summer time skips, the first instant after it. */
export function lastHour(hour: number, timezone: string, wall: number): number {
  // Asked with every message. The next such hour is 22 hours away or more, even where the clocks change by two, and begins with a minute.
  const minute = Math.floor(wall / MINUTE_MS);
  if (known?.hour === hour && known.timezone === timezone) {
    const isBeforeNext = wall >= known.instant && wall < known.instant + 22 * HOUR_MS;
    if (isBeforeNext || minute === known.minute) return known.instant;
  }
  const instant = findLastHour(hour, timezone, wall);
  known = { hour, timezone, minute, instant };
  return instant;
}
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** The last answer, and the minute in which it was found. */
let known: { readonly hour: number; readonly timezone: string; readonly minute: number; readonly instant: number } | undefined;

function findLastHour(hour: number, timezone: string, wall: number): number {
  const zone = formatterFor(timezone);
  const local = localTime(zone, wall);
  for (const daysBack of [0, 1, 2]) {
    const instant = instantOf(zone, Date.UTC(local.year, local.month - 1, local.day - daysBack, hour));
    if (instant <= wall) return instant;
  }
  return wall - 24 * HOUR_MS;
}

interface LocalTime {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly asUtc: number;
}
/** Local wall-clock fields, and the same fields read as if they were UTC. */
function localTime(zone: Intl.DateTimeFormat, wall: number): LocalTime {
  const part: Record<string, number> = {};
  for (const { type, value } of zone.formatToParts(wall)) part[type] = Number(value);
  const { year = 1970, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
  return { year, month, day, asUtc: Date.UTC(year, month - 1, day, hour, minute, second) };
}
/** The instant at which clocks there show these fields. Two rounds, because the offset may change in between. */
function instantOf(zone: Intl.DateTimeFormat, fieldsAsUtc: number): number {
  let instant = fieldsAsUtc;
  for (let round = 0; round < 2; round++) instant = fieldsAsUtc - (localTime(zone, instant).asUtc - instant);
  // A skipped hour has no such instant: the result then shows an earlier time, and one hour later it is past the gap.
  return localTime(zone, instant).asUtc < fieldsAsUtc ? instant + (fieldsAsUtc - localTime(zone, instant).asUtc) : instant;
}

const formatters = new Map<string, Intl.DateTimeFormat>();
const MAX_ZONES = 16;
/** An unknown zone counts as UTC, so that a typing error in the configuration doesn't stop conversations. */
function formatterFor(timezone: string): Intl.DateTimeFormat {
  const known = formatters.get(timezone);
  if (known) return known;
  const options = {
    calendar: "gregory",
    numberingSystem: "latn",
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  } as const;
  let made: Intl.DateTimeFormat;
  try {
    made = new Intl.DateTimeFormat("en-US", { ...options, timeZone: timezone });
  } catch {
    made = new Intl.DateTimeFormat("en-US", { ...options, timeZone: "UTC" });
  }
  if (formatters.size >= MAX_ZONES) formatters.clear();
  formatters.set(timezone, made);
  return made;
}
