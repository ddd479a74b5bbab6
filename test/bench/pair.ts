/**
 * Two versions of GSV, measured in turn: both run at once, and each round measures one and then the other. What slows this machine for a
 * while slows both, so the ratio of a round says more than two runs after each other.
 */
import { statSync } from "node:fs";
import { concurrent, killedRunGoesOn, messages, toolRoundTrip } from "./measure.ts";
import type { BenchModel } from "./model.ts";
import { median, quantile, usageOf } from "./process.ts";
import { fixed, table } from "./table.ts";
import { type Build, type Gsv, makeTree, startGsv, startNode } from "./system.ts";

export interface PairRow {
  readonly name: string;
  readonly unit: string;
  /** Medians. */
  readonly before: number;
  readonly after: number;
  /** The median of the rounds' ratios, after to before, and the quartiles. */
  readonly ratio: number;
  readonly from: number;
  readonly to: number;
}

type Pair = readonly [Gsv, Gsv];
type Values = Readonly<Record<string, number>>;

function rowOf(name: string, unit: string, rounds: readonly (readonly [number, number])[]): PairRow {
  const ratios = rounds.map(([before, after]) => after / before);
  return {
    name,
    unit,
    before: median(rounds.map(([before]) => before)),
    after: median(rounds.map(([, after]) => after)),
    ratio: median(ratios),
    from: quantile(ratios, 0.25),
    to: quantile(ratios, 0.75),
  };
}

/** Measures both systems in each round, every second time in the other order. Gives one row for each value. */
async function inTurn(
  systems: Pair,
  rounds: number,
  units: Readonly<Record<string, string>>,
  measure: (system: Gsv, round: number) => Promise<Values>,
): Promise<PairRow[]> {
  const taken: [Values, Values][] = [];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) {
      const before = await measure(systems[0], round);
      taken.push([before, await measure(systems[1], round)]);
    } else {
      const after = await measure(systems[1], round);
      taken.push([await measure(systems[0], round), after]);
    }
  }
  return Object.entries(units).map(([name, unit]) =>
    rowOf(
      name,
      unit,
      taken.map(([before, after]) => [before[name] ?? 0, after[name] ?? 0]),
    ),
  );
}

/** The rows of `after` beside those of `before`. */
export async function pair(model: BenchModel, builds: readonly [Build, Build], quick: boolean): Promise<PairRow[]> {
  const rounds = quick ? 10 : 30;
  const systems: Pair = [await startGsv(model.url, builds[0]), await startGsv(model.url, builds[1])];
  const tree = makeTree(2000);
  try {
    const rows: PairRow[] = [];
    const add = async (count: number, units: Record<string, string>, measure: (system: Gsv, round: number) => Promise<Values>) => {
      rows.push(...(await inTurn(systems, count, units, measure)));
      process.stderr.write(`${Object.keys(units).join(", ")}\n`);
    };
    await add(1, { "gateway, idle": "MB" }, async ({ pid }) => ({ "gateway, idle": usageOf(pid).rssMb }));
    await add(
      rounds,
      { "message overhead": "ms", "CPU per message": "ms", "bytes written per message": "KiB", "first delta": "ms" },
      async (system) => {
        const cost = await messages(system, model, "agent:main:cli:dm:pair", 40);
        return {
          "message overhead": cost.overheadMs,
          "CPU per message": cost.cpuMs,
          "bytes written per message": cost.writtenBytes / 1024,
          "first delta": cost.firstDeltaMs,
        };
      },
    );
    await add(rounds, { "messages/s over 50 sessions": "/s", "CPU per message over 50 sessions": "ms" }, async (system) => {
      const load = await concurrent(system, 50, 3);
      return { "messages/s over 50 sessions": load.perSecond, "CPU per message over 50 sessions": load.cpuMs };
    });
    const tool = async (name: string, call: string): Promise<void> =>
      add(rounds, { [name]: "ms" }, async (system, round) => ({
        [name]: await toolRoundTrip(system, model, `agent:main:cli:dm:${name.split(" ")[0] ?? ""}${round}`, call, 10),
      }));
    await tool("native tool round trip", 'gsv__ReadFile {"path":"SOUL.md"}');
    const nodes = await Promise.all(systems.map((system) => startNode(system, tree)));
    await tool("Read on a node", 'bench__Read {"path":"d0/e0/f0.rs"}');
    await tool("Write on a node (fsync)", 'bench__Write {"path":"bench-out.txt","content":"x"}');
    await tool("Bash on a node", 'bench__Bash {"command":"true"}');
    const [before, after] = nodes.map(({ pid }) => usageOf(pid).rssMb);
    rows.push(rowOf("node after these runs", "MB", [[before ?? 0, after ?? 0]]));
    for (const node of nodes) await node.stop();
    await add(1, { "gateway after these runs": "MB" }, async ({ pid }) => ({ "gateway after these runs": usageOf(pid).rssMb }));
    await add(rounds, { "gsv up to ready": "ms" }, async (system) => ({ "gsv up to ready": await system.restart() }));
    await add(quick ? 5 : 10, { "kill -9 in a model call to the new call": "ms" }, async (system, round) => ({
      "kill -9 in a model call to the new call": await killedRunGoesOn(system, model, `agent:main:cli:dm:killed${round}`),
    }));
    const [old, fresh] = builds.map((build) => statSync(build.gsv).size / 1048576);
    rows.push(rowOf("binary", "MB", [[old ?? 0, fresh ?? 0]]));
    return rows;
  } finally {
    for (const system of systems) await system.stop();
  }
}

export const pairTable = (rows: readonly PairRow[]): string =>
  table([
    ["what", "before", "after", "ratio", "half of the rounds"],
    ...rows.map((row) => [
      row.name,
      `${fixed(row.before)} ${row.unit}`,
      `${fixed(row.after)} ${row.unit}`,
      `${row.ratio.toFixed(2)}x`,
      row.from === row.to ? "" : `${row.from.toFixed(2)} to ${row.to.toFixed(2)}`,
    ]),
  ]);
