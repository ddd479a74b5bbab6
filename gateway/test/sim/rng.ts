/** Random numbers from a seed: the same each time and on every computer, so that a seed is a history. */
import { seeded } from "../../../test/seeded.ts";

export interface Rng {
  /** In [0, 1). */
  next(): number;
  chance(probability: number): boolean;
  /** Whole, in [from, to]. */
  int(from: number, to: number): number;
  pick<T>(items: readonly T[]): T;
}
export function rng(seed: number): Rng {
  const next = seeded(seed);
  const int = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[int(0, items.length - 1)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
  };
}
