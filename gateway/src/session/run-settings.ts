/** The settings of a run: its models, thinking level and budget, each from the most specific place that sets it. PURE. */
import type { AgentConfig, ModelRef, SessionSettings, ThinkLevel } from "../../../protocol/gen/types.ts";
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
export const budgetOf = (config: EffectiveConfig): Budget => ({
  steps: config.limits.stepsPerRun,
  ms: config.limits.runMs,
  costUsd: config.limits.runCostUsd,
  ...(config.limits.runTokens === undefined ? {} : { tokens: config.limits.runTokens }),
});
