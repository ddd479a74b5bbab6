import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { effectivePolicy, lastHour, resetDue } from "./reset-policy.ts";

const at = (iso: string): number => Date.parse(iso);
const iso = (instant: number): string => new Date(instant).toISOString();
const daily = effectivePolicy({}, undefined);

describe("[P3.2] the reset policy", () => {
  test("the session's fields override the configuration's, and those override the defaults", () => {
    assert.deepEqual(effectivePolicy({}, undefined), { mode: "daily", atHour: 4, idleMinutes: 60 });
    assert.deepEqual(effectivePolicy({ atHour: 0 }, { mode: "idle", idleMinutes: 5 }), { mode: "idle", atHour: 0, idleMinutes: 5 });
  });
  test("daily: due when the hour has passed since the last activity", () => {
    assert.equal(resetDue(daily, "UTC", at("2026-03-10T03:59:59Z"), at("2026-03-10T04:00:00Z")), "daily");
    assert.equal(resetDue(daily, "UTC", at("2026-03-10T04:00:00Z"), at("2026-03-11T03:59:59Z")), undefined);
    assert.equal(resetDue(daily, "UTC", at("2026-03-01T12:00:00Z"), at("2026-03-11T03:00:00Z")), "daily");
  });
  test("daily: the hour is in the user's time zone", () => {
    const policy = { ...daily, atHour: 4 };
    // 04:00 in Tokyo is 19:00 UTC.
    assert.equal(resetDue(policy, "Asia/Tokyo", at("2026-03-10T18:59:00Z"), at("2026-03-10T19:01:00Z")), "daily");
    assert.equal(resetDue(policy, "Asia/Tokyo", at("2026-03-10T03:59:00Z"), at("2026-03-10T04:01:00Z")), undefined);
  });
  test("idle: due after the idle minutes", () => {
    const policy = { ...daily, mode: "idle" as const, idleMinutes: 30 };
    assert.equal(resetDue(policy, "UTC", 0, 30 * 60_000 - 1), undefined);
    assert.equal(resetDue(policy, "UTC", 0, 30 * 60_000), "idle");
  });
  test("manual: never due", () => assert.equal(resetDue({ ...daily, mode: "manual" }, "UTC", 0, at("2030-01-01T00:00:00Z")), undefined));
  test("[P20] an activity in the future causes no reset", () =>
    assert.equal(resetDue(daily, "UTC", at("2026-03-12T00:00:00Z"), at("2026-03-11T05:00:00Z")), undefined));
});

describe("the last instant of an hour", () => {
  test("[F] summer time begins: the hour that is skipped happens at the jump", () => {
    // Amsterdam, 29 March 2026: 02:00 -> 03:00, at 01:00 UTC.
    assert.equal(iso(lastHour(2, "Europe/Amsterdam", at("2026-03-29T12:00:00Z"))), "2026-03-29T01:00:00.000Z");
    assert.equal(iso(lastHour(4, "Europe/Amsterdam", at("2026-03-29T12:00:00Z"))), "2026-03-29T02:00:00.000Z");
  });
  test("[F] summer time ends: one of the two, never neither", () => {
    const found = iso(lastHour(2, "Europe/Amsterdam", at("2026-10-25T12:00:00Z")));
    assert.ok(["2026-10-25T00:00:00.000Z", "2026-10-25T01:00:00.000Z"].includes(found), found);
  });
  test("before the hour it is yesterday's instant", () =>
    assert.equal(iso(lastHour(4, "America/New_York", at("2026-07-01T07:59:00Z"))), "2026-06-30T08:00:00.000Z"));
  test("time zones with odd minutes", () =>
    assert.equal(iso(lastHour(4, "Asia/Kathmandu", at("2026-07-01T12:00:00Z"))), "2026-06-30T22:15:00.000Z"));
  test("an unknown time zone counts as UTC", () =>
    assert.equal(iso(lastHour(4, "Mars/Olympus", at("2026-07-01T12:00:00Z"))), "2026-07-01T04:00:00.000Z"));
  test("a remembered answer is the one that is found: before, in and after the hour, also where the clocks change", () => {
    for (const [zone, hour, around] of [
      ["Europe/Amsterdam", 4, "2026-07-01T02:00:00Z"],
      ["Europe/Amsterdam", 2, "2026-03-29T01:00:00Z"],
      ["Europe/Amsterdam", 2, "2026-10-25T01:00:00Z"],
      ["Asia/Kathmandu", 4, "2026-06-30T22:15:00Z"],
    ] as const) {
      for (let second = -3 * 3600; second <= 3 * 3600; second += 20) {
        const wall = at(around) + second * 1000;
        const remembered = lastHour(hour, zone, wall);
        // Another hour is asked for, so that nothing of this one is remembered.
        lastHour((hour + 1) % 24, zone, wall);
        assert.equal(iso(lastHour(hour, zone, wall)), iso(remembered), `${zone} ${iso(wall)}`);
        lastHour(hour, zone, wall);
      }
    }
  });
  test("the instant is within the last 48 hours, never in the future", () => {
    for (let day = 0; day < 400; day++) {
      const wall = at("2026-01-01T00:30:00Z") + day * 86_400_000 + (day % 24) * 3_600_000;
      for (const zone of ["Europe/Amsterdam", "Australia/Lord_Howe", "Pacific/Apia"]) {
        const found = lastHour(day % 24, zone, wall);
        assert.ok(found <= wall && wall - found <= 2 * 86_400_000, `${iso(wall)} ${zone}`);
      }
    }
  });
});
