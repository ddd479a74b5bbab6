/**
 * Looks for a history that breaks a promise: every crash point of small ones, then random ones. The tests use it, and so does the
 * check that deliberate mistakes are found (mutants.sim.test.ts), where it runs as a program of its own.
 *
 *   node gateway/test/sim/hunt.ts [the hunt to begin with] [the share of all histories: 0.1 is a tenth]
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LogRow } from "../../src/session/machine/log.ts";
import type { TransitionName } from "../../src/session/machine/transitions.ts";
import { type Scenario, simulate, SimulationError } from "./simulate.ts";

export interface Tally {
  histories: number;
  kills: number;
  rows: number;
  compactions: number;
  resets: number;
  /** How often each transition was taken, over all histories. */
  readonly transitions: Map<TransitionName, number>;
}
export const tally = (): Tally => ({ histories: 0, kills: 0, rows: 0, compactions: 0, resets: 0, transitions: new Map() });
async function one(scenario: Scenario, sum: Tally): Promise<number> {
  const report = await simulate(scenario);
  sum.histories += 1;
  sum.kills += report.kills;
  sum.rows += report.rows.length;
  for (const [name, count] of report.transitions) sum.transitions.set(name, (sum.transitions.get(name) ?? 0) + count);
  for (const row of report.rows) {
    if (row.kind !== "notice" || !row.archive) continue;
    if (row.notice === "compacted") sum.compactions += 1;
    if (row.notice === "reset") sum.resets += 1;
  }
  return report.borders;
}

/** Every history that failed once, or alone finds a mistake (seeds.json). */
export async function kept(sum: Tally): Promise<void> {
  const file = join(dirname(fileURLToPath(import.meta.url)), "seeds.json");
  const scenarios = JSON.parse(readFileSync(file, "utf8")) as { readonly why: string; readonly scenario: Scenario }[];
  for (const { scenario } of scenarios) await one(scenario, sum);
}
/** One crash, at each border of each of these small histories in turn. */
export async function exhaustive(seeds: number, sum: Tally): Promise<void> {
  for (let seed = 1; seed <= seeds; seed++) {
    const scenario: Scenario = { seed, messages: 2, actions: seed % 3 === 0 };
    const borders = await one(scenario, sum);
    for (let crashAt = 1; crashAt <= borders + 4; crashAt++) await one({ ...scenario, crashAt }, sum);
  }
}
/** One crash, at each border of histories that are compacted and reset again and again. */
export async function turnovers(seeds: number, sum: Tally): Promise<void> {
  for (let seed = 1; seed <= seeds; seed++) {
    const scenario: Scenario = { seed, messages: 3, window: 260, turnover: true };
    const borders = await one(scenario, sum);
    for (let crashAt = 1; crashAt <= borders + 4; crashAt++) await one({ ...scenario, crashAt }, sum);
  }
}
/** Everything going wrong, with a window that fills at every other message. */
export async function crowded(from: number, seeds: number, sum: Tally): Promise<void> {
  for (let seed = from; seed < from + seeds; seed++)
    await one({ ...randomScenario(seed), messages: 8, window: seed % 2 === 0 ? 300 : 500, turnover: true }, sum);
}
export const randomScenario = (seed: number): Scenario => ({
  seed,
  messages: 5,
  crashRate: seed % 5 === 0 ? 0.06 : 0.02,
  faults: true,
  actions: true,
  silences: seed % 4 === 0,
  notes: seed % 2 === 1,
  ...(seed % 3 === 1 ? { window: 400 } : {}),
});
export async function random(from: number, seeds: number, sum: Tally): Promise<void> {
  for (let seed = from; seed < from + seeds; seed++) await one(randomScenario(seed), sum);
}

/** A process ends while the queue is full. Few histories have a process at that time, so they are tried until it has happened `times` times. */
export async function floods(times: number, sum: Tally): Promise<void> {
  const before = sum.transitions.get("processEndNoted") ?? 0;
  const happened = (): number => (sum.transitions.get("processEndNoted") ?? 0) - before;
  for (let seed = 1; seed <= MOST_FLOODS && happened() < times; seed++) await one({ seed, messages: 4, flood: true }, sum);
}
const MOST_FLOODS = 60;

/** What seldom happens by chance: runs that get nowhere, a channel that is gone, notes beside everything else. */
export async function corners(from: number, seeds: number, sum: Tally): Promise<void> {
  for (let seed = from; seed < from + seeds; seed++) {
    await one({ seed, messages: 3, crashRate: 0.6, faults: true, actions: true, turnover: true }, sum);
    await one({ seed, messages: 4, channelGone: true }, sum);
    await one({ ...randomScenario(seed), messages: 8, compactsAndStops: true }, sum);
    await one({ seed, messages: 6, notes: true, actions: true, faults: true, turnover: seed % 2 === 0 }, sum);
  }
}

/** [P15] [K11] [K12] Calls that need the owner's word: one crash at each border of small histories, then everything going wrong. */
export async function approvals(from: number, seeds: number, sum: Tally): Promise<void> {
  for (let seed = from; seed < from + Math.max(1, Math.round(seeds / 12)); seed++) {
    const scenario: Scenario = { seed, messages: 2, asks: "some", actions: seed % 3 === 0 };
    const borders = await one(scenario, sum);
    for (let crashAt = 1; crashAt <= borders + 4; crashAt++) await one({ ...scenario, crashAt }, sum);
  }
  for (let seed = from; seed < from + seeds; seed++) {
    await one({ ...randomScenario(seed), asks: seed % 4 === 0 ? "all" : "some" }, sum);
    await one({ seed, messages: 4, asks: "all", stubborn: true }, sum);
  }
  // [SP10] Runs at their limit: answered, followed by a message, without an answer, or with a limit that is raised meanwhile.
  for (let seed = from; seed < from + seeds; seed++) {
    await one({ ...randomScenario(seed), stepsPerRun: 1 + (seed % 2) }, sum);
    await one({ seed, messages: 1 + (seed % 2), silent: true, stepsPerRun: 1 }, sum);
    await one({ ...randomScenario(seed), silent: seed % 2 === 0, stepsPerRun: 1, raises: 3 }, sum);
  }
  // An answer with more than 20 questions is rare: histories are tried until one has it.
  for (let seed = 1; seed <= MOST_CROWDS && !sum.transitions.has("tooManyQuestions"); seed++)
    await one({ seed, messages: 6, asks: "all", faults: true }, sum);
}
const MOST_CROWDS = 200;

/** [WB2] [WB3] [WB4] [WB5] Messages for a run and in its place: one crash at each border of small histories, then everything going wrong. */
export async function steering(from: number, seeds: number, sum: Tally): Promise<void> {
  for (let seed = from; seed < from + Math.max(1, Math.round(seeds / 10)); seed++) {
    const scenario: Scenario = { seed, messages: 9, wishes: true };
    const borders = await one(scenario, sum);
    for (let crashAt = 1; crashAt <= borders + 4; crashAt++) await one({ ...scenario, crashAt }, sum);
  }
  for (let seed = from; seed < from + seeds; seed++) {
    await one({ seed, messages: 20, wishes: true }, sum);
    await one({ ...randomScenario(seed), messages: 20, wishes: true, ...(seed % 4 === 0 ? { asks: "some" } : {}) }, sum);
    await one({ ...randomScenario(seed), messages: 12, wishes: true, stepsPerRun: 1 + (seed % 3) }, sum);
  }
}

/** [OM2] [OM3] [OM4] Calls that wait for their machines: one crash at each border of small histories, then everything going wrong. */
export async function offline(from: number, seeds: number, sum: Tally): Promise<void> {
  for (let seed = from; seed < from + Math.max(1, Math.round(seeds / 12)); seed++) {
    const scenario: Scenario = { seed, messages: 2, waits: true, ...(seed % 2 === 0 ? { asks: "some" } : {}) };
    const borders = await one(scenario, sum);
    for (let crashAt = 1; crashAt <= borders + 4; crashAt++) await one({ ...scenario, crashAt }, sum);
  }
  for (let seed = from; seed < from + seeds; seed++) {
    await one(
      { ...randomScenario(seed), messages: 8, waits: true, ...(seed % 3 === 0 ? {} : { asks: seed % 4 === 0 ? "all" : "some" }) },
      sum,
    );
    await one({ seed, messages: 8, waits: true, ...(seed % 2 === 0 ? { asks: "some" } : {}) }, sum);
  }
}

/** [P20] A jump of the wall clock ends nothing early: where nothing is slow or broken, every call and every run ends well. */
export async function jumps(from: number, seeds: number, sum: Tally): Promise<void> {
  for (let seed = from; seed < from + seeds; seed++) {
    const byMs = seed % 2 === 0 ? 86_400_000 : -86_400_000;
    const { rows } = await simulate({ seed, messages: 8, jump: { atMs: (seed * 7_919) % 60_000, byMs } });
    sum.histories += 1;
    sum.rows += rows.length;
    const early = rows.find(endedEarly);
    if (early)
      throw new SimulationError(`seed ${seed}: a jump of ${byMs} ms ended something early: ${JSON.stringify(early).slice(0, 300)}`);
  }
}
const endedEarly = (row: LogRow): boolean =>
  (row.kind === "notice" && row.reason !== "budget.steps" && row.question?.limit !== true) ||
  (row.kind === "toolResult" && row.reason !== undefined);

/** What the program tries, in this order: histories that cost little first. `part` of 1 finds every mistake of mutants.ts. */
const HUNTS = {
  kept: (sum) => kept(sum),
  crowded: (sum, part) => crowded(1, part(80), sum),
  turnovers: (sum, part) => turnovers(part(3), sum),
  exhaustive: (sum, part) => exhaustive(part(4), sum),
  jumps: (sum, part) => jumps(1, part(60), sum),
  corners: (sum, part) => corners(1, part(3), sum),
  floods: (sum, part) => floods(part(2), sum),
  approvals: (sum, part) => approvals(1, part(30), sum),
  steering: (sum, part) => steering(1, part(40), sum),
  offline: (sum, part) => offline(1, part(36), sum),
  random: (sum, part) => random(1, part(600), sum),
} as const satisfies Record<string, (sum: Tally, part: (histories: number) => number) => Promise<void>>;
export type HuntName = keyof typeof HUNTS;

/** All hunts, the given one before the others. */
async function hunt(first: string | undefined, share: number, sum: Tally): Promise<void> {
  const names = Object.keys(HUNTS) as HuntName[];
  const part = (histories: number): number => Math.max(1, Math.round(histories * share));
  for (const name of names.sort((a, b) => Number(b === first) - Number(a === first))) await HUNTS[name](sum, part);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const sum = tally();
  try {
    await hunt(process.argv[2], Number(process.argv[3] ?? "1"), sum);
    console.log(JSON.stringify({ ok: true, ...sum }));
  } catch (error) {
    console.log(
      JSON.stringify({
        ok: false,
        after: sum.histories,
        error: error instanceof Error ? `${error.name}: ${error.message}`.slice(0, 600) : String(error),
      }),
    );
    process.exitCode = 1;
  }
}
