import assert from "node:assert/strict";
import { test } from "node:test";
import { readDuration } from "./duration.ts";

test("durations are read, and other texts are refused", () => {
  for (const [words, ms] of [
    ["30m", 1_800_000],
    ["2h30m", 9_000_000],
    ["1.5 hours", 5_400_000],
    ["1 week, 2 days", 777_600_000],
    ["90s", 90_000],
    ["2 fortnights", undefined],
    ["h", undefined],
    ["30", undefined],
    ["30m!", undefined],
    ["-5m", undefined],
    ["1h".repeat(64), 64 * 3_600_000],
    ["1h".repeat(65), undefined],
  ] as const)
    assert.equal(readDuration(words), ms, words);
});
