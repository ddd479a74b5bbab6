/**
 * When a job runs. PURE. Times are epoch ms; the clock of the gateway decides, and no client's or machine's (promise P20). Cron
 * expressions need a library, which is loaded when it is needed and comes in as an argument.
 */
import type { Result } from "../ports/result.ts";

/** As it is stored: everything that depends on when it was written is worked out. */
export type Schedule =
  | { readonly kind: "at"; readonly atMs: number }
  | { readonly kind: "every"; readonly everyMs: number; readonly anchorMs: number }
  | { readonly kind: "cron"; readonly expr: string; readonly tz: string };

/** The times of a heartbeat, which its line knows (beat.ts). The job of a hook has no line, and so no times. */
export type Beat = { readonly kind: "beat" };

/** The times of a cron expression in one time zone, or of a heartbeat. */
export interface CronLine {
  /** The first time after a moment. Undefined: there is none. */
  after(at: number): number | undefined;
  /** The last times up to and including a moment, the latest first. */
  before(at: number, most: number): readonly number[];
}
export type CronEngine = (expr: string, tz: string) => Result<CronLine>;

/** The line of a cron expression. Undefined: the schedule has none, or the expression can't be read. */
export function lineOf(schedule: Schedule | Beat, engine: CronEngine): CronLine | undefined {
  if (schedule.kind !== "cron") return undefined;
  const line = engine(schedule.expr, schedule.tz);
  return line.ok ? line.value : undefined;
}

export const MIN_EVERY_MS = 60_000;
export const MAX_EVERY_MS = 366 * 86_400_000;
/** A repeating job that comes later than this after its time does not run for it. */
export const GRACE_MS = 3_600_000;
/** Missed times that are named; more are only counted. */
export const MISSED_NAMED = 20;
/** Missed times that are counted; more count as this many. */
const MISSED_COUNTED = 1_000;

/** The first time after `after`. Undefined: the job never runs again. */
export function nextTime(schedule: Schedule | Beat, after: number, line: CronLine | undefined): number | undefined {
  switch (schedule.kind) {
    case "at":
      return schedule.atMs > after ? schedule.atMs : undefined;
    case "every": {
      const { everyMs, anchorMs } = schedule;
      return after < anchorMs ? anchorMs : anchorMs + (Math.floor((after - anchorMs) / everyMs) + 1) * everyMs;
    }
    case "cron":
    case "beat":
      return line?.after(after);
  }
}

/** The times of a job that have come, from `from` (the first that was not handled yet) up to now. */
export interface Due {
  /** The time that the job runs for now. */
  readonly start?: number;
  /** Times that the job does not run for, the latest first, at most MISSED_NAMED. */
  readonly missed: readonly number[];
  readonly missedCount: number;
}

/**
 * A repeating job runs at its latest time when that is at most `graceMs` late; earlier times are missed. A job with one time always runs:
 * a reminder is never dropped.
 */
export function due(schedule: Schedule | Beat, from: number, now: number, line: CronLine | undefined, graceMs = GRACE_MS): Due {
  if (from > now) return { missed: [], missedCount: 0 };
  if (schedule.kind === "at") return { start: schedule.atMs, missed: [], missedCount: 0 };
  const times = timesUpTo(schedule, from, now, line);
  const [latest] = times;
  if (latest === undefined) return { missed: [], missedCount: 0 };
  const runs = now - latest <= graceMs;
  const missed = runs ? times.slice(1) : times;
  return { ...(runs ? { start: latest } : {}), missed: missed.slice(0, MISSED_NAMED), missedCount: missed.length };
}
/** Cron expressions are asked for few times first: a thousand times of a yearly job take as long as a thousand years. */
const ASKED: readonly number[] = [2, 32, MISSED_COUNTED + 1];
/** The latest first. */
function timesUpTo(
  schedule: Exclude<Schedule, { kind: "at" }> | Beat,
  from: number,
  now: number,
  line: CronLine | undefined,
): readonly number[] {
  if (schedule.kind === "every") return everyUpTo(schedule, now, MISSED_COUNTED + 1).filter((time) => time >= from);
  let times: readonly number[] = [];
  for (const most of ASKED) {
    times = line?.before(now, most) ?? [];
    const oldest = times.at(-1);
    if (oldest === undefined || oldest < from || times.length < most) break;
  }
  return times.filter((time) => time >= from);
}
function everyUpTo({ everyMs, anchorMs }: { readonly everyMs: number; readonly anchorMs: number }, now: number, most: number): number[] {
  const last = Math.floor((now - anchorMs) / everyMs);
  const count = Math.min(most, last + 1);
  return Array.from({ length: Math.max(0, count) }, (_, back) => anchorMs + (last - back) * everyMs);
}
