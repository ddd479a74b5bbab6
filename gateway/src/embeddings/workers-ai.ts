/** Embeds texts with Workers AI, which Cloudflare binds. Its errors have no text of the service. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { afterTimeout, within } from "../../../protocol/runtime/within.ts";
import { tokensOfText } from "../models/estimate.ts";
import type { Embedded, EmbeddingAi, Embeddings } from "../ports/embeddings.ts";
import { failure, type Result } from "../ports/result.ts";
import { invalidAnswer, vectorsOf } from "./answer.ts";
import type { ChosenEmbeddings } from "./choose.ts";

const UNAVAILABLE: Result<never> = failure("embeddings.unavailable", "Workers AI could not embed the texts.");
const LATE: Result<never> = failure("embeddings.unavailable", "Workers AI did not answer in time.");

export function workersAiEmbeddings({ of }: ChosenEmbeddings, ai: EmbeddingAi, limitMs: number = LIMITS.embeddingMs): Embeddings {
  const ask = async (texts: readonly string[]): Promise<Result<Embedded>> => {
    const answer = await ai.run(of.model, { text: texts });
    const data: unknown = typeof answer === "object" && answer !== null ? Reflect.get(answer, "data") : undefined;
    if (!Array.isArray(data)) return invalidAnswer("it has no vectors");
    const vectors = vectorsOf(data, texts.length, of.dimensions);
    if (!vectors.ok) return vectors;
    // Workers AI does not count them.
    return { ok: true, value: { vectors: vectors.value, tokens: texts.reduce((sum, text) => sum + tokensOfText(text), 0) } };
  };
  return {
    of,
    embed: (texts, signal) => {
      if (signal?.aborted === true) return Promise.resolve(LATE);
      const aborted = new Promise<Result<never>>((resolve) => signal?.addEventListener("abort", () => resolve(LATE), { once: true }));
      const asked = ask(texts).catch(() => UNAVAILABLE);
      return within(afterTimeout, limitMs, Promise.race([asked, aborted]), () => LATE);
    },
  };
}
