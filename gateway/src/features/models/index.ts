/** Lists providers and models, and calls a model once for `gsv doctor` and `gsv setup` (rule SP11). The call belongs to no session. */
import type { GsvConfig, ModelEntry, ModelRef, ProviderEntry } from "../../../../protocol/gen/types.ts";
import type { ParamsOf, ResultOf } from "../../../../protocol/gen/methods.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { knownProviders, modelEndpoint, modelInfo, modelsOf, providerInfo } from "../../models/catalog.ts";
import { keyCharacterProblem } from "../../models/key-characters.ts";
import { providerProblem } from "../../models/providers.ts";
import { tokensOfText } from "../../models/estimate.ts";
import { resolveModelId } from "../../models/resolve.ts";
import { callTerms } from "../../models/terms.ts";
import type { ModelClient, ModelOutcome } from "../../ports/model.ts";
import { failure, type Result, succeed } from "../../ports/result.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { Amount, OwnCallAnswer, SpendPort } from "../../ports/spend.ts";

export interface ModelPorts
  extends Pick<KernelPorts, "audit" | "background" | "config" | "now">,
    Pick<SpendPort, "ownCall">,
    Pick<StopPort, "stopped"> {
  readonly model: Pick<ModelClient, "call">;
}

const TIMEOUT_MS = 30_000;
/** Enough for one word, also of a model that thinks a little first. */
const MAX_TOKENS = 256;
const SYSTEM_PROMPT = "This is a test of the connection.";
const QUESTION = "Answer with the word ok.";

export const modelsFeature: FeatureDefinition<ModelPorts, object> = {
  name: "models",
  create: (ports) => ({ offers: {}, methods: modelMethods(ports) }),
};

/** `hasKey`: the configuration for features has no keys. */
function providerEntries({ providers = {} }: GsvConfig, hasKey: (provider: string) => boolean): ProviderEntry[] {
  const built = knownProviders().flatMap((provider) => {
    const info = providerInfo(provider);
    if (info === undefined) return [];
    const ready = info.keyless === true || hasKey(provider);
    return [{ provider, name: info.name, models: modelsOf(provider).length, ready }];
  });
  const own = Object.keys(providers).filter((provider) => providerInfo(provider) === undefined);
  return [...built, ...own.map((provider) => ({ provider, name: provider, models: 0, ready: true }))];
}
function modelEntry(provider: string, id: string): ModelEntry {
  const { contextWindow, maxTokens, images, thinking, price } = modelInfo(
    provider,
    id,
    modelEndpoint(provider, id)?.wire ?? "openai-completions",
  );
  return { id, contextWindow, maxTokens, images, thinking: thinking !== "none", ...(price ? { price } : {}) };
}

const modelMethods = (ports: ModelPorts): Handlers => ({
  "models.list": (_caller, { provider }) => {
    const { config } = ports;
    const inForce = config.effective();
    if (provider === undefined) {
      const hasKey = (name: string): boolean => Object.hasOwn(config.access([name]).apiKeys, name);
      return succeed({ providers: providerEntries(inForce, hasKey) });
    }
    const problem = providerProblem(provider, inForce);
    if (problem !== undefined) return failure("model.unknown", problem);
    return succeed({ models: modelsOf(provider).map((id) => modelEntry(provider, id)) });
  },
  "model.test": async ({ connection }, params) => {
    const { audit, background, config } = ports;
    const { provider, id } = params.model ?? config.agent(config.defaultAgentId()).model ?? config.effective().model;
    const model: ModelRef = { provider, id };
    const tested = await testModel(ports, model, params);
    const target = nameOf(model);
    const detail = tested.ok ? undefined : tested.error.reason;
    const entry = {
      actor: actorOf(connection.principal),
      action: "model.test",
      target,
      decision: tested.ok ? "allowed" : "failed",
    } as const;
    background("audit", audit.append({ ...entry, ...(detail === undefined ? {} : { detail }) }));
    return tested;
  },
});
const nameOf = (model: ModelRef): string => `${model.provider}/${resolveModelId(model)}`.slice(0, 256);

async function testModel(ports: ModelPorts, model: ModelRef, { apiKey }: ParamsOf<"model.test">): Promise<Result<ResultOf<"model.test">>> {
  const { config, model: client, now, stopped } = ports;
  if (stopped() !== undefined) return failure("gateway.stopped", "GSV is stopped, so the model was not called.");
  const problem = apiKey === undefined ? undefined : keyCharacterProblem(apiKey);
  if (problem !== undefined) return failure("model.auth", `The model was not called: ${problem}`);
  const reserved = reserve(ports, model);
  if (!reserved.ok) return { ok: false, error: reserved.error };
  const { provider } = model;
  const stored = config.access([provider]);
  const began = now();
  const outcome = await client.call({
    model,
    config: config.effective(),
    access: apiKey === undefined ? stored : { ...stored, apiKeys: { ...stored.apiKeys, [provider]: apiKey } },
    systemPrompt: SYSTEM_PROMPT,
    messages: [{ role: "user", content: QUESTION, timestamp: began }],
    tools: [],
    thinkLevel: "none",
    maxTokens: MAX_TOKENS,
    cacheKey: "model.test",
    timeoutMs: TIMEOUT_MS,
    signal: new AbortController().signal,
    now,
    onText: () => {},
  });
  settle(reserved, outcome);
  // A failure with usage is an answer that was of no use, such as one that ended at its limit: the model was reached.
  if (outcome.kind === "failed" && outcome.usage === undefined) return { ok: false, error: outcome.error };
  return succeed({ model: { provider, id: resolveModelId(model) }, tookMs: Math.max(0, now() - began) });
}

/** Sets the call's worst cost aside. Undefined `settle`: the demo model, which is not counted. */
function reserve({ config, ownCall }: ModelPorts, model: ModelRef): OwnCallAnswer | { readonly ok: true; readonly settle?: undefined } {
  const inputTokens = tokensOfText(SYSTEM_PROMPT + QUESTION);
  const terms = callTerms(model, config.effective(), { inputTokens, cachedTokens: 0, maxTokens: MAX_TOKENS, thinkLevel: "none" });
  if (terms === undefined) return { ok: true };
  const { rates, inputUsd, output } = terms;
  const need: Amount = rates ? { costUsd: inputUsd + output * rates.output, tokens: 0 } : { costUsd: 0, tokens: inputTokens + output };
  return ownCall({ agentId: config.defaultAgentId(), model: nameOf(model), need });
}
/** A provider that refused the call bills nothing. One that was reached and did not finish may have billed it: what was set aside stays counted. */
function settle(reserved: ReturnType<typeof reserve>, outcome: ModelOutcome): void {
  if (!reserved.ok || reserved.settle === undefined) return;
  const { usage } = outcome;
  if (usage !== undefined && usage.total > 0)
    reserved.settle({ ...usage, costUsd: usage.costUsd ?? 0, tokens: usage.costUsd === undefined ? usage.total : 0 });
  else if (outcome.kind === "failed" && !MAY_BE_BILLED.has(outcome.error.reason)) reserved.settle({ costUsd: 0, tokens: 0 });
}
const MAY_BE_BILLED: ReadonlySet<string> = new Set(["model.timeout", "model.bad_answer", "model.refused"]);
