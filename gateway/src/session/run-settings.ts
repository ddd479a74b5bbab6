/** The settings of a run: its models, thinking level and budget, each from the most specific place that sets it. PURE. */
import type { AgentConfig, ModelRef, SessionSettings, ThinkLevel } from "../../../protocol/gen/types.ts";
import type { Origin } from "../ports/origin.ts";
import type { EffectiveConfig } from "../ports/run-context.ts";
import type { Budget, Thinking } from "./machine/state.ts";

/** The models to ask, in order: the most specific choice, then the configured fallbacks. Never empty. */
export function modelsFor(
  run: Pick<Thinking, "directives">,
  settings: SessionSettings,
  agent: AgentConfig,
  config: EffectiveConfig,
): readonly ModelRef[] {
  const chosen: ModelRef = run.directives.model ??
    settings.model ??
    agent.model ?? { provider: config.model.provider, id: config.model.id };
  const others = (config.model.fallbacks ?? []).filter((model) => model.provider !== chosen.provider || model.id !== chosen.id);
  return [chosen, ...others];
}
/** The model at this place of the list; after the end, the last one. */
export function modelAt(models: readonly ModelRef[], index: number): ModelRef {
  const model = models[Math.min(index, models.length - 1)];
  if (!model) throw new Error("no model to ask");
  return model;
}
export const thinkLevelFor = (
  run: Pick<Thinking, "directives">,
  settings: SessionSettings,
  config: EffectiveConfig,
): ThinkLevel | undefined => run.directives.thinkLevel ?? settings.thinkingLevel ?? config.model.thinkLevel;
/** What a run may use. A job's run has its own limits beside those of the configuration. */
export function budgetOf({ limits }: EffectiveConfig, origin: Origin | undefined): Budget {
  const { steps, ms, costUsd } = origin?.kind === "schedule" ? origin.budget : UNBOUNDED;
  return {
    steps: Math.min(limits.stepsPerRun, steps),
    ms: Math.min(limits.runMs, ms),
    costUsd: Math.min(limits.runCostUsd, costUsd),
    ...(limits.runTokens === undefined ? {} : { tokens: limits.runTokens }),
  };
}
const UNBOUNDED = { steps: Number.POSITIVE_INFINITY, ms: Number.POSITIVE_INFINITY, costUsd: Number.POSITIVE_INFINITY } as const;
