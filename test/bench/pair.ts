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

/** A value that is measured: its name and its unit. */
type Named = readonly [name: string, unit: string];

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

/** Measures both systems in each round, every second time in the other order. `measure` gives the values in the order of `named`. */
export async function inTurn<System>(
  systems: readonly [System, System],
  rounds: number,
  named: readonly Named[],
  measure: (system: System, round: number) => Promise<readonly number[]>,
): Promise<PairRow[]> {
  const taken: (readonly [readonly number[], readonly number[]])[] = [];
  for (let round = 0; round < rounds; round++) {
    if (round % 2 === 0) {
      const before = await measure(systems[0], round);
      taken.push([before, await measure(systems[1], round)]);
    } else {
      const after = await measure(systems[1], round);
      taken.push([await measure(systems[0], round), after]);
    }
  }
  return named.map(([name, unit], at) =>
    rowOf(
      name,
      unit,
      taken.map(([before, after]) => [before[at] ?? Number.NaN, after[at] ?? Number.NaN]),
    ),
  );
}

/** The rows of `after` beside those of `before`. */
export async function pair(model: BenchModel, builds: readonly [Build, Build], quick: boolean): Promise<PairRow[]> {
  const rounds = quick ? 10 : 30;
  const systems = [await startGsv(model.url, builds[0]), await startGsv(model.url, builds[1])] as const;
  const tree = makeTree(2000);
  try {
    const rows: PairRow[] = [];
    const add = async (count: number, named: readonly Named[], measure: (system: Gsv, round: number) => Promise<readonly number[]>) => {
      rows.push(...(await inTurn(systems, count, named, measure)));
      process.stderr.write(`${named.map(([name]) => name).join(", ")}\n`);
    };
    await add(1, [["gateway, idle", "MB"]], async ({ pid }) => [usageOf(pid).rssMb]);
    const costs: readonly Named[] = [
      ["message overhead", "ms"],
      ["CPU per message", "ms"],
      ["bytes written per message", "KiB"],
      ["first delta", "ms"],
    ];
    await add(rounds, costs, async (system) => {
      const cost = await messages(system, model, "agent:main:cli:dm:pair", 40);
      return [cost.overheadMs, cost.cpuMs, cost.writtenBytes / 1024, cost.firstDeltaMs];
    });
    const loads: readonly Named[] = [
      ["messages/s over 50 sessions", "/s"],
      ["CPU per message over 50 sessions", "ms"],
    ];
    await add(rounds, loads, async (system) => {
      const load = await concurrent(system, 50, 3);
      return [load.perSecond, load.cpuMs];
    });
    const tool = (name: string, call: string): Promise<void> =>
      add(rounds, [[name, "ms"]], async (system, round) => [
        await toolRoundTrip(system, model, `agent:main:cli:dm:${name.split(" ")[0] ?? ""}${round}`, call, 10),
      ]);
    await tool("native tool round trip", 'gsv__ReadFile {"path":"SOUL.md"}');
    const nodes = await Promise.all(systems.map((system) => startNode(system, tree)));
    await tool("Read on a node", 'bench__Read {"path":"d0/e0/f0.rs"}');
    await tool("Write on a node (fsync)", 'bench__Write {"path":"bench-out.txt","content":"x"}');
    await tool("Bash on a node", 'bench__Bash {"command":"true"}');
    const [before, after] = nodes.map(({ pid }) => usageOf(pid).rssMb);
    rows.push(rowOf("node after these runs", "MB", [[before ?? Number.NaN, after ?? Number.NaN]]));
    for (const node of nodes) await node.stop();
    await add(1, [["gateway after these runs", "MB"]], async ({ pid }) => [usageOf(pid).rssMb]);
    await add(rounds, [["gsv up to ready", "ms"]], async (system) => [await system.restart()]);
    await add(quick ? 5 : 10, [["kill -9 in a model call to the new call", "ms"]], async (system, round) => [
      await killedRunGoesOn(system, model, `agent:main:cli:dm:killed${round}`),
    ]);
    const [old, fresh] = builds.map((build) => statSync(build.gsv).size / 1048576);
    rows.push(rowOf("binary", "MB", [[old ?? Number.NaN, fresh ?? Number.NaN]]));
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
