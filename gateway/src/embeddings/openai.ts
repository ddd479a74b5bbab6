/** Embeds texts with OpenAI or a server that speaks its wire. Must not put a key, a text or the server's words into an error. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { EmbedAnswer, Embeddings, Vector } from "../ports/embeddings.ts";
import { failure, type Result } from "../ports/result.ts";
import { readBounded } from "../storage/read-bounded.ts";
import { counted, estimatedTokens, invalidAnswer, tokensIn, vectorsOf } from "./answer.ts";
import type { ChosenEmbeddings } from "./choose.ts";

export type Fetch = (input: string, init: RequestInit) => Promise<Response>;
/** A number as text, with its comma, at most. */
const NUMBER_BYTES = 28;
const ANSWER_BYTES = 65_536;
const LATE = "The embedding service did not answer in time.";

/** `key` of undefined: the server needs none. */
export function openAiEmbeddings(
  { of, url, shortened }: ChosenEmbeddings,
  key: string | undefined,
  fetch: Fetch,
  limitMs: number = LIMITS.embeddingMs,
): Embeddings {
  const ask = async (texts: readonly string[], signal: AbortSignal, progress: { hasAnswered: boolean }): Promise<EmbedAnswer> => {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        Accept: "application/json",
        ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({
        model: of.model,
        input: texts,
        encoding_format: "float",
        ...(shortened ? { dimensions: of.dimensions } : {}),
      }),
      redirect: "manual",
      signal,
    });
    if (!response.ok) {
      // The refusal is in the status, also when its text breaks off.
      await response.body?.cancel().catch(() => undefined);
      return refusalOf(response.status);
    }
    progress.hasAnswered = true;
    const body = await readBounded(response, ANSWER_BYTES + texts.length * of.dimensions * NUMBER_BYTES);
    return body === undefined ? counted(invalidAnswer("it is too long"), estimatedTokens(texts)) : read(body, texts, of.dimensions);
  };
  return {
    of,
    async embed(texts, outer) {
      if (outer?.aborted === true) return failure("embeddings.unavailable", LATE);
      const timer = new AbortController();
      const late = setTimeout(() => timer.abort(), limitMs);
      const signal = outer === undefined ? timer.signal : AbortSignal.any([outer, timer.signal]);
      const progress = { hasAnswered: false };
      try {
        return await ask(texts, signal, progress);
      } catch {
        if (signal.aborted) return counted(failure("embeddings.unavailable", LATE), "unknown");
        return progress.hasAnswered
          ? counted(failure("embeddings.unavailable", "The answer of the embedding service broke off."), "unknown")
          : failure("embeddings.unavailable", "The embedding service could not be reached.");
      } finally {
        clearTimeout(late);
      }
    },
  };
}

function read(body: string, texts: readonly string[], dimensions: number): EmbedAnswer {
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch {
    return counted(invalidAnswer("it is no JSON"), estimatedTokens(texts));
  }
  const tokens = tokensIn(answer) ?? estimatedTokens(texts);
  const vectors = vectorsIn(answer, texts, dimensions);
  return vectors.ok ? { ok: true, value: { vectors: vectors.value, tokens } } : counted(vectors, tokens);
}
function vectorsIn(answer: unknown, texts: readonly string[], dimensions: number): Result<readonly Vector[]> {
  if (typeof answer !== "object" || answer === null) return invalidAnswer("it is no object");
  const data: unknown = Reflect.get(answer, "data");
  if (!Array.isArray(data)) return invalidAnswer("it has no vectors");
  const given: unknown[] = new Array(texts.length).fill(undefined);
  for (const [position, entry] of data.entries()) {
    if (typeof entry !== "object" || entry === null) return invalidAnswer("a vector is missing");
    const index: unknown = Reflect.get(entry, "index") ?? position;
    if (typeof index !== "number" || !Number.isInteger(index) || index < 0 || index >= texts.length || given[index] !== undefined)
      return invalidAnswer("a vector belongs to no text");
    given[index] = Reflect.get(entry, "embedding");
  }
  return vectorsOf(given, texts.length, dimensions);
}

function refusalOf(status: number): Result<never> {
  if (status === 401 || status === 403)
    return failure("embeddings.refused", "The embedding service refused the key.", "Set it: `gsv config set apiKeys.openai -`.");
  if (status === 404 || status === 405 || (status >= 300 && status < 400))
    return failure("embeddings.refused", "The embedding service has no such address or model.");
  if (status === 402) return failure("embeddings.refused", "The embedding service wants to be paid first.");
  if (status === 400 || status === 413 || status === 422)
    return failure("embeddings.text_refused", "The embedding service does not take this text.");
  if (status === 408 || status === 429) return failure("embeddings.unavailable", "The embedding service is overloaded.");
  return failure("embeddings.unavailable", `The embedding service answered with status ${status}.`);
}
