/**
 * Known providers and models: addresses, wires, context windows, prices. PURE: look-ups in pi-ai's catalogue (gen/catalogue.ts). A
 * provider or model that is not there works too, with `model.baseUrl`, `providers.*` and the defaults below. Prices are US dollars for a
 * million tokens.
 */
import type { ModelPrice, ModelWire } from "../../../protocol/gen/types.ts";
import { checkModelWire } from "../../../protocol/gen/validators/checks.js";
import type { Problem } from "../ports/result.ts";
import { CATALOGUE, COMPAT, KINDS, LEVELS } from "./gen/catalogue.ts";

export interface ProviderInfo {
  readonly name: string;
  readonly wire: ModelWire;
  /** May have places in braces, which `models/cloud.ts` fills. */
  readonly baseUrl: string;
  /** The model id to use while the configured one is still the demo's. */
  readonly defaultModel?: string;
  /** Images may be sent to unknown models of this provider. */
  readonly images?: boolean;
  /** Servers on the owner's machine: they need no key. */
  readonly keyless?: boolean;
  /** How to get a model and its name, on a server of one's own. */
  readonly listModels?: string;
}

/** What pi-ai's catalogue does not say: the model to begin with, and whether models that are too new for it take images. */
const CHOICES: Readonly<Record<string, Pick<ProviderInfo, "defaultModel" | "images">>> = {
  anthropic: { defaultModel: "claude-sonnet-5", images: true },
  openai: { defaultModel: "gpt-5.4-mini", images: true },
  openrouter: { defaultModel: "openrouter/auto", images: true },
  google: { defaultModel: "gemini-2.5-flash", images: true },
  "google-vertex": { defaultModel: "gemini-2.5-flash", images: true },
  deepseek: { defaultModel: "deepseek-flash" },
  groq: { defaultModel: "openai/gpt-oss-120b" },
  mistral: { defaultModel: "mistral-medium-latest", images: true },
  "cloudflare-workers-ai": { defaultModel: "@cf/openai/gpt-oss-120b" },
  "amazon-bedrock": { images: true },
  "azure-openai-responses": { images: true },
  xai: { images: true },
  "vercel-ai-gateway": { images: true },
};
const ownServer = (name: string, baseUrl: string, listModels: string): ProviderInfo => ({
  name,
  wire: "openai-completions",
  baseUrl,
  keyless: true,
  listModels,
});
/** pi-ai lists services only. */
const OWN_SERVERS: Readonly<Record<string, ProviderInfo>> = {
  ollama: ownServer("Ollama", "http://127.0.0.1:11434/v1", "List the models that you have: `ollama list`; get one: `ollama pull qwen3`."),
  lmstudio: ownServer("LM Studio", "http://127.0.0.1:1234/v1", "List the models that you have: `lms ls`."),
  llamacpp: ownServer(
    "llama.cpp",
    "http://127.0.0.1:8080/v1",
    "The server answers with the model that it was started with; any name will do.",
  ),
};
/** They serve the models of others under the same ids, so a model that is named without its provider is not theirs. */
const RESELLERS = new Set([
  "amazon-bedrock",
  "azure-openai-responses",
  "cloudflare-ai-gateway",
  "fireworks",
  "google-vertex",
  "opencode",
  "opencode-go",
  "qwen-token-plan",
  "qwen-token-plan-cn",
  "qwen-token-plan-individual",
  "vercel-ai-gateway",
]);

/** Providers that cannot be used from here, and what to use instead. */
const ELSEWHERE: Readonly<Record<string, Required<Problem>>> = {
  "openai-codex": {
    message: "It needs the login of a ChatGPT subscription.",
    hint: "Use `model.provider openai` with an API key.",
  },
  "github-copilot": {
    message: "It needs the login of a Copilot subscription.",
    hint: "Use the model's own provider, or OpenRouter.",
  },
  radius: { message: "It needs a login of its own.", hint: "Use the model's own provider, or OpenRouter." },
};

interface Endpoint {
  readonly wire: ModelWire;
  readonly baseUrl: string;
}
function endpointOf(provider: string, index: number): Endpoint | undefined {
  const [wire, baseUrl] = (entryOf(provider)?.[1][index] ?? "").split(" ");
  return checkModelWire(wire) ? { wire, baseUrl: baseUrl ?? "" } : undefined;
}
const entryOf = (provider: string): (typeof CATALOGUE)[string] | undefined =>
  Object.hasOwn(CATALOGUE, provider) ? CATALOGUE[provider] : undefined;

export function providerInfo(provider: string): ProviderInfo | undefined {
  if (Object.hasOwn(OWN_SERVERS, provider)) return OWN_SERVERS[provider];
  const [name] = entryOf(provider) ?? [];
  const endpoint = endpointOf(provider, 0);
  if (name === undefined || endpoint === undefined) return undefined;
  return { name, ...endpoint, ...(Object.hasOwn(CHOICES, provider) ? CHOICES[provider] : {}) };
}
/** All addresses at which this provider's models are. They may have places in braces. */
export function builtInAddresses(provider: string): readonly string[] {
  const first = providerInfo(provider);
  if (first === undefined) return [];
  const [, endpoints = []] = entryOf(provider) ?? [];
  return [...new Set([first.baseUrl, ...endpoints.map((_endpoint, index) => endpointOf(provider, index)?.baseUrl ?? first.baseUrl)])];
}
export const adviceFor = (provider: string): Required<Problem> | undefined =>
  Object.hasOwn(ELSEWHERE, provider) ? ELSEWHERE[provider] : undefined;
/** The ones that most people use come first. */
export const knownProviders = (): readonly string[] => [
  ...new Set([...Object.keys(CHOICES), ...Object.keys(OWN_SERVERS), ...Object.keys(CATALOGUE)]),
];

/** How a request sets the thinking level: adaptive effort or a token budget (Anthropic), an effort word (OpenAI's wire), or not at all. */
export type Thinking = "adaptive" | "budget" | "effort" | "none";
/** Other rates for requests with many input tokens. */
export type PriceTier = Required<ModelPrice> & { readonly inputTokensAbove: number };
export interface ModelInfo {
  readonly contextWindow: number;
  readonly maxTokens: number;
  readonly price?: ModelPrice;
  readonly priceTiers?: readonly PriceTier[];
  readonly thinking: Thinking;
  readonly images: boolean;
  /** Levels that differ from the default: null means not offered, a word replaces the level's name. */
  readonly levels?: Readonly<Record<string, string | null>>;
  /** How this server's dialect of its wire differs. Absent for models that are not listed. */
  readonly compat?: Readonly<Record<string, unknown>>;
}
export const DEFAULT_CONTEXT_WINDOW = 128_000;
export const DEFAULT_MAX_TOKENS = 8_192;

/** A dated snapshot (`-20251001`, `-2024-11-20`) has the properties of its model. */
const undated = (id: string): string => id.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, "");

/** The line of a model, without a list of all models in memory. Its first word is the id, behind the end of the line before. */
function lineOf(provider: string, id: string): readonly string[] | undefined {
  const models = entryOf(provider)?.[2];
  if (models === undefined || /\s/.test(id)) return undefined;
  const at = models.indexOf(`\n${id} `);
  return at === -1 ? undefined : models.slice(at, models.indexOf("\n", at + 1)).split(" ");
}
const rowOf = (provider: string, id: string): readonly string[] | undefined => lineOf(provider, id) ?? lineOf(provider, undated(id));

/** Whether the catalogue has this model of the provider. */
export const hasModel = (provider: string, id: string): boolean => rowOf(provider, id) !== undefined;
/** The providers whose models the catalogue lists with this id; resellers only where no other has it. */
export function providersOf(id: string): readonly string[] {
  const all = knownProviders().filter((provider) => hasModel(provider, id));
  const own = all.filter((provider) => !RESELLERS.has(provider));
  return own.length > 0 ? own : all;
}
/** The ids of a provider's listed models, in the catalogue's order. */
export const modelsOf = (provider: string): readonly string[] =>
  (entryOf(provider)?.[2] ?? "").split("\n").flatMap((line) => (line === "" ? [] : [line.slice(0, line.indexOf(" "))]));

interface Kind {
  readonly endpoint: number;
  readonly images: boolean;
  readonly thinks: boolean;
  readonly levels: Readonly<Record<string, string | null>>;
  readonly compat: Readonly<Record<string, unknown>>;
}
function kindOf(row: readonly string[]): Kind {
  const [endpoint = 0, images, thinks, levels = 0, compat = 0] = (KINDS[Number.parseInt(row[4] ?? "0", 36)] ?? "").split(" ").map(Number);
  return {
    endpoint,
    images: images === 1,
    thinks: thinks === 1,
    levels: JSON.parse(LEVELS[levels] ?? "{}") as Kind["levels"],
    compat: JSON.parse(COMPAT[compat] ?? "{}") as Kind["compat"],
  };
}
/** Where the provider serves this model. */
export function modelEndpoint(provider: string, id: string): Endpoint | undefined {
  const row = rowOf(provider, id);
  return endpointOf(provider, row === undefined ? 0 : kindOf(row).endpoint);
}
function pricesOf(text: string): Pick<ModelInfo, "price" | "priceTiers"> {
  if (text === "-") return {};
  const [base = "", ...tiers] = text.split(";");
  const rates = (numbers: readonly number[]): Required<ModelPrice> => {
    const [input = 0, output = 0, cacheRead = 0, cacheWrite = 0] = numbers;
    return { input, output, cacheRead, cacheWrite };
  };
  const priceTiers = tiers.map((tier) => {
    const [inputTokensAbove = 0, ...numbers] = tier.split(",").map(Number);
    return { inputTokensAbove, ...rates(numbers) };
  });
  return { price: rates(base.split(",").map(Number)), ...(priceTiers.length === 0 ? {} : { priceTiers }) };
}

/** Claude's thinking mode by its version, for ids that are newer than the catalogue. */
function claude(id: string): Pick<ModelInfo, "thinking" | "levels"> {
  const version = /claude-(?:[a-z]+-)?(\d+)(?:-(\d{1,2}))?(?:-[a-z]+)?(?:-|$)/.exec(undated(id));
  const rank = version ? Number(version[1]) * 100 + Number(version[2] ?? 0) : 0;
  if (rank >= 406)
    return {
      thinking: "adaptive",
      levels: { ...(rank >= 407 ? { xhigh: "xhigh" } : {}), ...(rank >= 500 && !id.includes("sonnet") ? { off: null } : {}) },
    };
  return { thinking: rank >= 307 ? "budget" : "none" };
}

const isAnthropics = (wire: ModelWire): boolean => wire === "anthropic-messages";

/** The known properties of a model, or safe defaults. `wire` is the one that is used, which the owner may have chosen. */
export function modelInfo(provider: string, id: string, wire: ModelWire): ModelInfo {
  const row = rowOf(provider, id);
  if (row === undefined) {
    const traits = provider === "anthropic" ? claude(id) : undefined;
    return {
      contextWindow: provider === "anthropic" ? 200_000 : DEFAULT_CONTEXT_WINDOW,
      maxTokens: DEFAULT_MAX_TOKENS,
      images: providerInfo(provider)?.images ?? false,
      thinking: traits?.thinking ?? (isAnthropics(wire) ? "budget" : "effort"),
      ...(traits?.levels ? { levels: traits.levels } : {}),
    };
  }
  const { endpoint, images, thinks, levels, compat } = kindOf(row);
  const adaptive = compat["forceAdaptiveThinking"] === true;
  return {
    contextWindow: Number(row[1]),
    maxTokens: Number(row[2]),
    ...pricesOf(row[3] ?? "-"),
    images,
    thinking: !thinks ? "none" : isAnthropics(wire) ? (adaptive ? "adaptive" : "budget") : "effort",
    ...(Object.keys(levels).length === 0 ? {} : { levels }),
    ...(endpointOf(provider, endpoint)?.wire === wire ? { compat } : {}),
  };
}
