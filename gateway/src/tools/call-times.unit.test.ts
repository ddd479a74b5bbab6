import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { machineEntry, nativeEntry } from "../../test/support/tool-entries.ts";
import { callTimes } from "./call-times.ts";

const times = (...input: Parameters<typeof callTimes>): readonly number[] => {
  const { timeoutMs, deadlineMs } = callTimes(...input);
  return [timeoutMs, deadlineMs];
};
const bash = machineEntry("lap", "Bash");

describe("[G5] call times", () => {
  test("the caller's limit, else the tool's own, else the configured one", () => {
    const read = machineEntry("lap", "Read", { timeoutMs: 5_000 });
    assert.deepEqual(times(machineEntry("lap", "Read"), {}, { configuredMs: 60_000 }), [60_000, 65_000]);
    assert.deepEqual(times(read, {}, { configuredMs: 60_000 }), [5_000, 10_000]);
    assert.deepEqual(times(read, {}, { wantedMs: 100, configuredMs: 60_000 }), [100, 5_100]);
    assert.deepEqual(times(machineEntry("lap", "Read", { timeoutMs: 0 }), {}, { wantedMs: 0, configuredMs: 60_000 }), [60_000, 65_000]);
  });
  test("a command gets at least its stated time and a round trip", () => {
    assert.deepEqual(times(bash, { timeout: 120_000 }, { configuredMs: 60_000 }), [125_000, 130_000]);
    assert.deepEqual(times(bash, { timeout: 300_000 }, { wantedMs: 1_000, configuredMs: 60_000 }), [305_000, 310_000]);
    assert.deepEqual(times(bash, { timeout: 1_000 }, { configuredMs: 60_000 }), [60_000, 65_000]);
  });
  test("a stated time that is not a positive number is ignored", () => {
    for (const timeout of ["300000", -1, 0, Number.NaN, Number.POSITIVE_INFINITY, null, {}])
      assert.deepEqual(times(bash, { timeout }, { configuredMs: 60_000 }), [60_000, 65_000]);
    for (const args of [null, [], "x", undefined]) assert.deepEqual(times(bash, args, { configuredMs: 60_000 }), [60_000, 65_000]);
  });
  test("a stated time of 0 adds no round trip to a short limit", () => {
    assert.deepEqual(times(bash, { timeout: 0 }, { configuredMs: 1_000 }), [1_000, 6_000]);
  });
  test("only the tool that has such an argument reads it", () => {
    assert.deepEqual(times(machineEntry("lap", "Read"), { timeout: 300_000 }, { configuredMs: 60_000 }), [60_000, 65_000]);
  });
  test("at least 1 ms, at most a day", () => {
    assert.deepEqual(times(bash, { timeout: 1e12 }, { configuredMs: 60_000 }), [86_400_000, 86_400_000]);
    assert.deepEqual(times(bash, {}, { configuredMs: 0 }), [1, 5_001]);
  });
  test("a native call has no round trip: its deadline is its limit", () => {
    assert.deepEqual(times(nativeEntry("gsv__A"), {}, { configuredMs: 60_000 }), [60_000, 60_000]);
  });
});
