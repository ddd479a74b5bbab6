import assert from "node:assert/strict";
import { test } from "node:test";
import type { Acting } from "../state.ts";
import { shareOf } from "./share.ts";

const run = (more: Partial<Acting> = {}, waits = 1): Acting =>
  ({
    budget: { steps: 10, ms: 60_000, costUsd: 1, tokens: 1_000 },
    spent: { input: 0, output: 0, total: 0, costUsd: 0.4 },
    unpriced: 100,
    startedAt: 1_000,
    waitedMs: 500,
    calls: [...Array.from({ length: waits }, () => ({ isWait: true })), {}],
    ...more,
  }) as unknown as Acting;

test("[DG4] what is left is parted among the calls that hand tasks on; time passes for all of them", () => {
  assert.deepEqual(shareOf(run(), 11_500), { ms: 50_000, costUsd: 0.6, tokens: 900 });
  assert.deepEqual(shareOf(run({}, 3), 11_500), { ms: 50_000, costUsd: 0.6 / 3, tokens: 300 });
});
test("[DG4] what the owner has allowed beyond the limits is there too, and nothing is less than 0", () => {
  assert.equal(shareOf(run({ extra: { costUsd: 1 } }), 11_500).costUsd, 1.6);
  assert.deepEqual(shareOf(run({ unpriced: 2_000, spent: { input: 0, output: 0, total: 0, costUsd: 3 } }), 900_000), {
    ms: 0,
    costUsd: 0,
    tokens: 0,
  });
  assert.deepEqual(shareOf(run({ budget: undefined } as never), 0), { ms: 0, costUsd: 0 });
});
test("[DG4] over 10,000 histories of parallel tasks, none can use more than the run has left", () => {
  let seed = 7;
  const random = (): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
  for (let history = 0; history < 10_000; history++) {
    const limit = random() * 5;
    let spent = random() * limit;
    let open = 1 + Math.floor(random() * 5);
    const parts: number[] = [];
    // In any order: a call is begun with the share of the moment, or one that was begun ends and has used up to its part.
    while (open > 0 || parts.length > 0) {
      const waiting = open + parts.length;
      const state = run({ budget: { steps: 1, ms: 1, costUsd: limit }, spent: { input: 0, output: 0, total: 0, costUsd: spent } }, waiting);
      if (open > 0 && (parts.length === 0 || random() < 0.6)) {
        parts.push(shareOf(state, 0).costUsd);
        open--;
      } else {
        const [part = 0] = parts.splice(Math.floor(random() * parts.length), 1);
        spent += random() < 0.5 ? part : random() * part;
      }
      assert.ok(spent + parts.reduce((sum, part) => sum + part, 0) <= limit + 1e-9, `history ${history}`);
    }
  }
});
