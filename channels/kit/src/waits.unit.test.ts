import assert from "node:assert/strict";
import { test } from "node:test";
import { KIT } from "./limits.ts";
import { dueAt } from "./waits.ts";

test("[P2][P9] a due time later than twice the longest wait means that the clock was set back: it is due now", () => {
  const now = 1_700_000_000_000;
  const latest = now + 2 * KIT.retryMaxMs;
  assert.deepEqual([dueAt(latest, now), dueAt(latest + 1, now), dueAt(now - 1, now)], [latest, now, now - 1]);
});
