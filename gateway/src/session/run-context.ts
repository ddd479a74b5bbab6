/** What a run needs from the gateway, asked for before each model call and sent only when it changed. Memory only. */
import type { ModelRef, SessionSettings, ThinkLevel } from "../../../protocol/gen/types.ts";
import type { AgentConfig } from "../../../protocol/gen/types.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { EffectiveConfig, ModelAccess, RunContext } from "../ports/run-context.ts";
import type { Budget, Thinking } from "./machine/state.ts";

/** How long it counts that the gateway said something along with a message: the run that the message starts asks at once. */
const SAID_MS = 250;

export class RunContexts {
  readonly #gateway: Pick<GatewayPort, "runContext" | "modelAccess">;
  readonly #sessionKey: () => string;
  #known: RunContext | undefined;
  #asking: Promise<RunContext> | undefined;
  /** The gateway said with a message that this version holds. Good for one use: what comes later may have changed again. */
  #said: { readonly version: string; readonly at: number } | undefined;
  /** The keys that were needed last, of one version and one provider. Memory only, and only for calls of the model. */
  #access: { readonly version: string; readonly provider: string; readonly access: ModelAccess } | undefined;

  constructor(gateway: Pick<GatewayPort, "runContext" | "modelAccess">, sessionKey: () => string) {
    this.#gateway = gateway;
    this.#sessionKey = sessionKey;
  }
  /** The last one that was seen in this life. */
  get known(): RunContext | undefined {
    return this.#known;
  }
  /** The gateway has just said which version holds. */
  said(version: string, now: number): void {
    this.#said = { version, at: now };
  }
  /** What a call of this provider's models may use, in the version that `context` is. Rejects when the gateway does. */
  async access(context: RunContext, provider: string): Promise<ModelAccess> {
    const { version } = context;
    if (this.#access?.version === version && this.#access.provider === provider) return this.#access.access;
    const access = await this.#gateway.modelAccess([provider]);
    this.#access = { version, provider, access };
    return access;
  }
  /** `now` (wall clock) lets the version that came with a message count. Rejects when the gateway does. Concurrent callers share one request, so order is kept. */
  current(now?: number): Promise<RunContext> {
    const said = this.#said;
    this.#said = undefined;
    const holds = said !== undefined && now !== undefined && now >= said.at && now - said.at < SAID_MS;
    if (holds && this.#known?.version === said.version) return Promise.resolve(this.#known);
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
