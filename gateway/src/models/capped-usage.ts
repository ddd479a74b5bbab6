/**
 * Limits the tokens that a provider reports for a call to what the call can have used (rule SP12). PURE. Negative numbers and
 * fractions are gone before (answer.ts).
 */
import type { Usage } from "../../../protocol/gen/types.ts";
import type { CallTerms } from "../ports/model.ts";

/** Our estimate of an input can be too low: one character of some languages is more than one token. */
const INPUT_FACTOR = 4;
const INPUT_MORE = 4_096;
/** Thoughts that a provider adds to the answer. */
const OUTPUT_FACTOR = 2;

/** Undefined: the count is plausible. Else what counts in its place. */
export function cappedUsage(usage: Usage, terms: CallTerms, inputTokens: number): Usage | undefined {
  const mostInput = INPUT_FACTOR * Math.ceil(inputTokens) + INPUT_MORE;
  const output = Math.min(usage.output, OUTPUT_FACTOR * terms.output);
  // Tokens from the cache are the cheapest, so they are cut first.
  const input = Math.min(usage.input, mostInput);
  const cacheWrite = Math.min(usage.cacheWrite ?? 0, mostInput - input);
  const cacheRead = Math.min(usage.cacheRead ?? 0, mostInput - input - cacheWrite);
  const mostUsd = costOf(terms, mostInput, inputTokens);
  const costUsd = Math.min(usage.costUsd ?? 0, mostUsd);
  const total = input + output + cacheRead + cacheWrite;
  const isPlausible = total === usage.total && costUsd === (usage.costUsd ?? 0);
  if (isPlausible) return undefined;
  return { ...usage, input, output, cacheRead, cacheWrite, total, ...(usage.costUsd === undefined ? {} : { costUsd }) };
}
/** Dollars of the most tokens. A model without a price costs none. */
function costOf({ rates, dearest, inputUsd, output }: CallTerms, mostInput: number, inputTokens: number): number {
  if (rates === undefined) return 0;
  const input = dearest?.input ?? inputUsd / Math.max(1, inputTokens);
  return mostInput * input + OUTPUT_FACTOR * output * (dearest?.output ?? rates.output);
}
