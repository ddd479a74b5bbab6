/** The settings of a run: its models, thinking level and budget, each from the most specific place that sets it. PURE. */
import type { AgentDefinition, ModelRef, ModelTier, ModelTiers, SessionSettings, ThinkLevel } from "../../../protocol/gen/types.ts";
import type { Origin } from "../ports/origin.ts";
import type { EffectiveConfig, RunContext } from "../ports/run-context.ts";
import type { DefinedLimit } from "../ports/spend.ts";
import { agentChoice, type ModelChoice } from "../models/choice.ts";
import type { Budget, Thinking } from "./machine/state.ts";

/** The models to ask, in order: the most specific choice, then the configured fallbacks. Never empty. */
export function modelsFor(
  run: Pick<Thinking, "directives">,
  settings: SessionSettings,
  { agent, config, defined }: Pick<RunContext, "agent" | "config" | "defined">,
): readonly ModelRef[] {
  const tier = defined?.definition.model_tier;
  const chosen: ModelRef = run.directives.model ??
    settings.model ??
    agent.model ??
    tierModel(config.model.tiers, tier) ?? { provider: config.model.provider, id: config.model.id };
  const others = (config.model.fallbacks ?? []).filter((model) => model.provider !== chosen.provider || model.id !== chosen.id);
  return [chosen, ...others];
}
/** The place that has chosen the model at this place of the list. */
export function choiceAt(
  index: number,
  run: Pick<Thinking, "directives">,
  settings: SessionSettings,
  { agent, config, defined }: Pick<RunContext, "agent" | "config" | "defined">,
): ModelChoice {
  if (index > 0) return { kind: "fallback" };
  if (run.directives.model !== undefined) return { kind: "message" };
  if (settings.model !== undefined) return { kind: "session" };
  if (agent.model !== undefined) return agentChoice(agent.id, config.agents?.list);
  const tier = defined?.definition.model_tier;
  return tier !== undefined && tierModel(config.model.tiers, tier) !== undefined
    ? { kind: "tier", setting: `model.tiers.${tier}` }
    : { kind: "config" };
}
function tierModel(tiers: ModelTiers = {}, tier: ModelTier | undefined): ModelRef | undefined {
  const { critical, main, sub } = tiers;
  return tier === undefined ? undefined : { critical, main, sub }[tier];
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
/** What a run may use: the least of the configuration, the job, the run that has handed it on, and the agent's definition (rules AD8, DG4). */
export function budgetOf({ config: { limits }, defined }: Pick<RunContext, "config" | "defined">, origin: Origin | undefined): Budget {
  const given = origin?.kind === "schedule" ? origin.budget : origin?.kind === "task" ? origin.delegation?.budget : undefined;
  const { steps, ms, costUsd, tokens }: Budget = { ...UNBOUNDED, ...given };
  const runTokens = Math.min(limits.runTokens ?? Number.POSITIVE_INFINITY, tokens ?? Number.POSITIVE_INFINITY);
  const others = {
    steps: Math.min(limits.stepsPerRun, steps),
    ms: Math.min(limits.runMs, ms),
    costUsd: Math.min(limits.runCostUsd, costUsd),
  };
  const own = definedBudget(defined?.definition.autonomy);
  const less = DEFINED.filter((of) => own[of] < others[of]);
  return {
    steps: Math.min(others.steps, own.steps),
    ms: Math.min(others.ms, own.ms),
    costUsd: Math.min(others.costUsd, own.costUsd),
    ...(less.length === 0 ? {} : { defined: less }),
    ...(defined === undefined ? {} : { hasDefinition: true }),
    ...(runTokens === Number.POSITIVE_INFINITY ? {} : { tokens: runTokens }),
  };
}
const DEFINED: readonly DefinedLimit[] = ["steps", "ms", "costUsd"];
const definedBudget = (autonomy: AgentDefinition["autonomy"]): Readonly<Record<DefinedLimit, number>> => ({
  steps: autonomy?.max_iterations ?? UNBOUNDED.steps,
  ms: autonomy?.time_budget_ms ?? UNBOUNDED.ms,
  costUsd: autonomy?.cost_budget_usd ?? UNBOUNDED.costUsd,
});
const UNBOUNDED = { steps: Number.POSITIVE_INFINITY, ms: Number.POSITIVE_INFINITY, costUsd: Number.POSITIVE_INFINITY } as const;
