/**
 * Cron expressions, with their time zone, by the library croner. A local time that the change of clocks skips runs at the next minute
 * that exists; one that comes twice runs once (rule SC3).
 */
import { Cron } from "croner";
import type { CronEngine, CronLine } from "./schedule.ts";

const FIELDS = 5;
const OPTIONS = { paused: true, mode: "5-part", legacyMode: true } as const;

export const cronLines: CronEngine = (expr, tz) => {
  const fields = expr.trim().split(/\s+/).length;
  // The library also reads names such as `@daily`. What it says about fields is about other kinds of expressions too.
  if (fields !== FIELDS && !expr.trim().startsWith("@"))
    return bad(
      `It has ${fields} ${fields === 1 ? "field" : "fields"}, and a cron expression has exactly 5: minute, hour, day of the month, month and day of the week.`,
    );
  try {
    const cron = new Cron(expr, { ...OPTIONS, timezone: tz });
    const line: CronLine = {
      after: (at) => cron.nextRun(new Date(at))?.getTime(),
      // It looks before a moment, and the moment itself counts.
      before: (at, most) => cron.previousRuns(most, new Date(at + 1)).map((time) => time.getTime()),
    };
    return { ok: true, value: line };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    return bad(said.replace(/^CronPattern: |^CronDate: /, ""));
  }
};
const bad = (message: string) => ({ ok: false, error: { reason: "cron.bad_schedule", message } }) as const;
