/** Embeds texts with Workers AI, which Cloudflare binds. Its errors have no text of the service. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { afterTimeout, within } from "../../../protocol/runtime/within.ts";
import type { EmbedAnswer, EmbeddingAi, Embeddings } from "../ports/embeddings.ts";
import { failure, type Result } from "../ports/result.ts";
import { counted, estimatedTokens, invalidAnswer, vectorsOf } from "./answer.ts";
import type { ChosenEmbeddings } from "./choose.ts";

const UNAVAILABLE: EmbedAnswer = failure("embeddings.unavailable", "Workers AI could not embed the texts.");
const LATE: Result<never> = failure("embeddings.unavailable", "Workers AI did not answer in time.");
const UNANSWERED: EmbedAnswer = counted(LATE, "unknown");
/** The number at the start of an error's message, as Workers AI documents it. */
const ERROR_CODE = /\b(\d{4}):/;
/** Incomplete or too large request, invalid data. */
const TEXT_REFUSED = new Set(["3003", "3006", "5004", "5006"]);
/** No such model, or the account may not use it. */
const REFUSED = new Set(["3023", "3041", "3042", "5007", "5016", "5018", "5019"]);

function refusalOf(error: unknown): EmbedAnswer {
  const code = ERROR_CODE.exec(error instanceof Error ? error.message : "")?.[1] ?? "";
  if (TEXT_REFUSED.has(code)) return failure("embeddings.text_refused", "Workers AI does not take this text.");
  if (REFUSED.has(code)) return failure("embeddings.refused", "Workers AI has no such model, or the account may not use it.");
  return UNAVAILABLE;
}

export function workersAiEmbeddings({ of }: ChosenEmbeddings, ai: EmbeddingAi, limitMs: number = LIMITS.embeddingMs): Embeddings {
  const ask = async (texts: readonly string[]): Promise<EmbedAnswer> => {
    const answer = await ai.run(of.model, { text: texts });
    const data: unknown = typeof answer === "object" && answer !== null ? Reflect.get(answer, "data") : undefined;
    // Workers AI does not count them.
    const tokens = estimatedTokens(texts);
    if (!Array.isArray(data)) return counted(invalidAnswer("it has no vectors"), tokens);
    const vectors = vectorsOf(data, texts.length, of.dimensions);
    return vectors.ok ? { ok: true, value: { vectors: vectors.value, tokens } } : counted(vectors, tokens);
  };
  return {
    of,
    embed: (texts, signal) => {
      if (signal?.aborted === true) return Promise.resolve(LATE);
      const aborted = new Promise<EmbedAnswer>((resolve) => signal?.addEventListener("abort", () => resolve(UNANSWERED), { once: true }));
      const asked = ask(texts).catch(refusalOf);
      return within(afterTimeout, limitMs, Promise.race([asked, aborted]), () => UNANSWERED);
    },
  };
}
