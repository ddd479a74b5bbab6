import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Temporal } from "temporal-polyfill";
import { cronLines } from "./cron-lines.ts";
import { nextTimes, readSchedule } from "./read.ts";
import { type CronLine, due, GRACE_MS, MISSED_NAMED, nextTime, type Schedule } from "./schedule.ts";
import { momentOf } from "./zone.ts";
import { sized } from "../../../test/sizes.ts";

const HOUR = 3_600_000;
const lineOf = (expr: string, tz = "UTC"): CronLine => {
  const line = cronLines(expr, tz);
  assert.ok(line.ok, expr);
  return line.value;
};
const at = (text: string): number => Date.parse(text);
const ZONES = [
  "Europe/Berlin",
  "America/New_York",
  "America/Havana",
  "America/St_Johns",
  "Australia/Lord_Howe",
  "Pacific/Chatham",
  "Africa/Casablanca",
  "Asia/Kolkata",
  "America/Santiago",
  "UTC",
];

/** The rule SC3, told by another library: the time of a day, or the end of the gap that it falls into. */
function expected(day: Temporal.PlainDate, hour: number, minute: number, tz: string): number {
  const local = day.toPlainDateTime({ hour, minute });
  const earlier = local.toZonedDateTime(tz, { disambiguation: "earlier" });
  if (earlier.toPlainDateTime().equals(local)) return earlier.epochMilliseconds;
  const change = earlier.getTimeZoneTransition("next");
  assert.ok(change !== null);
  return change.epochMilliseconds;
}

const changesNear = (day: Temporal.PlainDate, tz: string): boolean => {
  const offsets = [day.subtract({ days: 1 }), day.add({ days: 3 })].map((each) => each.toZonedDateTime(tz).offsetNanoseconds);
  return offsets[0] !== offsets[1];
};

const YEARS = sized(4, 10);
describe(`[SC3] a cron expression across changes of clocks, in ten zones over ${YEARS} years`, () => {
  for (const tz of ZONES)
    test(tz, () => {
      const first = Temporal.PlainDate.from("2026-01-01");
      for (const [hour, minute, step] of [
        [2, 30, 1],
        // Only around the changes of clocks.
        [0, 15, 3],
        [1, 45, 3],
        [3, 0, 3],
      ] as const) {
        const line = lineOf(`${minute} ${hour} * * *`, tz);
        for (let days = 1; days < 365.25 * YEARS; days += step) {
          const day = first.add({ days });
          if (step > 1 && !changesNear(day, tz)) continue;
          for (const each of step > 1 ? [day, day.add({ days: 1 }), day.add({ days: 2 })] : [day]) {
            const before = expected(each.subtract({ days: 1 }), hour, minute, tz);
            assert.equal(line.after(before), expected(each, hour, minute, tz), `${tz} ${String(each)} ${hour}:${minute}`);
          }
        }
      }
    });
  test("a line for each half hour follows elapsed time", () => {
    const line = lineOf("*/30 * * * *", "Europe/Berlin");
    let time = at("2026-10-24T20:00:00Z");
    for (let count = 0; count < 24; count++) {
      const next = line.after(time);
      assert.equal(next, time + HOUR / 2);
      time = next ?? 0;
    }
  });
});

test("[SC9] the moment of a local time agrees with another library", () => {
  fc.assert(
    fc.property(fc.constantFrom(...ZONES), fc.integer({ min: 0, max: 3_650 * 24 * 60 }), (tz, minutes) => {
      const local = Temporal.PlainDateTime.from("2026-01-01T00:00").add({ minutes });
      const { year, month, day, hour, minute } = local;
      assert.equal(momentOf({ year, month, day, hour, minute }, tz), expected(local.toPlainDate(), hour, minute, tz));
    }),
    { numRuns: 3_000 },
  );
  assert.equal(momentOf({ year: 2026, month: 2, day: 30, hour: 9, minute: 0 }, "UTC"), undefined);
  assert.equal(momentOf({ year: 2026, month: 2, day: 3, hour: 24, minute: 0 }, "UTC"), undefined);
});

const schedules = fc.oneof(
  fc.record({
    kind: fc.constant("every" as const),
    everyMs: fc.integer({ min: 60_000, max: 40 * 24 * HOUR }),
    anchorMs: fc.nat(2_000_000_000_000),
  }),
  fc.record({
    kind: fc.constant("cron" as const),
    expr: fc.constantFrom("*/7 * * * *", "0 9 * * mon-fri", "30 2 * * *", "0 0 1 * *", "15 1,2,3 * * sun", "0 0 29 2 *"),
    tz: fc.constantFrom(...ZONES),
  }),
);
const lineFor = (schedule: Schedule): CronLine | undefined => (schedule.kind === "cron" ? lineOf(schedule.expr, schedule.tz) : undefined);
const moments = fc.integer({ min: at("2026-01-01"), max: at("2036-01-01") });

describe("[SC4] the times that came while the gateway was not there", () => {
  test("[P16] the next time is later, and no time lies between", () => {
    fc.assert(
      fc.property(schedules, moments, (schedule, now) => {
        const line = lineFor(schedule);
        const next = nextTime(schedule, now, line);
        assert.ok(next !== undefined && next > now);
        assert.equal(nextTime(schedule, next - 1, line), next);
      }),
      { numRuns: 400 },
    );
  });
  test("each time that came runs or is missed, exactly once, and only the latest may run", () => {
    fc.assert(
      fc.property(schedules, moments, fc.integer({ min: 0, max: 9 * HOUR }), (schedule, from, down) => {
        const line = lineFor(schedule);
        const first = nextTime(schedule, from, line);
        assert.ok(first !== undefined);
        const now = first + down;
        const all: number[] = [];
        for (
          let time: number | undefined = first;
          time !== undefined && time <= now && all.length < 1_001;
          time = nextTime(schedule, time, line)
        )
          all.push(time);
        const { start, missed, missedCount } = due(schedule, first, now, line);
        const latest = all.at(-1) ?? 0;
        if (all.length < 1_001) {
          assert.equal(start, now - latest <= GRACE_MS ? latest : undefined);
          assert.equal(missedCount + (start === undefined ? 0 : 1), all.length);
          assert.deepEqual(
            missed,
            all
              .filter((time) => time !== start)
              .toReversed()
              .slice(0, MISSED_NAMED),
          );
        }
      }),
      { numRuns: 150 },
    );
  });
  test("a reminder always runs, however late", () => {
    const schedule: Schedule = { kind: "at", atMs: 1_000 };
    assert.deepEqual(due(schedule, 1_000, 10 * 365 * 24 * HOUR, undefined), { start: 1_000, missed: [], missedCount: 0 });
    assert.deepEqual(due(schedule, 1_000, 999, undefined), { missed: [], missedCount: 0 });
    assert.equal(nextTime(schedule, 999, undefined), 1_000);
    assert.equal(nextTime(schedule, 1_000, undefined), undefined);
  });
  test("exactly an hour late still runs, a millisecond more does not", () => {
    const schedule: Schedule = { kind: "every", everyMs: 24 * HOUR, anchorMs: 0 };
    assert.equal(due(schedule, 24 * HOUR, 25 * HOUR, undefined).start, 24 * HOUR);
    assert.deepEqual(due(schedule, 24 * HOUR, 25 * HOUR + 1, undefined), { missed: [24 * HOUR], missedCount: 1 });
  });
  test("an interval whose beginning is ahead begins then", () => {
    const schedule: Schedule = { kind: "every", everyMs: HOUR, anchorMs: 10 * HOUR };
    assert.equal(nextTime(schedule, 0, undefined), 10 * HOUR);
    assert.equal(nextTime(schedule, 10 * HOUR, undefined), 11 * HOUR);
    assert.deepEqual(due(schedule, 0, HOUR, undefined), { missed: [], missedCount: 0 });
  });
});

describe("[SC9] what a schedule may be", () => {
  const now = at("2026-11-22T10:00:00Z");
  const read = (given: Parameters<typeof readSchedule>[0], tz = "Europe/Amsterdam") => readSchedule(given, { now, tz, engine: cronLines });
  const problem = (given: Parameters<typeof readSchedule>[0]): string => {
    const result = read(given);
    assert.ok(!result.ok, JSON.stringify(given));
    assert.equal(result.error.reason, "cron.bad_schedule");
    return result.error.message;
  };
  test("is stored with everything worked out", () => {
    assert.deepEqual(read({ kind: "at", at: "tomorrow 9am" }), { ok: true, value: { kind: "at", atMs: at("2026-11-23T08:00:00Z") } });
    assert.deepEqual(read({ kind: "at", at: "tomorrow 9am", tz: "Asia/Tokyo" }), {
      ok: true,
      value: { kind: "at", atMs: at("2026-11-23T00:00:00Z") },
    });
    assert.deepEqual(read({ kind: "every", every: "2h30m" }), { ok: true, value: { kind: "every", everyMs: 2.5 * HOUR, anchorMs: now } });
    assert.deepEqual(read({ kind: "cron", expr: " 0 9 * * mon-fri " }), {
      ok: true,
      value: { kind: "cron", expr: "0 9 * * mon-fri", tz: "Europe/Amsterdam" },
    });
  });
  test("the shortest and the longest interval are taken", () => {
    for (const everyMs of [60_000, 366 * 24 * HOUR])
      assert.deepEqual(read({ kind: "every", everyMs }), { ok: true, value: { kind: "every", everyMs, anchorMs: now } });
    for (const everyMs of [59_999, 366 * 24 * HOUR + 1]) assert.equal(read({ kind: "every", everyMs }).ok, false);
  });
  const bad: readonly (readonly [given: Parameters<typeof readSchedule>[0], says: RegExp])[] = [
    [{ kind: "at", at: "someday" }, /is not a time/],
    [{ kind: "at", at: "2026-02-30 09:00" }, /is not a time/],
    [{ kind: "at", atMs: now }, /is over/],
    [{ kind: "at", atMs: now + 11 * 366 * 24 * HOUR }, /ten years/],
    [{ kind: "at" }, /once/],
    [{ kind: "at", at: "noon", atMs: now + 1 }, /once/],
    [{ kind: "at", at: "noon", tz: "Mars/Phobos" }, /no time zone `Mars\/Phobos`/],
    [{ kind: "every", every: "59s" }, /once a minute/],
    [{ kind: "every", every: "400d" }, /once a year/],
    [{ kind: "every", every: "often" }, /not an interval/],
    [{ kind: "every" }, /once/],
    [{ kind: "cron", expr: "61 * * * *" }, /not a cron expression/],
    [{ kind: "cron", expr: "* * * *" }, /not a cron expression: It has 4 fields, and a cron expression has exactly 5: minute, hour/],
    [{ kind: "cron", expr: "* * * * * *" }, /not a cron expression: It has 6 fields, and a cron expression has exactly 5: minute, hour/],
    [{ kind: "cron", expr: "daily" }, /It has 1 field, /],
    [{ kind: "cron", expr: "0 0 31 2 *" }, /never comes/],
    [{ kind: "cron", expr: "0 9 * * *", tz: "Nowhere/At_All" }, /no time zone/],
  ];
  for (const [given, says] of bad) test(`refused: ${JSON.stringify(given)}`, () => assert.match(problem(given), says));
  test("any text is a schedule or a refusal, and a schedule has a next time", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), fc.constantFrom("at", "every", "cron"), (text, kind) => {
        const given = kind === "at" ? { kind, at: text } : kind === "every" ? { kind, every: text } : { kind: "cron" as const, expr: text };
        const result = read(given as Parameters<typeof readSchedule>[0]);
        if (!result.ok) assert.equal(result.error.reason, "cron.bad_schedule");
        else assert.ok((nextTime(result.value, now, lineFor(result.value)) ?? 0) > now);
      }),
      { numRuns: 2_000 },
    );
  });
  test("the next times are as many as there are", () => {
    assert.deepEqual(nextTimes({ kind: "at", atMs: 5 }, 1, 3, undefined), [5]);
    assert.deepEqual(nextTimes({ kind: "every", everyMs: 60_000, anchorMs: 0 }, 0, 3, undefined), [60_000, 120_000, 180_000]);
  });
});
