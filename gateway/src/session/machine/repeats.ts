/**
 * Counts calls of one run that repeat the call before them: the same tool with the same arguments (rule SP9). PURE. The count is part of
 * the run; the arguments are kept as a hash, because they may be large.
 */
import { hashPair, hex32 } from "../../../../protocol/runtime/hash.ts";
import { canonicalJson } from "../../calls/approval.ts";

/** The newest call of the run, and how many times in a row it was made. */
export interface Repeats {
  readonly call: string;
  readonly count: number;
}
/** From this repetition on the result carries a note for the model. */
export const NOTED_REPEATS = 3;
/** The run ends at this repetition, and the call is not made. */
export const MOST_REPEATS = 5;

/**
 * The count of each call of an answer, in order, and where the run stands after them. Equal calls of one answer count once: the model
 * has not seen a result between them.
 */
export function countRepeats(
  before: Repeats | undefined,
  calls: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[],
): { readonly counts: readonly number[]; readonly last: Repeats | undefined } {
  let last = before;
  const counts: number[] = [];
  for (const [index, { name, arguments: args }] of calls.entries()) {
    // Two texts of one object are the same call, whatever the order of their keys.
    const text = canonicalJson(args);
    const call = `${name} ${text.length} ${hashPair(text).map(hex32).join("")}`;
    if (index === 0 || last?.call !== call) last = { call, count: last?.call === call ? last.count + 1 : 1 };
    counts.push(last.count);
  }
  return { counts, last };
}
export const repeatNote = (count: number): string =>
  `[This is the same call with the same arguments for the ${ordinal(count)} time in a row. Do something else, or answer with what you know. At the ${ordinal(MOST_REPEATS)} time the run ends.]`;
const ordinal = (count: number): string => `${count}${count === 1 ? "st" : count === 2 ? "nd" : count === 3 ? "rd" : "th"}`;
