/** The embedding service that the settings choose, or what is missing for it. */
import type { EmbeddingAi, Embeddings } from "../ports/embeddings.ts";
import { failure, type Result } from "../ports/result.ts";
import { type ChosenEmbeddings, NO_WORKERS_AI } from "./choose.ts";
import { type Fetch, openAiEmbeddings } from "./openai.ts";
import { workersAiEmbeddings } from "./workers-ai.ts";

export interface ServicePorts {
  /** Undefined: this deployment has no Workers AI. */
  readonly ai: EmbeddingAi | undefined;
  readonly fetch: Fetch;
  /** The key of OpenAI, or of the configured server. */
  readonly key: () => string | undefined;
}
export function embeddingService(chosen: ChosenEmbeddings, { ai, fetch, key }: ServicePorts): Result<Embeddings> {
  if (chosen.kind === "workers-ai")
    return ai === undefined ? failure("embeddings.refused", NO_WORKERS_AI) : { ok: true, value: workersAiEmbeddings(chosen, ai) };
  const own = key();
  if (own === undefined && chosen.needsKey)
    return failure("embeddings.refused", "No key is set for the embedding service.", "Set it: `gsv config set apiKeys.openai -`.");
  return { ok: true, value: openAiEmbeddings(chosen, own, fetch) };
}
