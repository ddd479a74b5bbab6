/**
 * What one model call can cost at most, before it is made (gateway rule SP1). PURE: prices and limits of the catalogue and the
 * configuration, and an estimate of the input by the caller.
 */
import type { ModelRef, ThinkLevel } from "../../../protocol/gen/types.ts";
import type { CallTerms, TermsAsk } from "../ports/model.ts";
import type { EffectiveConfig } from "../ports/run-context.ts";
import type { ModelInfo } from "./catalog.ts";
import { isDemo, knownModel } from "./resolve.ts";

/** Default for the longest answer, in tokens; models may offer far more. */
const USUAL_MAX_TOKENS = 32_000;
const MILLION = 1_000_000;
/** pi-ai adds these to the answer's limit, where a model thinks within a budget. */
const THINKING: Readonly<Record<ThinkLevel, number>> = { none: 0, minimal: 1_024, low: 2_048, medium: 8_192, high: 16_384, xhigh: 16_384 };

/** The longest answer that is asked for, thoughts not included. */
export const answerTokens = (info: Pick<ModelInfo, "maxTokens">, config: EffectiveConfig, asked: number | undefined): number =>
  Math.min(asked ?? config.model.maxTokens ?? Math.min(info.maxTokens, USUAL_MAX_TOKENS), info.maxTokens);

/** Undefined: the demo, which costs nothing and is not counted. */
export function callTerms(
  ref: ModelRef,
  config: EffectiveConfig,
  { inputTokens, cachedTokens, maxTokens, thinkLevel }: TermsAsk,
): CallTerms | undefined {
  if (isDemo(ref)) return undefined;
  const info = knownModel(ref, config);
  const level = thinkLevel ?? config.model.thinkLevel;
  const answer = answerTokens(info, config, maxTokens);
  const output = Math.min(info.maxTokens, answer + (info.thinking === "budget" && level !== undefined ? THINKING[level] : 0));
  const { price } = info;
  const terms = { output, thinking: output - answer };
  if (price === undefined) return { ...terms, inputUsd: 0 };
  const tier = info.priceTiers?.findLast(({ inputTokensAbove }) => inputTokens > inputTokensAbove);
  const rates = tier ?? price;
  // All that is new may be written into the provider's cache, which costs more than the plain rate.
  const fresh = Math.max(rates.input, rates.cacheWrite ?? rates.input);
  const cached = Math.min(inputTokens, cachedTokens);
  const inputUsd = (cached * (rates.cacheRead ?? rates.input) + (inputTokens - cached) * fresh) / MILLION;
  const all = [price, ...(info.priceTiers ?? [])];
  const dearest = {
    input: Math.max(...all.map(({ input, cacheWrite = 0, cacheRead = 0 }) => Math.max(input, cacheWrite, cacheRead))) / MILLION,
    output: Math.max(...all.map(({ output }) => output)) / MILLION,
  };
  return { ...terms, inputUsd, rates: { output: rates.output / MILLION }, dearest };
}
