/** Reads a schedule as a caller gives it, and makes of it what is stored (rule SC9). PURE. */
import type { CronSchedule } from "../../../protocol/gen/types.ts";
import { failure, type Result, succeed } from "../ports/result.ts";
import { type Beat, type CronEngine, type CronLine, MAX_EVERY_MS, MIN_EVERY_MS, nextTime, type Schedule } from "./schedule.ts";
import { readDuration } from "./duration.ts";
import { readTime } from "./words.ts";
import { isZone } from "./zone.ts";

export interface ReadContext {
  readonly now: number;
  /** The user's. */
  readonly tz: string;
  readonly engine: CronEngine;
}
const bad = (message: string) => failure("cron.bad_schedule", message);

export function readSchedule(given: CronSchedule, { now, tz, engine }: ReadContext): Result<Schedule> {
  const zone = given.kind === "every" ? tz : (given.tz ?? tz);
  if (!isZone(zone)) return bad(`There is no time zone \`${zone}\`. Zones have names such as \`Europe/Amsterdam\`.`);
  switch (given.kind) {
    case "at": {
      if ((given.atMs === undefined) === (given.at === undefined)) return bad("Name the time once: either `at` or `atMs`.");
      const atMs = given.atMs ?? readTime(given.at ?? "", now, zone);
      if (atMs === undefined)
        return bad(
          `\`${given.at}\` is not a time. Times are such as \`in 2 hours\`, \`tomorrow 9am\`, \`friday 17:30\` or \`2026-11-23 09:00\`.`,
        );
      if (atMs <= now) return bad(`This time is over: ${new Date(atMs).toISOString()}.`);
      if (atMs > now + MAX_AHEAD_MS) return bad("This time is more than ten years ahead.");
      return succeed({ kind: "at", atMs });
    }
    case "every": {
      if ((given.everyMs === undefined) === (given.every === undefined)) return bad("Name the interval once: either `every` or `everyMs`.");
      const everyMs = given.everyMs ?? readDuration(given.every ?? "");
      if (everyMs === undefined) return bad(`\`${given.every}\` is not an interval. Intervals are such as \`30m\`, \`2h30m\` or \`1d\`.`);
      if (everyMs < MIN_EVERY_MS) return bad("A job runs once a minute at most.");
      if (everyMs > MAX_EVERY_MS) return bad("A job runs once a year at least.");
      return succeed({ kind: "every", everyMs, anchorMs: given.anchorMs ?? now });
    }
    case "cron": {
      const line = engine(given.expr.trim(), zone);
      if (!line.ok) return bad(`\`${given.expr}\` is not a cron expression: ${line.error.message}`);
      if (line.value.after(now) === undefined) return bad(`\`${given.expr}\` never comes.`);
      return succeed({ kind: "cron", expr: given.expr.trim(), tz: zone });
    }
  }
}
const MAX_AHEAD_MS = 10 * 366 * 86_400_000;

/** The next times after `after`, at most `count`. */
export function nextTimes(schedule: Schedule | Beat, after: number, count: number, line: CronLine | undefined): number[] {
  const times: number[] = [];
  for (let at = nextTime(schedule, after, line); at !== undefined && times.length < count; at = nextTime(schedule, at, line))
    times.push(at);
  return times;
}
