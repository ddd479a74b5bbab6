/** Lists providers and models, and tests a model. */
import type { GsvConfig, ModelEntry, ProviderEntry } from "../../../../protocol/gen/types.ts";
import { modelTest, type ModelTestPorts } from "./model-test.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import { knownProviders, modelEndpoint, modelInfo, modelsOf, providerInfo } from "../../models/catalog.ts";
import { providerProblem } from "../../models/providers.ts";
import { DEMO, modelLimits } from "../../models/resolve.ts";
import { failure, succeed } from "../../ports/result.ts";

export const modelsFeature: FeatureDefinition<ModelTestPorts, object> = {
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

const modelMethods = (ports: ModelTestPorts): Handlers => ({
  "models.list": (_caller, { provider }) => {
    const { config } = ports;
    const inForce = config.effective();
    if (provider === undefined) {
      const hasKey = (name: string): boolean => Object.hasOwn(config.access([name]).apiKeys, name);
      return succeed({ providers: providerEntries(inForce, hasKey) });
    }
    const problem = providerProblem(provider, inForce);
    if (problem !== undefined) return failure("model.unknown", problem.message, problem.hint);
    if (provider === DEMO)
      return succeed({ models: [{ id: DEMO, ...modelLimits({ provider, id: DEMO }, inForce), images: false, thinking: false }] });
    return succeed({ models: modelsOf(provider).map((id) => modelEntry(provider, id)) });
  },
  "model.test": modelTest(ports),
});
