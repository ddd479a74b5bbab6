/** Which service embeds long-term memories, by the settings. PURE. Its errors say what to set. */
import type { EmbeddingsConfig } from "../../../protocol/gen/types.ts";
import { type EmbeddingModel, modelKey } from "../ports/embeddings.ts";

export interface ChosenEmbeddings {
  readonly kind: "openai" | "workers-ai";
  readonly of: EmbeddingModel;
  /** The address of the service's requests. Empty for Workers AI. */
  readonly url: string;
  /** It is OpenAI itself, which needs a key. */
  readonly needsKey: boolean;
  /** Ask the service for vectors of this length. */
  readonly shortened: boolean;
  /** US dollars for a million tokens. Undefined: not known. */
  readonly price: number | undefined;
}
export type Choice =
  /** `chosen` of undefined: the built-in table. */
  { readonly ok: true; readonly chosen: ChosenEmbeddings | undefined } | { readonly ok: false; readonly problem: string };

export const NO_WORKERS_AI =
  "memory.embeddings.provider: workers-ai works only on Cloudflare, where it is bound as AI. Use built-in, or openai with a server of your own (memory.embeddings.baseUrl).";
export const OPENAI_URL = "https://api.openai.com/v1";
interface Known {
  readonly dimensions: number;
  readonly price: number;
}
/** Prices and sizes as the providers publish them. */
const KNOWN: Readonly<Record<ChosenEmbeddings["kind"], ReadonlyMap<string, Known>>> = {
  openai: new Map([
    ["text-embedding-3-small", { dimensions: 1536, price: 0.02 }],
    ["text-embedding-3-large", { dimensions: 3072, price: 0.13 }],
    ["text-embedding-ada-002", { dimensions: 1536, price: 0.1 }],
  ]),
  "workers-ai": new Map([
    ["@cf/baai/bge-base-en-v1.5", { dimensions: 768, price: 0.067 }],
    ["@cf/baai/bge-small-en-v1.5", { dimensions: 384, price: 0.02 }],
    ["@cf/baai/bge-large-en-v1.5", { dimensions: 1024, price: 0.204 }],
    ["@cf/baai/bge-m3", { dimensions: 1024, price: 0.012 }],
  ]),
};
const USUAL = { openai: "text-embedding-3-small", "workers-ai": "@cf/baai/bge-base-en-v1.5" } as const;
/** Models that make shorter vectors when they are asked to. */
const canShorten = (model: string): boolean => model.startsWith("text-embedding-3-");

export function chosenEmbeddings(config: EmbeddingsConfig = {}): Choice {
  const { provider = "built-in", baseUrl, model, dimensions, price } = config;
  if (provider === "built-in") return { ok: true, chosen: undefined };
  const name = model ?? USUAL[provider];
  const known = KNOWN[provider].get(name);
  const size = dimensions ?? known?.dimensions;
  if (size === undefined)
    return {
      ok: false,
      problem: `memory.embeddings.model: how long the vectors of this model are is not known. Set memory.embeddings.dimensions first.`,
    };
  const shortened = provider === "openai" && dimensions !== undefined && canShorten(name);
  if (known !== undefined && size !== known.dimensions && !(shortened && size < known.dimensions))
    return {
      ok: false,
      problem: `memory.embeddings.dimensions: the vectors of ${name} have ${known.dimensions} numbers. Remove the setting.`,
    };
  const at = provider === "openai" ? addressOf(baseUrl ?? OPENAI_URL) : "";
  if (at === undefined)
    return { ok: false, problem: "memory.embeddings.baseUrl is not a valid address. Set it to something like http://127.0.0.1:11434/v1." };
  const isOwn = provider === "openai" && baseUrl !== undefined;
  const paid = price ?? (isOwn ? undefined : known?.price);
  const of = { provider: isOwn ? `openai ${at}` : provider, model: name, dimensions: size };
  return {
    ok: true,
    chosen: {
      kind: provider,
      of,
      url: at === "" ? "" : `${at}/embeddings`,
      needsKey: provider === "openai" && !isOwn,
      shortened,
      price: paid,
    },
  };
}
function addressOf(baseUrl: string): string | undefined {
  if (!URL.canParse(baseUrl)) return undefined;
  const { protocol, username, password, search, hash, origin, pathname } = new URL(baseUrl);
  if (!/^https?:$/.test(protocol) || username !== "" || password !== "" || search !== "" || hash !== "") return undefined;
  const path = pathname.replace(/\/+$/, "");
  return `${origin}${path === "" ? "/v1" : path}`;
}

/** The key of the chosen model; empty: the built-in table. */
export function targetOf(settings: EmbeddingsConfig | undefined): string {
  const choice = chosenEmbeddings(settings);
  return choice.ok && choice.chosen !== undefined ? modelKey(choice.chosen.of) : "";
}
/** What is wrong with a change of the settings, as a sentence. */
export function embeddingsProblem(config: EmbeddingsConfig | undefined): string | undefined {
  const choice = chosenEmbeddings(config);
  return choice.ok ? undefined : choice.problem;
}
