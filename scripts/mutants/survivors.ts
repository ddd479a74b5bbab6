/** Mistakes that no test can notice, each with its reason (`survivors.json`). PURE: takes texts. */
import { type Mutation, mutationsOf } from "./mutations.ts";

export interface Accepted {
  readonly file: string;
  /** The line before and after the change, without indentation. */
  readonly from: string;
  readonly to: string;
  /** Why it makes no difference. */
  readonly reason: string;
}

export const acceptedBy = (mutation: Mutation, accepted: readonly Accepted[]): Accepted | undefined =>
  accepted.find(({ file, from, to }) => file === mutation.file && from === mutation.from && to === mutation.to);

/** Entries that accept no mistake any more, more than one, or without a reason. */
export function entryProblems(accepted: readonly Accepted[], sources: ReadonlyMap<string, string>): string[] {
  return accepted.flatMap((entry) => {
    const where = `scripts/mutants/survivors.json: ${entry.file}: ${entry.from}`;
    const matching = mutationsOf(entry.file, sources.get(entry.file) ?? "").filter(
      (mutation) => acceptedBy(mutation, [entry]) !== undefined,
    );
    if (matching.length !== 1) return [`${where}: ${matching.length} mistakes match. Remove or correct the entry.`];
    return entry.reason.trim().length < 20 ? [`${where}: write a reason.`] : [];
  });
}
