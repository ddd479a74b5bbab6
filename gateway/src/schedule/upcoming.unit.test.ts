import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { Temporal } from "temporal-polyfill";
import { type BeatSettings, beatLine } from "./beat.ts";
import { cronLines } from "./cron-lines.ts";
import { nextTimes } from "./read.ts";
import type { Schedule } from "./schedule.ts";
import { type ComingJob, firstTime, type Upcoming, upcoming, type Window } from "./upcoming.ts";
import { sized } from "../../../test/sizes.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const BERLIN = "Europe/Berlin";
const at = (text: string): number => Date.parse(text);
interface Job extends ComingJob {
  readonly id: string;
}
const cron = (id: string, expr: string, now: number, tz = BERLIN): Job => {
  const line = cronLines(expr, tz);
  assert.ok(line.ok, expr);
  return { id, schedule: { kind: "cron", expr, tz }, line: line.value, nextAt: line.value.after(now) ?? Number.POSITIVE_INFINITY };
};
const every = (id: string, everyMs: number, nextAt: number): Job => ({
  id,
  schedule: { kind: "every", everyMs, anchorMs: nextAt },
  line: undefined,
  nextAt,
});
const once = (id: string, atMs: number): Job => ({ id, schedule: { kind: "at", atMs }, line: undefined, nextAt: atMs });
const beat = (settings: Omit<BeatSettings, "target">, now: number): Job => {
  const line = beatLine({ target: "last", ...settings });
  return { id: "beat", schedule: { kind: "beat" }, line, nextAt: line.after(now) ?? 0, everyMs: settings.everyMs };
};
const week = (now: number, more: Partial<Window> = {}): Window => ({ now, tz: BERLIN, days: 7, limit: 200, ...more });
/** As a person reads it. */
function read({ days }: Upcoming<Job>, tz = BERLIN): Record<string, string[]> {
  const clock = (time: number) => Temporal.Instant.fromEpochMilliseconds(time).toZonedDateTimeISO(tz).toPlainTime().toString().slice(0, 5);
  return Object.fromEntries(
    days.map(({ date, entries }) => [
      date,
      entries.map(({ job, at: first, lastAt, count, isMore, everyMs }) =>
        lastAt === undefined
          ? `${clock(first)} ${job.id}`
          : `${clock(first)}-${clock(lastAt)} ${isMore ? "more than " : ""}${count}${everyMs === undefined ? "" : ` every ${everyMs / MINUTE}`} ${job.id}`,
      ),
    ]),
  );
}

describe("[SC14] the times to come, by days", () => {
  const now = at("2026-11-22T10:10:00Z");
  test("each job on its days, the earliest first; today is what is left of it", () => {
    const jobs = [
      cron("report", "0 9 * * mon-fri", now),
      cron("late", "30 22 * * *", now),
      once("dentist", at("2026-11-24T07:00:00Z")),
      once("later", at("2026-11-29T10:00:00Z")),
    ];
    assert.deepEqual(read(upcoming(jobs, week(now, { days: 3 }))), {
      "2026-11-22": ["22:30 late"],
      "2026-11-23": ["09:00 report", "22:30 late"],
      "2026-11-24": ["08:00 dentist", "09:00 report", "22:30 late"],
    });
  });
  test("more than three times of a job on a day are one entry; three are not", () => {
    const jobs = [cron("three", "0 9,12,15 * * *", now), cron("four", "0 9,12,15,18 * * *", now), cron("odd", "0 8,9,17,18 * * *", now)];
    assert.deepEqual(read(upcoming(jobs, week(now, { days: 2 })))["2026-11-23"], [
      "08:00-18:00 4 odd",
      "09:00 three",
      "09:00-18:00 4 every 180 four",
      "12:00 three",
      "15:00 three",
    ]);
  });
  test("a heartbeat keeps its interval also when the hours begin between two", () => {
    const hours = { start: 6 * 60 + 45, end: 22 * 60, tz: BERLIN };
    const found = upcoming([beat({ everyMs: 30 * MINUTE, hours }, now)], week(now, { days: 2 }));
    assert.deepEqual(read(found), { "2026-11-22": ["11:30-21:30 21 every 30 beat"], "2026-11-23": ["06:45-21:30 31 every 30 beat"] });
  });
  test("a job with one time that waits is on the first day, with its own time", () => {
    const [today] = upcoming([once("reminder", now - 30 * HOUR)], week(now)).days;
    assert.deepEqual(
      today?.entries.map((entry) => [today.date, entry.at, entry.count]),
      [["2026-11-22", now - 30 * HOUR, 1]],
    );
  });
  test("a repeating job whose time has just come is there with its next one", () => {
    const job = { ...cron("report", "0 * * * *", now), nextAt: now - MINUTE };
    assert.equal(firstTime(job, now), at("2026-11-22T11:00:00Z"));
    assert.equal(firstTime({ ...job, nextAt: now + MINUTE }, now), now + MINUTE);
    assert.equal(firstTime({ ...job, nextAt: now }, now), firstTime({ ...job, nextAt: now - 1 }, now));
  });
  test("no days, and no jobs", () => {
    assert.deepEqual(upcoming([cron("report", "0 9 * * *", now)], week(now, { days: 0 })), { days: [], leftOut: 0, daysLeftOut: 0 });
    assert.deepEqual(upcoming([], week(now)), { days: [], leftOut: 0, daysLeftOut: 0 });
  });
});

describe("[SC14] days of a change of clocks", () => {
  test("forward: the day has 23 hours, and a time that is skipped comes at the next minute that exists", () => {
    const now = at("2026-03-28T12:00:00Z");
    const jobs = [every("hourly", HOUR, at("2026-03-28T12:30:00Z")), cron("skipped", "30 2 * * *", now)];
    const found = read(upcoming(jobs, week(now, { days: 3 })));
    assert.deepEqual(found["2026-03-29"], ["00:30-23:30 23 every 60 hourly", "03:00 skipped"]);
    assert.deepEqual(found["2026-03-30"], ["00:30-23:30 24 every 60 hourly", "02:30 skipped"]);
  });
  test("back: the day has 25 hours, and a time that comes twice is there once", () => {
    const now = at("2026-10-24T12:00:00Z");
    const jobs = [every("hourly", HOUR, at("2026-10-24T12:30:00Z")), cron("twice", "30 2 * * *", now)];
    const found = read(upcoming(jobs, week(now, { days: 3 })));
    assert.deepEqual(found["2026-10-25"], ["00:30-23:30 25 every 60 hourly", "02:30 twice"]);
    assert.deepEqual(found["2026-10-26"], ["00:30-23:30 24 every 60 hourly", "02:30 twice"]);
  });
  test("clocks that change at midnight: the day begins with its first minute", () => {
    // In Beirut 2026-03-29 begins at 01:00.
    const now = at("2026-03-28T12:00:00Z");
    const found = upcoming([every("hourly", HOUR, at("2026-03-28T21:00:00Z"))], week(now, { tz: "Asia/Beirut", days: 3 }));
    assert.deepEqual(read(found, "Asia/Beirut"), {
      "2026-03-28": ["23:00 hourly"],
      "2026-03-29": ["01:00-23:00 23 every 60 hourly"],
      "2026-03-30": ["00:00-23:00 24 every 60 hourly"],
    });
  });
  test("a job in another zone is on the days of the owner", () => {
    const now = at("2026-11-22T10:00:00Z");
    const found = upcoming([cron("tokyo", "0 6 * * mon", now, "Asia/Tokyo")], week(now, { tz: "America/New_York" }));
    assert.deepEqual(read(found, "America/New_York"), { "2026-11-22": ["16:00 tokyo"] });
  });
});

describe("[SC14] what is left out is said", () => {
  const now = at("2026-11-22T10:10:00Z");
  test("entries beyond the limit are counted", () => {
    const found = upcoming([cron("a", "0 9 * * *", now), cron("b", "0 12 * * *", now)], week(now, { limit: 3 }));
    assert.deepEqual(read(found), { "2026-11-22": ["12:00 b"], "2026-11-23": ["09:00 a", "12:00 b"] });
    // Six times of `a` and seven of `b`.
    assert.equal(found.leftOut, 10);
    assert.equal(found.daysLeftOut, 0);
  });
  test("a line for each minute is counted up to 150 times a day, with the last time of the day", () => {
    const found = upcoming([cron("busy", "* * * * *", now)], week(now, { days: 2 }));
    assert.deepEqual(read(found), { "2026-11-22": ["11:11-23:59 more than 150 busy"], "2026-11-23": ["00:00-23:59 more than 150 busy"] });
  });
  test("very many lines: the first day is whole, the work is bounded, and the days left out are counted", () => {
    let asked = 0;
    const busy = cron("busy", "* * * * *", now);
    const counted = {
      ...busy,
      line: {
        after: (time: number) => {
          asked++;
          return time + MINUTE;
        },
        before: (time: number) => {
          asked++;
          return [time - (time % MINUTE)];
        },
      },
    };
    const jobs = Array.from({ length: 200 }, () => counted);
    const found = upcoming(jobs, week(now, { days: 31, limit: 500 }));
    assert.equal(found.days[0]?.entries.length, 200);
    assert.ok(found.daysLeftOut > 20 && found.daysLeftOut < 31, `${found.daysLeftOut}`);
    assert.ok(asked < 6_000, `${asked}`);
  });
});

const schedules = fc.oneof(
  fc.record({
    kind: fc.constant("every" as const),
    everyMs: fc.integer({ min: 10 * MINUTE, max: 40 * HOUR }),
    anchorMs: fc.integer({ min: at("2026-01-01"), max: at("2028-01-01") }),
  }),
  fc.record({
    kind: fc.constant("cron" as const),
    expr: fc.constantFrom("*/30 * * * *", "0 9 * * mon-fri", "30 2 * * *", "0 0 * * *", "15 1,2,3 * * sun", "0 */5 * * *"),
    tz: fc.constantFrom(BERLIN, "America/Havana", "Australia/Lord_Howe", "Pacific/Apia"),
  }),
);
test("[SC14] every time of the days is in exactly one entry, and no other is", () => {
  fc.assert(
    fc.property(
      schedules,
      fc.integer({ min: at("2026-01-01"), max: at("2028-01-01") }),
      fc.constantFrom(BERLIN, "America/Havana", "Asia/Beirut", "Pacific/Chatham"),
      (schedule: Schedule, now, tz) => {
        const engine = schedule.kind === "cron" ? cronLines(schedule.expr, schedule.tz) : undefined;
        const line = engine?.ok === true ? engine.value : undefined;
        const [nextAt = 0] = nextTimes(schedule, now, 1, line);
        const { days } = upcoming([{ id: "job", schedule, line, nextAt }], week(now, { tz, days: 4 }));
        const dayOf = (time: number) => Temporal.Instant.fromEpochMilliseconds(time).toZonedDateTimeISO(tz).toPlainDate();
        const end = dayOf(now).add({ days: 4 }).toString();
        // Dates as texts are in the order of time.
        const expected = nextTimes(schedule, now, 4 * 6 * 26, line)
          .map((time) => ({ time, date: dayOf(time).toString() }))
          .filter(({ date }) => date < end);
        for (const { date, entries } of days) {
          const own = expected.filter((each) => each.date === date).map(({ time }) => time);
          assert.equal(
            entries.reduce((sum, { count }) => sum + count, 0),
            own.length,
            date,
          );
          assert.equal(entries[0]?.at, own[0]);
          assert.equal(entries.at(-1)?.lastAt ?? entries.at(-1)?.at, own.at(-1));
        }
        const all = days.flatMap(({ entries }) => entries).reduce((sum, { count }) => sum + count, 0);
        assert.equal(all, expected.length);
      },
    ),
    { numRuns: sized(40, 150) },
  );
});
