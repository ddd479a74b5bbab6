/**
 * Histories of a session: the real driver over a made-up world, crashed at every border, with losses, doubles, races, aborts, resets
 * and jumping clocks. A seed that fails goes to seeds.json, and stays there.
 *
 *   node --test gateway/test/sim/session.sim.test.ts        GSV_SIM_FACTOR=10 for ten times as many, 0.2 for a fifth
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { crowded, exhaustive, jumps, kept, random, tally, turnovers } from "./hunt.ts";

const factor = Number(process.env["GSV_SIM_FACTOR"] ?? "1");
/** A number of histories for this run. */
const times = (histories: number): number => Math.max(1, Math.round(histories * factor));
/** What a whole run reaches at least; a short run reaches its part. */
const least = (count: number): number => count * Math.min(1, factor);
const RANDOM = times(2_000);

test("[P1] [P10] [P12] every history that once failed holds", async () => {
  const sum = tally();
  await kept(sum);
  assert.ok(sum.histories > 0);
});

test("[P1] [P3] [P4] [P6] [P7] [P10] [P11] [P12] [P17] [W1] [W3] one crash, at each commit and effect border of small histories", async (t) => {
  const sum = tally();
  await exhaustive(times(24), sum);
  assert.ok(sum.kills > least(500), `only ${sum.kills} crashes happened`);
  t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.rows} rows`);
});

test("[P17] [R11] [K25] [K26] [K27] [W16] [W17] [W18] one crash, at each commit and effect border of compactions and resets", async (t) => {
  const sum = tally();
  await turnovers(times(10), sum);
  assert.ok(sum.kills > least(500) && sum.compactions > least(500), `only ${sum.kills} crashes and ${sum.compactions} compactions`);
  t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.compactions} compactions, ${sum.resets} resets`);
});

test("[P17] [K25] [K26] [K27] [W16] [W17] [P4.4] random histories with a window that fills at every other message", async (t) => {
  const sum = tally();
  await crowded(1, times(500), sum);
  assert.ok(sum.compactions > 2 * sum.histories && sum.resets > sum.histories / 2, `${sum.compactions} compactions, ${sum.resets} resets`);
  t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.compactions} compactions, ${sum.resets} resets`);
});

test("[P20] a jump of the wall clock by a day ends nothing early", async (t) => {
  const sum = tally();
  await jumps(1, times(200), sum);
  t.diagnostic(`${sum.histories} histories, ${sum.rows} rows`);
});

test("[P1] [P3] [P4] [P5] [P6] [P7] [P10] [P11] [P12] [P13] [P14] [P17] [P20] [W5] [W6] [W7] [W15] [W16] [W18] [W22] random histories with everything going wrong", async (t) => {
  const sum = tally();
  await random(1, RANDOM, sum);
  assert.equal(sum.histories, RANDOM);
  assert.ok(sum.kills > sum.histories, `only ${sum.kills} crashes in ${sum.histories} histories`);
  t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.rows} rows`);
});
