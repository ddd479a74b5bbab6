/**
 * Known providers and models: addresses, wires, context windows, prices. PURE: data and look-ups. A provider or model that is not here
 * works too, with `model.baseUrl`, `providers.*` and the defaults below. Prices are US dollars for a million tokens: input, output, cache
 * read, cache write.
 */
import type { ModelPrice, ModelWire } from "../../../protocol/gen/types.ts";

export interface ProviderInfo {
  readonly name: string;
  readonly wire: ModelWire;
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

const anthropicWire = (name: string, baseUrl: string, more: Partial<ProviderInfo> = {}): ProviderInfo => ({
  name,
  wire: "anthropic-messages",
  baseUrl,
  ...more,
});
const openaiWire = (name: string, baseUrl: string, more: Partial<ProviderInfo> = {}): ProviderInfo => ({
  name,
  wire: "openai-completions",
  baseUrl,
  ...more,
});

const PROVIDERS: Readonly<Record<string, ProviderInfo>> = {
  anthropic: anthropicWire("Anthropic", "https://api.anthropic.com", { defaultModel: "claude-sonnet-5", images: true }),
  openai: openaiWire("OpenAI", "https://api.openai.com/v1", { defaultModel: "gpt-5.4-mini", images: true }),
  openrouter: openaiWire("OpenRouter", "https://openrouter.ai/api/v1", { defaultModel: "openrouter/auto", images: true }),
  google: openaiWire("Google", "https://generativelanguage.googleapis.com/v1beta/openai", {
    defaultModel: "gemini-2.5-flash",
    images: true,
  }),
  deepseek: openaiWire("DeepSeek", "https://api.deepseek.com/v1", { defaultModel: "deepseek-chat" }),
  groq: openaiWire("Groq", "https://api.groq.com/openai/v1", { defaultModel: "openai/gpt-oss-120b" }),
  xai: openaiWire("xAI", "https://api.x.ai/v1", { images: true }),
  mistral: openaiWire("Mistral", "https://api.mistral.ai/v1", { defaultModel: "mistral-medium-latest", images: true }),
  cerebras: openaiWire("Cerebras", "https://api.cerebras.ai/v1"),
  together: openaiWire("Together", "https://api.together.ai/v1"),
  fireworks: openaiWire("Fireworks", "https://api.fireworks.ai/inference/v1"),
  moonshotai: openaiWire("Moonshot", "https://api.moonshot.ai/v1"),
  "moonshotai-cn": openaiWire("Moonshot (China)", "https://api.moonshot.cn/v1"),
  zai: openaiWire("Z.ai", "https://api.z.ai/api/coding/paas/v4"),
  "zai-coding-cn": openaiWire("Z.ai (China)", "https://open.bigmodel.cn/api/coding/paas/v4"),
  nvidia: openaiWire("NVIDIA", "https://integrate.api.nvidia.com/v1"),
  huggingface: openaiWire("Hugging Face", "https://router.huggingface.co/v1"),
  baseten: openaiWire("Baseten", "https://inference.baseten.co/v1"),
  "ant-ling": openaiWire("Ant Ling", "https://api.ant-ling.com/v1"),
  opencode: openaiWire("OpenCode Zen", "https://opencode.ai/zen/v1"),
  "opencode-go": openaiWire("OpenCode Go", "https://opencode.ai/zen/go/v1"),
  "qwen-token-plan": openaiWire("Qwen", "https://token-plan.ap-southeast-1.maas.aliyuncs.com/compatible-mode/v1"),
  "qwen-token-plan-cn": openaiWire("Qwen (China)", "https://token-plan.cn-beijing.maas.aliyuncs.com/compatible-mode/v1"),
  xiaomi: openaiWire("Xiaomi", "https://api.xiaomimimo.com/v1"),
  minimax: anthropicWire("MiniMax", "https://api.minimax.io/anthropic"),
  "minimax-cn": anthropicWire("MiniMax (China)", "https://api.minimaxi.com/anthropic"),
  "kimi-coding": anthropicWire("Kimi Coding", "https://api.kimi.com/coding"),
  "vercel-ai-gateway": anthropicWire("Vercel AI Gateway", "https://ai-gateway.vercel.sh", { images: true }),
  ollama: openaiWire("Ollama", "http://127.0.0.1:11434/v1", {
    keyless: true,
    listModels: "List the models that you have: `ollama list`; get one: `ollama pull qwen3`.",
  }),
  lmstudio: openaiWire("LM Studio", "http://127.0.0.1:1234/v1", { keyless: true, listModels: "List the models that you have: `lms ls`." }),
  llamacpp: openaiWire("llama.cpp", "http://127.0.0.1:8080/v1", {
    keyless: true,
    listModels: "The server answers with the model that it was started with; any name will do.",
  }),
};

/** Providers whose wire format is not built in, and what to use instead. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "amazon-bedrock":
    "Use the same model through OpenRouter (`model.provider openrouter`), or set `model.baseUrl` to an OpenAI-compatible endpoint.",
  "google-vertex": "Use `model.provider google` with a Gemini API key, or OpenRouter.",
  "azure-openai-responses":
    "Set `model.baseUrl` to your deployment's OpenAI-compatible endpoint (`https://<resource>.openai.azure.com/openai/v1`).",
  "openai-codex": "Use `model.provider openai` with an API key.",
  "github-copilot": "Use the model's own provider, or OpenRouter.",
  radius: "Use the model's own provider, or OpenRouter.",
  meta: "Use OpenRouter, or set `model.baseUrl` to an OpenAI-compatible endpoint.",
  "cloudflare-workers-ai": "Set `model.baseUrl` to `https://api.cloudflare.com/client/v4/accounts/<account>/ai/v1`.",
  "cloudflare-ai-gateway": "Set `model.baseUrl` to your gateway's address, ending in `/compat`.",
};

export const providerInfo = (provider: string): ProviderInfo | undefined =>
  Object.hasOwn(PROVIDERS, provider) ? PROVIDERS[provider] : undefined;
export const adviceFor = (provider: string): string | undefined => (Object.hasOwn(ELSEWHERE, provider) ? ELSEWHERE[provider] : undefined);
export const knownProviders = (): readonly string[] => Object.keys(PROVIDERS);

/** How a request sets the thinking level: adaptive effort or a token budget (Anthropic), an effort word (OpenAI's wire), or not at all. */
export type Thinking = "adaptive" | "budget" | "effort" | "none";
export interface ModelInfo {
  readonly contextWindow: number;
  readonly maxTokens: number;
  readonly price?: ModelPrice;
  readonly thinking: Thinking;
  readonly images: boolean;
  /** Levels that differ from the default: null means not offered, a word replaces the level's name. */
  readonly levels?: Readonly<Record<string, string | null>>;
}
export const DEFAULT_CONTEXT_WINDOW = 128_000;
export const DEFAULT_MAX_TOKENS = 8_192;

type Row = readonly [
  contextWindow: number,
  maxTokens: number,
  price: readonly [number, number, number, number],
  thinking: Thinking,
  images: boolean,
];
const K = 1000;
const M = 1_000_000;
const MODELS: Readonly<Record<string, Row>> = {
  "anthropic/claude-fable-5": [M, 128 * K, [10, 50, 1, 12.5], "adaptive", true],
  "anthropic/claude-fable-5-1": [M, 128 * K, [10, 50, 0.25, 12.5], "adaptive", true],
  "anthropic/claude-opus-5-5": [M, 128 * K, [4, 20, 0.2, 5], "adaptive", true],
  "anthropic/claude-opus-5": [M, 128 * K, [5, 25, 0.5, 6.25], "adaptive", true],
  "anthropic/claude-opus-4-8": [M, 128 * K, [5, 25, 0.5, 6.25], "adaptive", true],
  "anthropic/claude-opus-4-7": [M, 128 * K, [5, 25, 0.5, 6.25], "adaptive", true],
  "anthropic/claude-opus-4-6": [M, 128 * K, [5, 25, 0.5, 6.25], "adaptive", true],
  "anthropic/claude-opus-4-5": [200 * K, 64 * K, [5, 25, 0.5, 6.25], "budget", true],
  "anthropic/claude-sonnet-5": [M, 128 * K, [2, 10, 0.2, 2.5], "adaptive", true],
  "anthropic/claude-sonnet-4-6": [M, 128 * K, [3, 15, 0.3, 3.75], "adaptive", true],
  "anthropic/claude-sonnet-4-5": [200 * K, 64 * K, [3, 15, 0.3, 3.75], "budget", true],
  "anthropic/claude-haiku-4-5": [200 * K, 64 * K, [1, 5, 0.1, 1.25], "budget", true],
  "openai/gpt-4o": [128 * K, 16_384, [2.5, 10, 1.25, 0], "none", true],
  "openai/gpt-4o-mini": [128 * K, 16_384, [0.15, 0.6, 0.075, 0], "none", true],
  "openai/gpt-4.1": [1_047_576, 32_768, [2, 8, 0.5, 0], "none", true],
  "openai/gpt-4.1-mini": [1_047_576, 32_768, [0.4, 1.6, 0.1, 0], "none", true],
  "openai/gpt-4.1-nano": [1_047_576, 32_768, [0.1, 0.4, 0.025, 0], "none", true],
  "openai/gpt-5": [400 * K, 128 * K, [1.25, 10, 0.125, 0], "effort", true],
  "openai/gpt-5-mini": [400 * K, 128 * K, [0.25, 2, 0.025, 0], "effort", true],
  "openai/gpt-5-nano": [400 * K, 128 * K, [0.05, 0.4, 0.005, 0], "effort", true],
  "openai/gpt-5.1": [400 * K, 128 * K, [1.25, 10, 0.125, 0], "effort", true],
  "openai/gpt-5.2": [400 * K, 128 * K, [1.75, 14, 0.175, 0], "effort", true],
  "openai/gpt-5.4": [272 * K, 128 * K, [2.5, 15, 0.25, 0], "effort", true],
  "openai/gpt-5.4-mini": [400 * K, 128 * K, [0.75, 4.5, 0.075, 0], "effort", true],
  "openai/gpt-5.4-nano": [400 * K, 128 * K, [0.2, 1.25, 0.02, 0], "effort", true],
  "openai/gpt-5.5": [272 * K, 128 * K, [5, 30, 0.5, 0], "effort", true],
  "openai/gpt-6-sol": [272 * K, 128 * K, [2, 10, 0.2, 2.5], "effort", true],
  "openai/gpt-6-luna": [272 * K, 128 * K, [0.1, 0.5, 0.01, 0.125], "effort", true],
  "openai/o3": [200 * K, 100 * K, [2, 8, 0.5, 0], "effort", true],
  "openai/o4-mini": [200 * K, 100 * K, [1.1, 4.4, 0.275, 0], "effort", true],
  "google/gemini-2.5-pro": [1_048_576, 65_536, [1.25, 10, 0.125, 0], "effort", true],
  "google/gemini-2.5-flash": [1_048_576, 65_536, [0.3, 2.5, 0.03, 0], "effort", true],
  "google/gemini-2.5-flash-lite": [1_048_576, 65_536, [0.1, 0.4, 0.01, 0], "effort", true],
  "google/gemini-3-flash-preview": [1_048_576, 65_536, [0.5, 3, 0.05, 0], "effort", true],
  "google/gemini-3.1-pro-preview": [1_048_576, 65_536, [2, 12, 0.2, 0], "effort", true],
  "mistral/mistral-large-latest": [262_144, 262_144, [0.5, 1.5, 0.05, 0], "none", true],
  "mistral/mistral-medium-latest": [262_144, 262_144, [1.5, 7.5, 0.15, 0], "none", true],
  "mistral/mistral-small-latest": [256 * K, 256 * K, [0.15, 0.6, 0.015, 0], "none", true],
  "mistral/devstral-latest": [262_144, 262_144, [0.4, 2, 0.04, 0], "none", false],
  "mistral/codestral-latest": [256 * K, 4096, [0.3, 0.9, 0.03, 0], "none", false],
  "zai/glm-4.7": [204_800, 131_072, [0.6, 2.2, 0.11, 0], "effort", false],
  "zai/glm-5.3": [M, 131_072, [1.4, 4.4, 0.26, 0], "effort", false],
  "minimax/MiniMax-M3": [1_048_576, 512 * K, [0.3, 1.2, 0.06, 0], "budget", true],
  "moonshotai/kimi-k3": [1_048_576, 131_072, [3, 15, 0.3, 0], "effort", true],
};

/** A dated snapshot (`-20251001`, `-2024-11-20`) has the properties of its model. */
const undated = (id: string): string => id.replace(/-(?:\d{8}|\d{4}-\d{2}-\d{2})$/, "");

/** Whether the table has this model of the provider. */
export const hasModel = (provider: string, id: string): boolean => Object.hasOwn(MODELS, `${provider}/${undated(id)}`);
/** The providers whose models the table lists with this id. */
export const providersOf = (id: string): readonly string[] => knownProviders().filter((provider) => hasModel(provider, id));

/** Claude's thinking mode by its version, for ids that are newer than the table. */
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
const OPENAI_LEVELS = { off: null, minimal: null, xhigh: "xhigh" } as const;
const GPT5_LEVELS = { off: null, xhigh: null } as const;

/** The known properties of a model, or safe defaults. */
export function modelInfo(provider: string, id: string, wire: ModelWire): ModelInfo {
  const key = `${provider}/${undated(id)}`;
  const row = Object.hasOwn(MODELS, key) ? MODELS[key] : undefined;
  const traits = provider === "anthropic" ? claude(id) : undefined;
  if (!row) {
    return {
      contextWindow: provider === "anthropic" ? 200_000 : DEFAULT_CONTEXT_WINDOW,
      maxTokens: DEFAULT_MAX_TOKENS,
      images: providerInfo(provider)?.images ?? false,
      thinking: traits?.thinking ?? (wire === "openai-completions" ? "effort" : "budget"),
      ...(traits?.levels ? { levels: traits.levels } : {}),
    };
  }
  const [contextWindow, maxTokens, [input, output, cacheRead, cacheWrite], thinking, images] = row;
  const levels =
    traits?.levels ?? (provider === "openai" && thinking === "effort" ? (/^gpt-5(-|$)/.test(id) ? GPT5_LEVELS : OPENAI_LEVELS) : undefined);
  return { contextWindow, maxTokens, price: { input, output, cacheRead, cacheWrite }, thinking, images, ...(levels ? { levels } : {}) };
}
