import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { GsvConfig } from "../../../protocol/gen/types.ts";
import { hoursOf, type Hours, isWithin } from "../schedule/beat.ts";
import { digestText, firstLine, type Said } from "./digest.ts";
import { KIND_NAMES, KINDS } from "./kinds.ts";
import { isHeld, notificationProblems, parsePlace, placeOf, quietHours, waysOf } from "./places.ts";
import { quietUntil } from "./quiet.ts";

const MINUTE = 60_000;
const at = (text: string): number => Date.parse(text);
const hours = (start: string, end: string, timezone = "Europe/Amsterdam"): Hours => {
  const read = hoursOf({ start, end, timezone }, "UTC");
  assert.ok(read.ok && read.value !== undefined);
  return read.value;
};
const until = (of: Hours, text: string): string | undefined => {
  const end = quietUntil(of, at(text));
  return end === undefined ? undefined : new Date(end).toISOString().slice(0, 16);
};

describe("[NT4] quiet hours", () => {
  test("are over at their end, by the clock of their zone", () => {
    const night = hours("22:00", "07:00");
    assert.equal(until(night, "2026-11-23T21:00:00Z"), "2026-11-24T06:00");
    assert.equal(until(night, "2026-11-24T05:59:59Z"), "2026-11-24T06:00");
    assert.equal(until(night, "2026-11-24T06:00:00Z"), undefined);
    assert.equal(until(night, "2026-11-23T20:59:59Z"), undefined);
    assert.equal(until(hours("13:00", "14:30", "Asia/Kathmandu"), "2026-11-23T08:00:00Z"), "2026-11-23T08:45");
    assert.equal(until(hours("20:00", "24:00", "UTC"), "2026-11-23T20:00:00Z"), "2026-11-24T00:00");
    assert.equal(quietUntil(undefined, 0), undefined);
    const of = (given: object) => {
      const read = quietHours({ notifications: { quietHours: given } });
      return read.ok ? read.value : read.error.message;
    };
    assert.deepEqual(of({ start: "22:00" }), { start: 22 * 60, end: 24 * 60, tz: "UTC" }, "without an end, until midnight");
    assert.deepEqual(of({ end: "07:00" }), { start: 0, end: 7 * 60, tz: "UTC" });
    assert.equal(of({ timezone: "UTC" }), undefined);
  });
  test("end at the right moment on the days of a change of clocks, also when the end comes twice or not at all", () => {
    assert.equal(until(hours("22:00", "07:00"), "2026-03-28T23:00:00Z"), "2026-03-29T05:00");
    assert.equal(until(hours("22:00", "07:00"), "2026-10-24T23:00:00Z"), "2026-10-25T06:00");
    // 02:30 does not exist: 01:59 is followed by 03:00.
    assert.equal(until(hours("22:00", "02:30"), "2026-03-29T00:00:00Z"), "2026-03-29T01:00");
    // 02:30 comes at 00:30 and at 01:30 UTC, and between the two it is quiet again.
    assert.equal(until(hours("22:00", "02:30"), "2026-10-24T23:00:00Z"), "2026-10-25T00:30");
    assert.equal(until(hours("22:00", "02:30"), "2026-10-25T01:05:00Z"), "2026-10-25T01:30");
  });
  test("a moment is in them exactly when it has an end, which is the first moment outside", () => {
    const zones = ["Europe/Amsterdam", "America/New_York", "Australia/Lord_Howe", "Pacific/Chatham", "UTC"];
    const time = fc.integer({ min: 0, max: 287 }).map((five) => five * 5);
    const year = fc.integer({ min: at("2026-01-01") / MINUTE, max: at("2027-01-01") / MINUTE });
    fc.assert(
      fc.property(time, time, fc.constantFrom(...zones), year, (start, end, tz, minute) => {
        fc.pre(start !== end);
        const of = { start, end, tz };
        const found = quietUntil(of, minute * MINUTE);
        assert.equal(found !== undefined, isWithin(of, minute * MINUTE));
        if (found === undefined) return;
        assert.ok(found > minute * MINUTE && !isWithin(of, found) && isWithin(of, found - MINUTE));
      }),
      { numRuns: 300 },
    );
  });
  test("a question and a reminder are not held back, unless everything is; all else is", () => {
    const config = (everything: boolean) => ({ notifications: { quietHours: { start: "22:00", everything } } });
    assert.deepEqual(
      KIND_NAMES.filter((kind) => !isHeld(config(false), kind)),
      ["approval", "reminder"],
    );
    assert.ok(KIND_NAMES.every((kind) => isHeld(config(true), kind)));
  });
});

describe("[NT5] places", () => {
  test("are the main conversation, the last chat, a desktop, none, or a full place", () => {
    for (const place of ["main", "last", "none", "desktop", "desktop/lap.top_1", "whatsapp/default/dm/a/b"])
      assert.notEqual(parsePlace(place), undefined, place);
    for (const place of [
      "",
      "Main",
      "desk",
      "desktop/",
      "desktop/a b",
      "desktop/-x",
      "whatsapp",
      "whatsapp/default/x/1",
      "whatsapp/default/dm/",
    ])
      assert.equal(parsePlace(place), undefined, place);
    assert.deepEqual(parsePlace("desktop/lap"), { kind: "desktop", nodeId: "lap" });
  });
  test("what is not set is told where its kind says", () => {
    assert.equal(placeOf({}, "approval"), "last");
    assert.equal(placeOf({ notifications: { budget: "desktop" } }, "budget"), "desktop");
    for (const kind of KIND_NAMES) assert.notEqual(parsePlace(KINDS[kind].place), undefined);
  });
  test("[NT6] after a channel comes a desktop, and last the main conversation; none is none", () => {
    const names = (place: string) => waysOf(place).map((way) => (way.kind === "desktop" ? `desktop${way.nodeId ?? ""}` : way.kind));
    assert.deepEqual(names("whatsapp/default/dm/a"), ["channel", "desktop", "main"]);
    assert.deepEqual(names("last"), ["last", "desktop", "main"]);
    assert.deepEqual(names("desktop/lap"), ["desktoplap", "main"]);
    assert.deepEqual(names("main"), ["main"]);
    assert.deepEqual(names("none"), ["none"]);
    // A setting of a newer version is no reason to be silent.
    assert.deepEqual(names("carrier-pigeon"), ["main"]);
  });
  test("a wrong setting is named with what exists", () => {
    const problems = (notifications: NonNullable<GsvConfig["notifications"]>) => notificationProblems({ notifications }).join("\n");
    assert.equal(problems({ budget: "desktop", quietHours: { start: "22:00", end: "07:00" } }), "");
    assert.match(problems({ budget: "whatsapp" }), /^notifications\.budget: `whatsapp` is not a place\. Places are `main`, `last`, /);
    assert.match(problems({ quietHours: { start: "25:00", end: "07:00" } }), /^notifications\.quietHours: .*25:00/);
    assert.match(problems({ quietHours: { start: "07:00", end: "07:00" } }), /empty/);
    assert.match(problems({ quietHours: { start: "22:00", end: "07:00", timezone: "Mars/North" } }), /no time zone/);
  });
});

describe("[NT3] the text of several", () => {
  const said = (text: string, over: Partial<Said> = {}): Said => ({
    cause: "c",
    text,
    createdAt: at("2026-11-23T14:05:00Z"),
    more: 0,
    ...over,
  });
  test("one alone is as it was written", () => {
    assert.equal(digestText([said("It failed.\nLook.")], "UTC"), "It failed.\nLook.");
  });
  test("of one cause the latest is told, and how many there were", () => {
    const text = digestText([said("first"), said("second", { more: 4 }), said("third")], "Europe/Amsterdam");
    assert.match(
      text,
      /^third\n\(The latest of 7 such notifications since 15:05 \(Europe\/Amsterdam\); `gsv notifications` lists them\.\)$/,
    );
  });
  test("of several causes each has a line, at most ten, and the rest is counted", () => {
    const text = digestText([said("a\nmore"), said("b", { cause: "d", more: 1 })], "UTC");
    assert.equal(text, "3 notifications since 14:05 (UTC):\n- a\n- b (2 times)\n`gsv notifications` lists them.");
    const many = digestText(
      Array.from({ length: 15 }, (_, index) => said(`${index} ${"x".repeat(4_000)}`, { cause: String(index) })),
      "UTC",
    );
    assert.match(many, /^15 notifications .*\n(?:- .*\n){11}`gsv/);
    assert.match(many, /- and 5 more causes/);
    assert.ok(many.length <= 4_000);
  });
  test("a line for a desktop is one line of at most so many characters", () => {
    assert.equal(firstLine("\n  \nHello \nthere", 240), "Hello");
    assert.equal(firstLine("abcdefgh", 6), "abc...");
    assert.equal(firstLine("", 6), "");
  });
});
