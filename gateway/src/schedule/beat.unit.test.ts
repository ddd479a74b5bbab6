import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { saysNothing, withoutWord } from "../prompt/heartbeat.ts";
import { type BeatSettings, beatLine, beatSettings, isWithin } from "./beat.ts";
import { check, type Condition, type Marks, readInstructions } from "./precheck.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const at = (text: string): number => Date.parse(text);
const settings = (config: Parameters<typeof beatSettings>[0]): BeatSettings => {
  const read = beatSettings(config, undefined, "Europe/Amsterdam");
  assert.ok(read.ok && read.value !== undefined);
  return read.value;
};
const beats = (of: BeatSettings, from: number, to: number): string[] => {
  const found: string[] = [];
  for (let time = beatLine(of).after(from) ?? to; time < to; time = beatLine(of).after(time) ?? to)
    found.push(new Date(time).toISOString().slice(0, 16));
  return found;
};

describe("[HB1] settings of a heartbeat", () => {
  test("the agent's own come before those of all agents; without an interval, and with 0, there is none", () => {
    const read = (own: object | undefined, all: object | undefined) => beatSettings(own, all, "UTC");
    assert.deepEqual(read(undefined, undefined), { ok: true, value: undefined });
    assert.deepEqual(read({ every: "0" }, { every: "30m" }), { ok: true, value: undefined });
    assert.deepEqual(read({ target: "none" }, { every: "2h30m" }), { ok: true, value: { everyMs: 2.5 * HOUR, target: "none" } });
    assert.deepEqual(read({ every: "1h", prompt: "Look." }, { prompt: "no", activeHours: { start: "22:00", end: "06:30" } }), {
      ok: true,
      value: { everyMs: HOUR, target: "last", prompt: "Look.", hours: { start: 1320, end: 390, tz: "UTC" } },
    });
  });
  for (const [what, config] of Object.entries({
    "an interval in words": { every: "often" },
    "less than a minute": { every: "30s" },
    "a place without its account": { every: "1h", target: "somewhere" },
    "an hour that is none": { every: "1h", activeHours: { start: "25:00" } },
    "no hours at all": { every: "1h", activeHours: { start: "08:00", end: "08:00" } },
    "a zone that is none": { every: "1h", activeHours: { start: "08:00", timezone: "Mars/Base" } },
  }))
    test(`${what} is refused with what is right`, () => {
      const read = beatSettings(config, undefined, "UTC");
      assert.ok(!read.ok && read.error.reason === "config.invalid");
    });
});

describe("[HB2] the times of a heartbeat", () => {
  test("multiples of the interval inside the hours, and the beginning of the hours", () => {
    const of = settings({ every: "4h", activeHours: { start: "08:30", end: "22:00" } });
    // Amsterdam is an hour ahead of UTC in winter.
    assert.deepEqual(beats(of, at("2026-11-22T00:00Z"), at("2026-11-23T08:00Z")), [
      "2026-11-22T07:30",
      "2026-11-22T08:00",
      "2026-11-22T12:00",
      "2026-11-22T16:00",
      "2026-11-22T20:00",
      "2026-11-23T07:30",
    ]);
  });
  test("hours over midnight, and an interval that is longer than the hours", () => {
    const night = settings({ every: "2h", activeHours: { start: "22:00", end: "02:00", timezone: "UTC" } });
    assert.deepEqual(beats(night, at("2026-11-22T12:00Z"), at("2026-11-23T12:00Z")), ["2026-11-22T22:00", "2026-11-23T00:00"]);
    const daily = settings({ every: "1d", activeHours: { start: "09:00", end: "10:00" } });
    // The clocks go forward on the 28th of March.
    assert.deepEqual(beats(daily, at("2027-03-26T12:00Z"), at("2027-03-29T12:00Z")), [
      "2027-03-27T08:00",
      "2027-03-28T07:00",
      "2027-03-29T07:00",
    ]);
  });
  test("what comes after a moment and what came before it are the same times", () => {
    const some = fc.record({
      every: fc.constantFrom("7m", "30m", "1h", "5h", "1d", "40h"),
      activeHours: fc.option(
        fc.record({
          start: fc.constantFrom("00:00", "08:30", "22:00"),
          end: fc.constantFrom("06:15", "21:00", "24:00"),
          timezone: fc.constantFrom("UTC", "Europe/Amsterdam", "America/New_York", "Asia/Kolkata"),
        }),
        { nil: undefined },
      ),
    });
    fc.assert(
      fc.property(some, fc.integer({ min: at("2026-01-01"), max: at("2027-12-31") }), ({ every, activeHours }, moment) => {
        const of = settings({ every, ...(activeHours === undefined ? {} : { activeHours }) });
        const line = beatLine(of);
        const next = line.after(moment);
        assert.ok(next !== undefined && next > moment);
        if (of.hours !== undefined) assert.ok(isWithin(of.hours, next));
        assert.equal(line.before(next, 1)[0], next);
        assert.equal(line.after(next - 1), next);
        const [latest, earlier] = line.before(moment, 2);
        assert.ok(latest !== undefined && earlier !== undefined && latest <= moment && earlier < latest);
        assert.equal(line.after(latest), next);
        assert.equal(line.after(earlier), latest);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("[HB3] [HB4] what HEARTBEAT.md asks for", () => {
  const conditionsOf = (text: string): readonly Condition[] => {
    const read = readInstructions(text);
    assert.ok(read.kind === "tasks");
    return read.conditions;
  };
  test("an empty file, headings, comments, and a front matter alone, are no task", () => {
    for (const text of [
      "",
      "# Rounds\n",
      "<!-- look at the mail -->\n",
      "---\nevery: 1h\n---\n",
      "---\nwhen:\n  - every: 1h\n---\n# Rounds\n<!-- x -->",
    ])
      assert.deepEqual(readInstructions(text), { kind: "empty" }, text);
  });
  test("tasks without conditions, and with them", () => {
    assert.deepEqual(conditionsOf("- look at the mail"), []);
    assert.deepEqual(conditionsOf('---\nwhen: # cheap\n  - every: 1d at 09:00\n  - file_changed: "notes/in.md"\n---\n- look'), [
      { kind: "every", ms: DAY, at: 540, text: "every: 1d at 09:00" },
      { kind: "file_changed", path: "notes/in.md", text: "file_changed: notes/in.md" },
    ]);
  });
  test("a line that is not a condition is a problem, and no task", () => {
    for (const line of [
      "every: often",
      "every: 1h at 09:00",
      "every: 1d at 24:00",
      "unread: two words",
      "http_changed: example.com",
      "look",
      "every:",
      "file_changed:",
      // To read a long length takes the square of the time.
      `every: ${"1".repeat(60_000)}`,
      `every: 1h${" ".repeat(60_000)}x`,
      `file_changed: ${"a".repeat(1_000)}`,
    ]) {
      const read = readInstructions(`---\n${line}\n---\n- look`);
      assert.ok(read.kind === "wrong" && read.problem.includes(line.trim().slice(0, 5)), line);
    }
  });
  test("all wrong lines are named, with their numbers, and those that are right are read", () => {
    const read = readInstructions("---\nevery: often\nevery: 2h\n\n- exec: laptop\nred: whatsapp\n---\n- look");
    assert.ok(read.kind === "wrong");
    assert.match(
      read.problem,
      /^HEARTBEAT\.md has 3 wrong lines\. Line 2, `every: often`: it is not a condition\. Line 5, `- exec: laptop`: it names no machine and command.*\. Line 6, `red: whatsapp`: it is not a condition\. Conditions are such as `every: 2h`/,
    );
    assert.deepEqual(
      read.conditions.map(({ text }) => text),
      ["every: 2h"],
    );
    const many = readInstructions(
      `---\n${Array.from({ length: 30 }, (_, at) => `wrong ${at} ${"x".repeat(200)}`).join("\n")}\n---\n- look`,
    );
    assert.ok(many.kind === "wrong" && many.problem.length < 2_048, "it fits the contract");
    assert.ok(many.problem.includes("and 22 more"));
  });
  const run = (condition: string, times: readonly string[], states: readonly string[] = []): boolean[] => {
    let marks: Marks = {};
    return times.map((time, index) => {
      const state = states[index];
      const found = check(conditionsOf(`---\n${condition}\n---\n- look`), marks, {
        now: at(time),
        tz: "Europe/Amsterdam",
        states: new Map(state === undefined ? [] : [["a.md", state]]),
      });
      marks = found.marks;
      return found.due.length > 0;
    });
  };
  test("an interval is due at once, and again when it has passed", () => {
    assert.deepEqual(run("every: 2h", ["2026-11-22T08:00Z", "2026-11-22T09:30Z", "2026-11-22T10:00Z", "2026-11-22T11:30Z"]), [
      true,
      false,
      true,
      false,
    ]);
  });
  test("a time of the day is due once after it has come; the first look makes nothing due", () => {
    assert.deepEqual(
      run("every: 1d at 09:00", [
        "2026-11-22T07:30Z",
        "2026-11-22T08:00Z",
        "2026-11-22T08:30Z",
        "2026-11-23T07:59Z",
        "2026-11-23T09:00Z",
        "2026-11-25T12:00Z",
      ]),
      [false, true, false, false, true, true],
    );
    assert.deepEqual(run("every: 1d at 09:00", ["2026-11-22T10:00Z", "2026-11-22T22:00Z", "2026-11-23T08:00Z"]), [false, false, true]);
    const week = Array.from({ length: 16 }, (_, day) => new Date(at("2026-11-22T08:05Z") + day * DAY).toISOString());
    assert.deepEqual(
      run("every: 7d at 09:00", week).flatMap((due, day) => (due ? [day] : [])),
      [7, 14],
    );
  });
  test("a file is due when it changes, comes or goes", () => {
    const times = Array.from({ length: 5 }, (_, hour) => new Date(at("2026-11-22T08:00Z") + hour * HOUR).toISOString());
    assert.deepEqual(run("file_changed: a.md", times, ["e1", "e1", "e2", "e2"]), [false, false, true, false, true]);
  });
});

describe("[HB5] an answer that says nothing", () => {
  test("is the word, with at most 300 characters beside it", () => {
    for (const text of [
      "HEARTBEAT_OK",
      " **HEARTBEAT_OK**\n",
      "HEARTBEAT_OK: all is quiet.",
      "Nothing is due. HEARTBEAT_OK",
      `HEARTBEAT_OK ${"x".repeat(300)}`,
    ])
      assert.ok(saysNothing(text), text);
    for (const text of ["", "All is quiet.", "The word HEARTBEAT_OK means nothing", `HEARTBEAT_OK ${"x".repeat(301)}`, "heartbeat_ok"])
      assert.ok(!saysNothing(text), text);
    assert.equal(withoutWord("The mail is down.\n**HEARTBEAT_OK**"), "The mail is down.");
  });
});
