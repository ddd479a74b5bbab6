/**
 * Whether the tests notice a mistake. Decides which suites run, how often and for how long; takes what runs them as an argument.
 *
 * - A suite must pass without the mistake before it may judge: one that fails anyway would count every mistake as caught. It is left
 *   out and named, and the run fails.
 * - A suite that does not end has noticed the mistake. Its limit is many times what it takes without a mistake.
 * - A suite must notice the mistake twice: one that fails only sometimes has noticed nothing.
 */
import type { Mutation } from "./mutations.ts";
import type { Suite } from "./tests-of.ts";

export type Verdict = "passed" | "failed" | "not ended" | "not compiled";
export type Fate = "caught" | "survived" | "not compiled";
export interface Run {
  readonly verdict: Verdict;
  readonly ms: number;
}
/** Runs a suite on the sources, with the mistake when one is given, and ends it after `limitMs`. */
export type RunSuite = (suite: Suite, mutation: Mutation | undefined, limitMs: number) => Promise<Run>;

/** A suite without a mistake may take this long. */
const CONTROL_LIMIT_MS = 600_000;
/** Enough for a machine that is busy with other work. */
const limitOf = (controlMs: number): number => 30_000 + 6 * controlMs;

export const keyOf = (suite: Suite): string =>
  suite.runner === "types"
    ? `the types of ${suite.project}`
    : suite.runner === "node"
      ? suite.file
      : suite.runner === "workerd"
        ? suite.folder
        : [suite.package, ...suite.args].join(" ");

/**
 * `controls`: how long each suite takes without a mistake, by its key; suites that were not run yet are added. `broken` gets the
 * suites that fail without one.
 */
export function judgeWith(
  run: RunSuite,
  controls: Map<string, number>,
  broken: Map<string, Verdict>,
): (mutation: Mutation, suites: readonly Suite[]) => Promise<{ fate: Fate; by?: string }> {
  /** Undefined: it can't judge. */
  async function limitFor(suite: Suite): Promise<number | undefined> {
    if (broken.has(keyOf(suite))) return undefined;
    const known = controls.get(keyOf(suite));
    if (known !== undefined) return limitOf(known);
    let found = await run(suite, undefined, CONTROL_LIMIT_MS);
    if (found.verdict !== "passed") found = await run(suite, undefined, CONTROL_LIMIT_MS);
    if (found.verdict !== "passed") {
      broken.set(keyOf(suite), found.verdict);
      return undefined;
    }
    controls.set(keyOf(suite), found.ms);
    return limitOf(found.ms);
  }
  return async (mutation, suites) => {
    for (const suite of suites) {
      const limit = await limitFor(suite);
      if (limit === undefined) continue;
      const { verdict } = await run(suite, mutation, limit);
      if (verdict === "not compiled") return { fate: "not compiled" };
      if (verdict !== "passed" && (await run(suite, mutation, limit)).verdict !== "passed") return { fate: "caught", by: keyOf(suite) };
    }
    return { fate: "survived" };
  };
}
