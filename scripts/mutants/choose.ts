/** A repeatable choice of mutations: spread over the files, the same for the same code. PURE. */
import { seeded } from "../../test/seeded.ts";
import type { Mutation } from "./mutations.ts";

/**
 * All mutations of an area in the order in which they are tried: each file gets a turn before a file gets its second, so that a
 * large file does not fill the sample. Two mutations of one line never follow each other in a sample: the second is left out.
 */
export function inTurn(mutations: readonly Mutation[], seed: number): Mutation[] {
  const random = seeded(seed);
  const byFile = Map.groupBy(
    mutations.map((mutation) => ({ mutation, order: random() })).sort((a, b) => a.order - b.order),
    ({ mutation }) => mutation.file,
  );
  const queues = [...byFile.values()].map((queue) => onePerLine(queue.map(({ mutation }) => mutation)));
  const chosen: Mutation[] = [];
  for (let turn = 0; queues.some((queue) => queue.length > turn); turn++)
    for (const queue of queues) {
      const next = queue[turn];
      if (next !== undefined) chosen.push(next);
    }
  return chosen;
}

function onePerLine(mutations: readonly Mutation[]): Mutation[] {
  const lines = new Set<number>();
  return mutations.filter(({ line }) => {
    const first = !lines.has(line);
    lines.add(line);
    return first;
  });
}
