/** Lists providers and models, and calls a model once for `gsv doctor`. The call belongs to no session: nothing is stored, and no budget of a run counts it. */
import type { GsvConfig, ModelEntry, ModelRef, ProviderEntry } from "../../../../protocol/gen/types.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { knownProviders, modelEndpoint, modelInfo, modelsOf, providerInfo } from "../../models/catalog.ts";
import { keyCharacterProblem } from "../../models/key-characters.ts";
import { providerProblem } from "../../models/providers.ts";
import { resolveModelId } from "../../models/resolve.ts";
import type { ModelClient } from "../../ports/model.ts";
import { failure, succeed } from "../../ports/result.ts";

export interface ModelPorts extends Pick<KernelPorts, "config" | "now"> {
  readonly model: Pick<ModelClient, "call">;
}

const TIMEOUT_MS = 30_000;
/** Enough for one word, also of a model that thinks a little first. */
const MAX_TOKENS = 256;

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

const modelMethods = ({ config, now, model: client }: ModelPorts): Handlers => ({
  "models.list": (_caller, { provider }) => {
    const inForce = config.effective();
    if (provider === undefined) {
      const hasKey = (name: string): boolean => Object.hasOwn(config.access([name]).apiKeys, name);
      return succeed({ providers: providerEntries(inForce, hasKey) });
    }
    const problem = providerProblem(provider, inForce);
    if (problem !== undefined) return failure("model.unknown", problem);
    return succeed({ models: modelsOf(provider).map((id) => modelEntry(provider, id)) });
  },
  "model.test": async (_caller, { model: asked, apiKey }) => {
    const problem = apiKey === undefined ? undefined : keyCharacterProblem(apiKey);
    if (problem !== undefined) return failure("model.auth", `The model was not called: ${problem}`);
    const inForce = config.effective();
    const { provider, id } = asked ?? config.agent(config.defaultAgentId()).model ?? inForce.model;
    const model: ModelRef = { provider, id };
    const stored = config.access([provider]);
    const began = now();
    const outcome = await client.call({
      model,
      config: inForce,
      access: apiKey === undefined ? stored : { ...stored, apiKeys: { ...stored.apiKeys, [provider]: apiKey } },
      systemPrompt: "This is a test of the connection.",
      messages: [{ role: "user", content: "Answer with the word ok.", timestamp: began }],
      tools: [],
      thinkLevel: "none",
      maxTokens: MAX_TOKENS,
      cacheKey: "model.test",
      timeoutMs: TIMEOUT_MS,
      signal: new AbortController().signal,
      now,
      onText: () => {},
    });
    // A failure with usage is an answer that was of no use, such as one that ended at its limit: the model was reached.
    if (outcome.kind === "failed" && outcome.usage === undefined) return { ok: false, error: outcome.error };
    return succeed({ model: { provider, id: resolveModelId(model) }, tookMs: Math.max(0, now() - began) });
  },
});
