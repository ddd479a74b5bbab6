/**
 * Histories of a session: the real driver over a made-up world, crashed at every border, with losses, duplicates, races, aborts, resets
 * and clock jumps. A seed that fails goes to seeds.json, and stays there.
 *
 *   node --test gateway/test/sim/session.sim.test.ts        GSV_SIM_FACTOR=10 for ten times as many, 0.2 for a fifth
 *
 * Without a factor, what happens by chance has all of its histories, and what is tried at each border or happens on purpose has a part.
 */
import assert from "node:assert/strict";
import { availableParallelism } from "node:os";
import { describe, test } from "node:test";
import { TRANSITIONS } from "../../src/session/machine/transitions.ts";
import type { Tally } from "./hunt.ts";
import { inThread } from "./thread.ts";

const FACTOR = process.env["GSV_SIM_FACTOR"] === undefined ? undefined : Number(process.env["GSV_SIM_FACTOR"]);
/** A number of histories for this run. `usual`: how many of them a run without a factor has. */
const times = (histories: number, usual = histories): number => Math.max(1, Math.round(FACTOR === undefined ? usual : histories * FACTOR));
/** What a whole run reaches at least; a short run reaches its part, as a run without a factor does. */
const least = (count: number): number => count * Math.min(1, FACTOR ?? 0.25);

/** Transitions that the tests of this file took, and how often. */
const covered = new Map<string, number>();
function count({ transitions }: Tally): void {
  for (const [name, times] of transitions) covered.set(name, (covered.get(name) ?? 0) + times);
}

/** Everything goes wrong in all of them; each test has seeds of its own, and every promise is checked in each history. */
const RANDOM: readonly string[] = [
  "[P1] [P3] [P4] [P10] [P14] random histories: messages, order and stops",
  "[P5] [P12] [P13] [P20] [W22] random histories: crashes, clocks and budgets",
  "[P6] [P7] [W5] [W6] [W7] [W15] random histories: tool calls",
  "[P11] [P17] [W16] [W18] random histories: what clients see, and archives",
];

describe("histories", { concurrency: availableParallelism() }, () => {
  test("[P1] [P10] [P12] every history that once failed holds", async () => {
    const sum = await inThread("kept");
    assert.ok(sum.histories > 0);
    count(sum);
  });

  test("[P1] [P3] [P4] [P6] [P7] [P10] [P11] [P12] [P17] [W1] [W3] one crash, at each commit and effect border of small histories", async (t) => {
    const sum = await inThread("exhaustive", times(24, 6));
    assert.ok(sum.kills > least(500), `only ${sum.kills} crashes happened`);
    t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.rows} rows`);
    count(sum);
  });

  test("[P17] [R11] [K25] [K26] [K27] [W16] [W17] [W18] one crash, at each commit and effect border of compactions and resets", async (t) => {
    const sum = await inThread("turnovers", times(10, 3));
    assert.ok(sum.kills > least(500) && sum.compactions > least(500), `only ${sum.kills} crashes and ${sum.compactions} compactions`);
    t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.compactions} compactions, ${sum.resets} resets`);
    count(sum);
  });

  test("[P17] [K25] [K26] [K27] [W16] [W17] [P4.4] random histories with a window that fills at every other message", async (t) => {
    const sum = await inThread("crowded", 1, times(500, 60));
    assert.ok(
      sum.compactions > 2 * sum.histories && sum.resets > sum.histories / 2,
      `${sum.compactions} compactions, ${sum.resets} resets`,
    );
    t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.compactions} compactions, ${sum.resets} resets`);
    count(sum);
  });

  test("[P20] a jump of the wall clock by a day ends nothing early", async (t) => {
    const sum = await inThread("jumps", 1, times(200, 30));
    t.diagnostic(`${sum.histories} histories, ${sum.rows} rows`);
    count(sum);
  });

  for (const [index, title] of RANDOM.entries())
    test(title, async (t) => {
      const histories = times(500);
      const sum = await inThread("random", 1 + index * histories, histories);
      assert.equal(sum.histories, histories);
      assert.ok(sum.kills > sum.histories, `only ${sum.kills} crashes in ${sum.histories} histories`);
      t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.rows} rows`);
      count(sum);
    });

  test("[P4] [P9] [P13] full queues, runs without progress, a channel that is gone, notes of the gateway", async (t) => {
    const sums = await Promise.all([inThread("corners", 1, times(15, 6)), inThread("floods", times(4))]);
    for (const sum of sums) {
      t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes`);
      count(sum);
    }
  });

  test("[P15] [K11] [K12] [S13] [AP1] [AP2] [AP3] [AP4] [AP5] calls that need the owner's word, with crashes, changed policies, two deciders and no one", async (t) => {
    const sum = await inThread("approvals", 1, times(120, 24));
    t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.rows} rows`);
    count(sum);
  });

  test("[WB2] [WB3] [WB4] [WB5] [P12] messages for the run under way and in its place: shown once, at the next step, or next in the queue", async (t) => {
    const sum = await inThread("steering", 1, times(50, 10));
    t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.rows} rows`);
    count(sum);
  });

  test("[OM2] [OM3] [OM4] [OM5] [P6] [P12] calls that wait for their machines, with crashes, changed policies, machines that do not come back and a full index", async (t) => {
    const sum = await inThread("offline", 1, times(120, 80));
    t.diagnostic(`${sum.histories} histories, ${sum.kills} crashes, ${sum.rows} rows`);
    count(sum);
  });
});

test("every listed transition of the machine is taken by some history", (t) => {
  const names = Object.keys(TRANSITIONS);
  const missing = names.filter((name) => !covered.has(name));
  const share = Math.floor((100 * (names.length - missing.length)) / names.length);
  t.diagnostic(`transitions: ${names.length - missing.length} of ${names.length}, ${share} %`);
  for (const name of names) t.diagnostic(`  ${name}: ${covered.get(name) ?? 0}`);
  assert.deepEqual(missing, [], "no history takes these transitions");
});
