/** The results so far, and their text in the state folder. PURE: takes and gives texts. */
import type { Fate, Verdict } from "./judge.ts";

export interface Results {
  /** Of the files. A result is true only for the files with which it was found. */
  readonly hash: string;
  /** How long each suite takes without a mistake. */
  readonly controls: Map<string, number>;
  /** The suites that fail without a mistake. */
  readonly broken: Map<string, Verdict>;
  readonly fates: Map<string, Fate>;
}
interface Saved {
  readonly hash: string;
  readonly controls: Record<string, number>;
  readonly broken: Record<string, Verdict>;
  readonly fates: Record<string, Fate>;
}

/**
 * The results for files with this hash. A suite may have failed only because the machine was busy, so one that could not judge is tried
 * again, and with it every mistake that survived: the suite might have noticed it.
 */
export function resultsOf(saved: string | undefined, hash: string): Results {
  const found = saved === undefined ? undefined : (JSON.parse(saved) as Saved);
  if (found?.hash !== hash) return { hash, controls: new Map(), broken: new Map(), fates: new Map() };
  const isWhole = Object.keys(found.broken).length === 0;
  return {
    hash,
    controls: new Map(Object.entries(found.controls)),
    broken: new Map(),
    fates: new Map(Object.entries(found.fates).filter(([, fate]) => isWhole || fate !== "survived")),
  };
}

export const textOf = ({ hash, controls, broken, fates }: Results): string =>
  JSON.stringify({
    hash,
    controls: Object.fromEntries(controls),
    broken: Object.fromEntries(broken),
    fates: Object.fromEntries(fates),
  } satisfies Saved);
