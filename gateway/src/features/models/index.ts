/** Lists providers and models, and calls a model once for `gsv doctor` and `gsv setup` (rule SP11). The call belongs to no session. */
import type { GsvConfig, ModelEntry, ModelRef, ProviderEntry, Usage } from "../../../../protocol/gen/types.ts";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
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
import { failure, type GsvError, type Result, succeed } from "../../ports/result.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { Amount, OwnUse, SpendPort } from "../../ports/spend.ts";

export interface ModelPorts extends Pick<KernelPorts, "audit" | "config" | "now">, Pick<SpendPort, "ownCall">, Pick<StopPort, "stopped"> {
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
  "model.test": async ({ connection }, { model: asked, apiKey }) => {
    const { audit, config } = ports;
    const { provider, id } = asked ?? config.agent(config.defaultAgentId()).model ?? config.effective().model;
    const model: ModelRef = { provider, id };
    const begun = begin(ports, model, apiKey);
    const entry = { actor: actorOf(connection.principal), action: "model.test", target: nameOf(model) };
    // Before the call, so that none is without its entry.
    if (!begun.ok) {
      await audit.append({ ...entry, decision: "denied", detail: begun.error.reason });
      return begun;
    }
    await audit.append({ ...entry, decision: "allowed" });
    return testModel(ports, model, apiKey, begun);
  },
});
const nameOf = (model: ModelRef): string => `${model.provider}/${resolveModelId(model)}`.slice(0, 256);

/** `settle` of undefined: the demo model, which is not counted. */
interface Begun {
  readonly ok: true;
  readonly settle?: (used: OwnUse) => void;
}
/** Sets the call's worst cost aside, or says why no call is made. */
function begin(
  { config, ownCall, stopped }: ModelPorts,
  model: ModelRef,
  apiKey: string | undefined,
): Begun | { readonly ok: false; readonly error: GsvError } {
  if (stopped() !== undefined) return failure("gateway.stopped", "GSV is stopped, so the model was not called.");
  const problem = apiKey === undefined ? undefined : keyCharacterProblem(apiKey);
  if (problem !== undefined) return failure("model.auth", `The model was not called: ${problem}`);
  const inputTokens = tokensOfText(SYSTEM_PROMPT + QUESTION);
  const terms = callTerms(model, config.effective(), { inputTokens, cachedTokens: 0, maxTokens: MAX_TOKENS, thinkLevel: "none" });
  if (terms === undefined) return { ok: true };
  const { rates, inputUsd, output } = terms;
  const need: Amount = rates ? { costUsd: inputUsd + output * rates.output, tokens: 0 } : { costUsd: 0, tokens: inputTokens + output };
  return ownCall({ agentId: config.defaultAgentId(), model: nameOf(model), need });
}

async function testModel(
  { config, model: client, now }: ModelPorts,
  model: ModelRef,
  apiKey: string | undefined,
  { settle }: Begun,
): Promise<Result<ResultOf<"model.test">>> {
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
  const used = usedBy(outcome);
  if (used !== undefined) settle?.(used);
  if (outcome.kind === "failed" && whole(outcome) === undefined) return { ok: false, error: outcome.error };
  return succeed({ model: { provider, id: resolveModelId(model) }, tookMs: Math.max(0, now() - began) });
}

/** Reasons of an answer that ended and is of no use, such as thoughts up to its limit. The model was reached. */
const USELESS: ReadonlySet<string> = new Set(["model.bad_answer", "model.refused"]);
/** The usage of an answer that ended. Undefined: there is none. */
const whole = (outcome: ModelOutcome): Usage | undefined =>
  outcome.kind === "replied" || (!outcome.retryable && USELESS.has(outcome.error.reason)) ? outcome.usage : undefined;

const MAY_BE_BILLED: ReadonlySet<string> = new Set(["model.timeout", ...USELESS]);
/** Undefined: what was set aside stays counted, because the provider may have billed a call that was cut off, however much. */
function usedBy(outcome: ModelOutcome): OwnUse | undefined {
  const usage = whole(outcome);
  if (usage !== undefined && usage.total > 0)
    return { ...usage, costUsd: usage.costUsd ?? 0, tokens: usage.costUsd === undefined ? usage.total : 0 };
  const isRefused = outcome.kind === "failed" && outcome.usage === undefined && !MAY_BE_BILLED.has(outcome.error.reason);
  return isRefused ? { costUsd: 0, tokens: 0 } : undefined;
}
