/**
 * Resolves a model's name and the configuration to what a call needs: address, wire, key, headers, limits, price.
 * PURE. Its errors say what to set when something is missing; they never contain a key or a header's value.
 */
import type { ModelPrice, ModelRef, ModelWire, ProviderConfig } from "../../../protocol/gen/types.ts";
import { failure, type Result } from "../ports/result.ts";
import type { EffectiveConfig, ModelAccess } from "../ports/run-context.ts";
import { adviceFor, type ModelInfo, modelEndpoint, modelInfo, providerInfo, providersOf } from "./catalog.ts";
import { cloudAddress, WORKERS_AI } from "./cloud.ts";

export interface Target {
  readonly provider: string;
  /** The provider's display name. */
  readonly providerName: string;
  readonly id: string;
  readonly wire: ModelWire;
  readonly baseUrl: string;
  /** Absent for servers that need none. */
  readonly apiKey?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly info: ModelInfo;
  /** The address comes from the configuration, so nothing about the server is assumed. */
  readonly custom: boolean;
  /** The setting that the address comes from. Absent: the address is built in. */
  readonly addressSetting?: string;
  /** The call goes through the `AI` binding, which needs neither address nor key. */
  readonly bound?: boolean;
}
/** What the deployment offers. */
export interface Platform {
  /** Workers AI is bound. */
  readonly workersAi?: boolean;
}
export const DEMO = "demo";
export const isDemo = (ref: ModelRef): boolean => ref.provider === DEMO;

const own = <T>(map: Readonly<Record<string, T>> | undefined, key: string): T | undefined =>
  map && Object.hasOwn(map, key) ? map[key] : undefined;
const guessWire = (provider: string): ModelWire => (provider === "anthropic" ? "anthropic-messages" : "openai-completions");

/** The path that a configured address gets when it has none, by what each client adds to it. */
const USUAL_PATH: Readonly<Record<ModelWire, string>> = {
  "anthropic-messages": "",
  "openai-completions": "/v1",
  "openai-responses": "/v1",
  "azure-openai-responses": "/openai/v1",
  "google-generative-ai": "/v1beta",
  "google-vertex": "/v1/publishers/google",
  "mistral-conversations": "",
  "bedrock-converse-stream": "",
};
/** Clients that add the version themselves. */
const ADDS_VERSION: ReadonlySet<ModelWire> = new Set(["anthropic-messages", "mistral-conversations"]);
/** Anthropic's client adds `/v1/messages`, OpenAI's `/chat/completions`: normalise the configured address. */
export function normalizeBaseUrl(baseUrl: string, wire: ModelWire): string | undefined {
  let url: URL;
  try {
    url = new URL(baseUrl);
  } catch {
    return undefined;
  }
  if (
    (url.protocol !== "http:" && url.protocol !== "https:") ||
    url.username !== "" ||
    url.password !== "" ||
    url.search !== "" ||
    url.hash !== ""
  )
    return undefined;
  const path = url.pathname.replace(/\/+$/, "");
  return url.origin + (path === "" ? USUAL_PATH[wire] : ADDS_VERSION.has(wire) ? path.replace(/\/v1$/, "") : path);
}

/**
 * The wire of an own address that stands in for a known provider. Most such servers speak OpenAI's completions; a cloud's own wire is
 * spoken by itself and by its proxies only.
 */
const compatibleWire = (provider: string, wire: ModelWire | undefined): ModelWire =>
  wire === undefined || wire === "openai-responses" || wire === "mistral-conversations" || provider === "google"
    ? guessWire(provider)
    : wire;

interface Server {
  readonly baseUrl: string;
  readonly wire: ModelWire;
  readonly name: string;
  /** A server of one's own, which needs no key. */
  readonly custom: boolean;
  readonly addressSetting?: string;
  readonly images?: boolean;
  readonly contextWindow?: number;
  readonly maxTokens?: number;
  readonly price?: ModelPrice;
}
function serverOf(ref: ModelRef, config: EffectiveConfig): Result<Server> {
  const model = config.model;
  const mine = own(config.providers, ref.provider);
  const known = providerInfo(ref.provider);
  const limits = (from: ProviderConfig | undefined) => ({
    ...(from?.images === undefined ? {} : { images: from.images }),
    ...(from?.contextWindow === undefined ? {} : { contextWindow: from.contextWindow }),
    ...(from?.maxTokens === undefined ? {} : { maxTokens: from.maxTokens }),
    ...(from?.price === undefined ? {} : { price: from.price }),
  });
  if (ref.provider === model.provider && model.baseUrl !== undefined) {
    return {
      ok: true,
      value: {
        baseUrl: model.baseUrl,
        wire: model.wire ?? mine?.wire ?? compatibleWire(ref.provider, known?.wire),
        name: known?.name ?? ref.provider,
        custom: true,
        addressSetting: "model.baseUrl",
        ...limits(mine),
      },
    };
  }
  if (mine) {
    const addressSetting = `providers.${ref.provider}.baseUrl`;
    return {
      ok: true,
      value: { baseUrl: mine.baseUrl, wire: mine.wire, name: ref.provider, custom: true, addressSetting, ...limits(mine) },
    };
  }
  if (known)
    return {
      ok: true,
      value: {
        ...(modelEndpoint(ref.provider, resolveModelId(ref)) ?? { baseUrl: known.baseUrl, wire: known.wire }),
        name: known.name,
        custom: known.keyless === true,
      },
    };
  const advice = adviceFor(ref.provider);
  if (advice !== undefined)
    return failure("model.unknown", `The provider "${ref.provider}" is not built in. ${advice.message}`, advice.hint);
  // A model without its provider.
  const [meant] = ref.id === DEMO ? providersOf(ref.provider) : [];
  if (meant !== undefined)
    return failure(
      "model.unknown",
      `"${ref.provider}" is a model of ${meant}, and not a provider.`,
      `Name both: \`gsv model use ${meant}/${ref.provider}\`.`,
    );
  return failure(
    "model.unknown",
    `Unknown provider "${ref.provider}".`,
    `List the providers: \`gsv provider list\`. For your own server: \`gsv config set providers.${ref.provider} '{"baseUrl":"https://host/v1","wire":"openai-completions"}'\`; OpenRouter (\`model.provider openrouter\`) has most models.`,
  );
}

function id(ref: ModelRef): Result<string> {
  if (ref.id !== DEMO) return { ok: true, value: ref.id };
  const preset = providerInfo(ref.provider)?.defaultModel;
  if (preset !== undefined) return { ok: true, value: preset };
  const known = providerInfo(ref.provider);
  const choose = "`gsv config set model.id ID`";
  return failure(
    "model.not_configured",
    `No model is set for ${known?.name ?? ref.provider}.`,
    known?.listModels === undefined ? `Run ${choose}.` : `${known.listModels} Then run ${choose} with its name.`,
  );
}

/** The model id of the call: a provider without a configured model gets its default. The demo has one model, by whatever id it was stored. */
export function resolveModelId(ref: ModelRef): string {
  if (isDemo(ref)) return DEMO;
  const found = id(ref);
  return found.ok ? found.value : ref.id;
}

export interface ModelLimits {
  readonly contextWindow: number;
  readonly maxTokens: number;
  readonly price?: ModelPrice;
}
/** Window, maximum answer and price of a model, for compaction and budgets. Defaults for unknown models. */
export function modelLimits(ref: ModelRef, config: EffectiveConfig): ModelLimits {
  if (isDemo(ref)) return { contextWindow: 1_000_000, maxTokens: 100_000, price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } };
  const info = knownModel(ref, config);
  return { contextWindow: info.contextWindow, maxTokens: info.maxTokens, ...(info.price ? { price: info.price } : {}) };
}
/** The properties of a model as they are in force; defaults for unknown ones. Not for the demo. */
export function knownModel(ref: ModelRef, config: EffectiveConfig): ModelInfo {
  const at = serverOf(ref, config);
  return describe(ref, resolveModelId(ref), at.ok ? at.value : undefined, config);
}
/** Whether the model accepts images. The demo accepts every file and reads none. */
export function takesImages(ref: ModelRef, config: EffectiveConfig): boolean {
  if (isDemo(ref)) return true;
  return knownModel(ref, config).images;
}
function describe(ref: ModelRef, modelId: string, at: Server | undefined, config: EffectiveConfig): ModelInfo {
  const info = modelInfo(ref.provider, modelId, at?.wire ?? guessWire(ref.provider));
  const main = ref.provider === config.model.provider && ref.id === config.model.id ? config.model : undefined;
  const price = main?.price ?? at?.price ?? info.price;
  return {
    ...info,
    contextWindow: main?.contextWindow ?? at?.contextWindow ?? info.contextWindow,
    maxTokens: main?.maxTokens ?? at?.maxTokens ?? info.maxTokens,
    images: main?.images ?? at?.images ?? info.images,
    ...(price ? { price } : {}),
  };
}

const AUTH_HEADERS = new Set(["authorization", "x-api-key", "cf-aig-authorization"]);

/** Everything that a call of this model needs, or an error that says what to set. */
export function resolveTarget(ref: ModelRef, config: EffectiveConfig, access: ModelAccess, platform: Platform = {}): Result<Target> {
  const at = serverOf(ref, config);
  if (!at.ok) return at;
  const modelId = id(ref);
  if (!modelId.ok) return modelId;
  const { wire, name, custom } = at.value;
  const info = describe(ref, modelId.value, at.value, config);
  const apiKey = own(access.apiKeys, ref.provider)?.trim();
  const { addressSetting } = at.value;
  const setting = addressSetting === undefined ? {} : { addressSetting };
  const common = { provider: ref.provider, providerName: name, id: modelId.value, wire, info, custom, ...setting };
  if (ref.provider === WORKERS_AI && platform.workersAi === true && !custom && !apiKey)
    return { ok: true, value: { ...common, baseUrl: "https://workers-ai.invalid/v1", headers: {}, bound: true } };
  const address = custom
    ? ({ ok: true, value: at.value.baseUrl } as const)
    : cloudAddress(ref.provider, name, at.value.baseUrl, config.cloud, apiKey);
  if (!address.ok) return address;
  // An address of the catalogue is what the provider's client expects.
  const baseUrl = custom ? normalizeBaseUrl(address.value, wire) : address.value;
  if (baseUrl === undefined)
    return failure(
      "model.not_configured",
      `The address of ${name} is invalid.`,
      `Set \`model.baseUrl\` (or \`providers.${ref.provider}.baseUrl\`) to something like \`http://127.0.0.1:11434/v1\`, with no user, query or fragment in it.`,
    );
  // Headers are secrets of one server: they are only sent to the provider that they were set for.
  const headers = ref.provider === config.model.provider ? access.headers : {};
  const authenticated = Object.keys(headers).some((header) => AUTH_HEADERS.has(header.toLowerCase()));
  if (!apiKey && !custom && !authenticated) {
    return failure("model.not_configured", `No key is set for ${name}.`, `Run \`gsv config set apiKeys.${ref.provider} -\`.`);
  }
  if (wire === "anthropic-messages" && apiKey?.startsWith("sk-ant-oat")) {
    return failure(
      "model.auth",
      `The key of ${name} is a subscription's login token, which other programs may not use.`,
      `Create an API key at console.anthropic.com and run \`gsv config set apiKeys.${ref.provider} -\`.`,
    );
  }
  return { ok: true, value: { ...common, baseUrl, ...(apiKey ? { apiKey } : {}), headers } };
}
