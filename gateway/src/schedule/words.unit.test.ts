import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readTime } from "./words.ts";

/** A Sunday, eleven in the morning in Amsterdam. */
const NOW = Date.parse("2026-11-22T10:00:00Z");
const TZ = "Europe/Amsterdam";

describe("[SC9] times in words", () => {
  const times: readonly (readonly [words: string, time: string | undefined])[] = [
    ["in 2 hours", "2026-11-22T12:00:00Z"],
    ["in 2h", "2026-11-22T12:00:00Z"],
    ["in 90 minutes", "2026-11-22T11:30:00Z"],
    ["in an hour", "2026-11-22T11:00:00Z"],
    ["in half an hour", "2026-11-22T10:30:00Z"],
    ["in a week", "2026-11-29T10:00:00Z"],
    ["1m", "2026-11-22T10:01:00Z"],
    ["2h30m", "2026-11-22T12:30:00Z"],
    ["90 minutes", "2026-11-22T11:30:00Z"],
    ["an hour", "2026-11-22T11:00:00Z"],
    ["In 1 day and 2 hours", "2026-11-23T12:00:00Z"],
    ["tomorrow", "2026-11-23T08:00:00Z"],
    ["tomorrow 9am", "2026-11-23T08:00:00Z"],
    ["tomorrow at 9", "2026-11-23T08:00:00Z"],
    ["tomorrow  at  9:30 PM", "2026-11-23T20:30:00Z"],
    ["today 17:30", "2026-11-22T16:30:00Z"],
    ["17:30", "2026-11-22T16:30:00Z"],
    ["9am", "2026-11-23T08:00:00Z"],
    ["noon", "2026-11-22T11:00:00Z"],
    ["midnight", "2026-11-22T23:00:00Z"],
    ["12am", "2026-11-22T23:00:00Z"],
    ["2026-11-23T09:00+14:00", "2026-11-22T19:00:00Z"],
    ["2026-11-23T09:00+15:00", undefined],
    ["2026-11-23T09:00-05:60", undefined],
    ["12pm", "2026-11-22T11:00:00Z"],
    ["friday 17:30", "2026-11-27T16:30:00Z"],
    ["on fri at noon", "2026-11-27T11:00:00Z"],
    ["sunday 9am", "2026-11-29T08:00:00Z"],
    ["sunday 12:00", "2026-11-22T11:00:00Z"],
    ["next sunday 12:00", "2026-11-29T11:00:00Z"],
    ["next monday", "2026-11-23T08:00:00Z"],
    ["2026-12-24", "2026-12-24T08:00:00Z"],
    ["2026-12-24 18:00", "2026-12-24T17:00:00Z"],
    ["2026-12-24T18:00", "2026-12-24T17:00:00Z"],
    ["2026-12-24T18:00:30Z", "2026-12-24T18:00:30Z"],
    ["2026-12-24T18:00+05:30", "2026-12-24T12:30:00Z"],
    ["2026-12-24T18:00-0800", "2026-12-25T02:00:00Z"],
    // Clocks are set forward from 2:00 to 3:00.
    ["2027-03-28 02:30", "2027-03-28T01:00:00Z"],
    ["2026-13-01 09:00", undefined],
    ["2026-12-24T18:00:61Z", undefined],
    ["tomorrow 25:00", undefined],
    ["tomorrow 13pm", undefined],
    ["tomorrow 9:60", undefined],
    ["in some hours", undefined],
    ["in 2", undefined],
    ["1y", undefined],
    ["in", undefined],
    ["su 9am", undefined],
    ["yesterday", undefined],
    ["", undefined],
    ["9am tomorrow", undefined],
  ];
  for (const [words, time] of times)
    test(`${words === "" ? "nothing" : words}: ${time ?? "refused"}`, () => {
      const read = readTime(words, NOW, TZ);
      assert.equal(read === undefined ? undefined : new Date(read).toISOString().replace(".000", ""), time);
    });
});
