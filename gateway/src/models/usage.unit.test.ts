/** What a provider says that a call used. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { toUsage } from "./answer.ts";

const usage = (tokens: readonly [number, number, number, number], cost: readonly [number, number, number, number]) => {
  const [input, output, cacheRead, cacheWrite] = tokens;
  const total = cost.reduce((sum, part) => sum + part, 0);
  const parts = { input: cost[0], output: cost[1], cacheRead: cost[2], cacheWrite: cost[3], total };
  return { input, output, cacheRead, cacheWrite, totalTokens: input + output + cacheRead + cacheWrite, cost: parts };
};

test("[SP2] [SP3] numbers that can't be true give no credit: negative, fractions, no numbers, and beyond every limit", () => {
  assert.deepEqual(toUsage(usage([100, 10, 0, 0], [0.1, 0.2, 0, 0]), true).costUsd?.toFixed(2), "0.30");
  const negative = toUsage(usage([-1_000_000, 10, 0, 0], [-50, 0.2, 0, 0]), true);
  assert.deepEqual([negative.input, negative.output, negative.total, negative.costUsd], [0, 10, 10, 0.2]);
  const none = toUsage(usage([Number.NaN, 10, Number.POSITIVE_INFINITY, 0], [Number.NaN, 0.2, Number.POSITIVE_INFINITY, 0]), true);
  assert.deepEqual([none.input, none.cacheRead, none.total, none.costUsd], [0, 0, 10, 0.2]);
  const huge = toUsage(usage([1e300, 0.5, 0, 0], [1e290, 0, 0, 0]), true);
  assert.ok(Object.values(huge).every((n) => Number.isFinite(n) && n >= 0) && Number.isSafeInteger(huge.input) && huge.output === 1);
  assert.equal("costUsd" in toUsage(usage([1, 1, 0, 0], [0, 0, 0, 0]), false), false, "without a known price nothing is dollars");
});
