/** What a run needs from the gateway, asked for anew before each model call and sent only when it changed. Memory only. */
import type { ModelRef, SessionSettings, ThinkLevel } from "../../../protocol/gen/types.ts";
import type { AgentConfig } from "../../../protocol/gen/types.ts";
import type { EffectiveConfig, GatewayPort, RunContext } from "../ports.ts";
import type { Budget, Thinking } from "./machine/state.ts";

export class RunContexts {
  readonly #gateway: Pick<GatewayPort, "runContext">;
  readonly #sessionKey: () => string;
  #known: RunContext | undefined;
  #asking: Promise<RunContext> | undefined;

  constructor(gateway: Pick<GatewayPort, "runContext">, sessionKey: () => string) {
    this.#gateway = gateway;
    this.#sessionKey = sessionKey;
  }
  /** The last one that was seen in this life. */
  get known(): RunContext | undefined {
    return this.#known;
  }
  /** Rejects when the gateway does. Whoever asks while somebody is asking shares the answer, so order is kept. */
  current(): Promise<RunContext> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }
  async #ask(): Promise<RunContext> {
    const fresh = await this.#gateway.runContext(this.#sessionKey(), this.#known?.version);
    if (fresh) this.#known = fresh;
    if (!this.#known) throw new Error("the gateway says that nothing has changed since a version that it never sent");
    return this.#known;
  }
}

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
export const thinkLevelFor = (
  run: Pick<Thinking, "directives">,
  settings: SessionSettings,
  config: EffectiveConfig,
): ThinkLevel | undefined => run.directives.thinkLevel ?? settings.thinkingLevel ?? config.model.thinkLevel;
export const budgetOf = (config: EffectiveConfig): Budget => ({
  steps: config.limits.stepsPerRun,
  ms: config.limits.runMs,
  costUsd: config.limits.runCostUsd,
});
