/** How large the context of a model call is, and whether it must be compacted or cut before the call (product rule P5.3). */
import type { ModelRef, ToolDefinition } from "../../../../protocol/gen/types.ts";
import { tokensOfText, tokensOfTool } from "../../models/estimate.ts";
import type { EffectiveConfig, RunContext } from "../../ports/run-context.ts";
import type { History } from "../history.ts";
import type { CutPlan, State, Thinking } from "../machine/state.ts";
import { contextBudget, keepBeside, planCut } from "../pressure.ts";

export interface ContextSizePorts {
  readonly history: () => History;
  readonly contextWindow: (model: ModelRef, config: EffectiveConfig) => number;
  readonly wall: () => number;
}
/** The decision about the size of the context before a call. */
export interface Sized {
  /** Tokens that the messages may take, and whether they take more. */
  readonly budget: number;
  readonly exceeds: boolean;
  /** Tokens of the whole context, prompt and tools included. */
  readonly tokens: number;
  /** There is no headroom for an answer; this is what could be compacted. */
  readonly plan?: CutPlan;
  /** Where to cut if the model refuses the size nevertheless. */
  readonly halved: () => CutPlan | undefined;
}
/** A compaction that frees less than this share of the threshold is not worth its model calls. */
const LEAST_FREED = 1 / 16;
/** A provider's count below this share of the estimate does not include the whole context. */
const LEAST_BELIEVED = 1 / 3;
/** However large prompt and tools are, the conversation gets this much of the window. */
const LEAST_SHARE = 1 / 8;

export class ContextSize {
  readonly #ports: ContextSizePorts;
  #fixed: { readonly system: string; readonly version: string; readonly tokens: number; readonly tools: number } | undefined;

  constructor(ports: ContextSizePorts) {
    this.#ports = ports;
  }
  /** Tokens of the tools that were measured last. */
  get toolTokens(): number {
    return this.#fixed?.tools ?? 0;
  }

  /** Product rule P5.3. Uses the window of the called model, and the token count of its last answer where that is plausible. */
  measure(run: Thinking, state: State, { config }: RunContext, model: ModelRef, fixedTokens: number): Sized {
    const history = this.#ports.history();
    const limits = contextBudget(this.#ports.contextWindow(model, config), config.compaction);
    const known = knownTokens(state, model, history);
    const guess = fixedTokens + history.tokens;
    // Some servers count only tokens that were not cached, or cut off silently: an implausible count is ignored.
    const tokens = known === undefined ? guess : Math.max(known, guess * LEAST_BELIEVED);
    // The provider may count more tokens than we estimate; then our estimates are scaled.
    const scale = Math.max(1, tokens / guess);
    const keep = Math.floor(keepBeside(limits, fixedTokens * scale) / scale);
    // The model refused the size, whatever its window is said to be: cut more.
    const halved = (): CutPlan | undefined => planCut(history.items, Math.floor(Math.min(keep / 2, history.tokens / 4)));
    const overflowed = (run.overflows ?? 0) > 0;
    const allow = (allowed: number): number =>
      Math.max(Math.floor(Math.min(allowed, limits.window) * LEAST_SHARE), Math.floor((allowed - fixedTokens * scale) / scale));
    if (tokens <= limits.threshold && !overflowed) return { budget: allow(limits.threshold), exceeds: false, tokens, halved };
    const enabled = config.compaction?.enabled !== false;
    const wanted = enabled && !overflowed && run.compactionTried === undefined && this.#ports.wall() >= state.autoResetAfter;
    const plan = wanted ? planCut(history.items, keep) : undefined;
    const freed = plan ? (history.items[plan.count - 1]?.upto ?? 0) : 0;
    // The view is cut only where nothing else helps. The whole texts return as soon as there is headroom.
    const budget = allow(overflowed ? Math.floor(Math.min(limits.threshold, tokens) / 2) : enabled ? limits.threshold : limits.window);
    return {
      budget,
      exceeds: true,
      tokens: Math.min(tokens, limits.window),
      halved,
      ...(plan && freed * scale >= limits.threshold * LEAST_FREED ? { plan } : {}),
    };
  }
  /** Tokens of the prompt and the tools; measured again when one of them changes. */
  fixedTokens(system: string, version: string, tools: readonly ToolDefinition[]): number {
    if (this.#fixed?.system !== system || this.#fixed.version !== version) {
      const ofTools = tools.reduce((sum, tool) => sum + tokensOfTool(tool), 0);
      this.#fixed = { system, version, tokens: tokensOfText(system) + ofTools, tools: ofTools };
    }
    return this.#fixed.tokens;
  }
  /** Tokens of the context, as far as they are known without asking the gateway. */
  contextTokens(state: State, history: History | undefined): number | undefined {
    if (state.context) return state.context.tokens + (history?.tokensAfter(state.context.seq) ?? 0);
    return history && this.#fixed ? this.#fixed.tokens + history.tokens : undefined;
  }
}

/** As a model is named in the log: the model of an answer is compared with it. */
export const nameOf = ({ provider, id }: ModelRef): string => `${provider}/${id}`;
const knownTokens = ({ context }: State, model: ModelRef, history: History): number | undefined =>
  context?.model === nameOf(model) ? context.tokens + history.tokensAfter(context.seq) : undefined;
