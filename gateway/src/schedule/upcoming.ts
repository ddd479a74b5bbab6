/**
 * The times that are to come, day by day (rule SC14). PURE. It asks the same lines as the scheduler; a library takes its time for each
 * time of a cron expression, so the times that are looked at are bounded.
 */
import { momentOnDay } from "./beat.ts";
import { type Beat, type CronLine, nextTime, type Schedule } from "./schedule.ts";
import { localTimeOf } from "./zone.ts";

export interface ComingJob {
  readonly schedule: Schedule | Beat;
  readonly line: CronLine | undefined;
  /** The first time that was not handled yet. */
  readonly nextAt: number;
  /** The interval of a heartbeat. */
  readonly everyMs?: number;
}
/** One time of a job, or with `lastAt` all its times on one day. */
export interface Coming<J> {
  readonly job: J;
  readonly at: number;
  readonly lastAt?: number;
  readonly count: number;
  /** There are more than `count`. */
  readonly isMore?: true;
  readonly everyMs?: number;
}
export interface ComingDay<J> {
  /** `2026-11-22`. */
  readonly date: string;
  readonly entries: readonly Coming<J>[];
}
export interface Upcoming<J> {
  /** Without those that have no entry. */
  readonly days: readonly ComingDay<J>[];
  /** Entries beyond the limit. */
  readonly leftOut: number;
  readonly daysLeftOut: number;
}
export interface Window {
  readonly now: number;
  readonly tz: string;
  /** Today is the first one. */
  readonly days: number;
  readonly limit: number;
}

/** More times of a job on one day are one entry. */
const FEW = 3;
/** Times of a line that are counted on one day. */
const COUNTED_A_DAY = 150;
/** Times of all lines that are worked out. The first day is shown in any case. */
const WORKED_OUT = 4_000;

/** Undefined: none comes. A job with one time that is over waits, and its time is given. */
export function firstTime({ schedule, line, nextAt }: ComingJob, now: number): number | undefined {
  if (schedule.kind === "at" || nextAt > now) return nextAt;
  return nextTime(schedule, now, line);
}

export function upcoming<J extends ComingJob>(jobs: readonly J[], { now, tz, days, limit }: Window): Upcoming<J> {
  const coming = jobs.map((job) => ({ job, next: firstTime(job, now) }));
  const lines = Math.max(1, jobs.filter(({ line }) => line !== undefined).length);
  const shown: ComingDay<J>[] = [];
  let [toWorkOut, free, leftOut] = [WORKED_OUT, limit, 0];
  for (let ahead = 0; ahead < days; ahead++) {
    if (toWorkOut <= 0) return { days: shown, leftOut, daysLeftOut: days - ahead };
    const end = momentOnDay(now, ahead + 1, 0, tz);
    // Days share the work: a day that needs less leaves more for the others.
    const most = Math.max(FEW + 1, Math.min(COUNTED_A_DAY, Math.floor(toWorkOut / (lines * (days - ahead)))));
    const entries: Coming<J>[] = [];
    for (const each of coming) {
      if (each.next === undefined || each.next >= end) continue;
      const times = timesUntil(each.job, each.next, end, most);
      toWorkOut -= times.workedOut;
      each.next = times.next;
      entries.push(...entriesOf(each.job, times));
    }
    const kept = entries.toSorted((a, b) => a.at - b.at).slice(0, free);
    free -= kept.length;
    leftOut += entries.length - kept.length;
    if (kept.length > 0) shown.push({ date: dateOf(now, ahead, tz), entries: kept });
  }
  return { days: shown, leftOut, daysLeftOut: 0 };
}

interface Times {
  /** The first few. */
  readonly times: readonly number[];
  readonly last: number;
  readonly count: number;
  readonly isMore: boolean;
  readonly everyMs: number | undefined;
  /** The first one after these. */
  readonly next: number | undefined;
  readonly workedOut: number;
}
function timesUntil({ schedule, line, everyMs }: ComingJob, first: number, end: number, most: number): Times {
  if (schedule.kind === "at")
    return { times: [first], last: first, count: 1, isMore: false, everyMs: undefined, next: undefined, workedOut: 0 };
  if (schedule.kind === "every") {
    const every = schedule.everyMs;
    const count = Math.floor((end - 1 - first) / every) + 1;
    const times = Array.from({ length: Math.min(count, FEW) }, (_, index) => first + index * every);
    return { times, last: first + (count - 1) * every, count, isMore: false, everyMs: every, next: first + count * every, workedOut: 0 };
  }
  const times = [first];
  let next = line?.after(first);
  while (next !== undefined && next < end && times.length < most) {
    times.push(next);
    next = line?.after(next);
  }
  const isMore = next !== undefined && next < end;
  const last = (isMore ? line?.before(end - 1, 1)[0] : undefined) ?? times.at(-1) ?? first;
  return {
    times,
    last,
    count: times.length,
    isMore,
    everyMs: everyMs ?? (isMore ? undefined : equalGap(times)),
    next: isMore ? line?.after(last) : next,
    workedOut: times.length + (isMore ? 2 : 0),
  };
}
function equalGap(times: readonly number[]): number | undefined {
  const gaps = new Set(times.slice(1).map((time, index) => time - (times[index] ?? time)));
  const [gap] = gaps;
  return gaps.size === 1 ? gap : undefined;
}
function entriesOf<J>(job: J, { times, last, count, isMore, everyMs }: Times): readonly Coming<J>[] {
  const [at] = times;
  if (at === undefined || (count <= FEW && !isMore)) return times.map((time) => ({ job, at: time, count: 1 }));
  return [{ job, at, lastAt: last, count, ...(isMore ? { isMore } : {}), ...(everyMs === undefined ? {} : { everyMs }) }];
}

function dateOf(now: number, ahead: number, tz: string): string {
  const { year, month, day } = localTimeOf(now, tz);
  return new Date(Date.UTC(year, month - 1, day + ahead)).toISOString().slice(0, 10);
}
