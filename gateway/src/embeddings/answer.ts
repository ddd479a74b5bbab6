/** Reads what an embedding service answers: checks every number, and keeps eight bits of each. PURE. */
import { tokensOfText } from "../models/estimate.ts";
import type { EmbedAnswer, Vector } from "../ports/embeddings.ts";
import { failure, type Result } from "../ports/result.ts";

const invalid = (what: string): Result<never> =>
  failure("embeddings.invalid_answer", `The embedding service's answer is not valid: ${what}.`);

/** `given`: one list of numbers for each text, in order. */
export function vectorsOf(given: readonly unknown[], count: number, dimensions: number): Result<readonly Vector[]> {
  if (given.length !== count) return invalid(`it has ${given.length} vectors for ${count} texts`);
  const vectors: Vector[] = [];
  for (const numbers of given) {
    if (!Array.isArray(numbers)) return invalid("a vector is missing");
    if (numbers.length !== dimensions) return invalid(`a vector has ${numbers.length} numbers instead of ${dimensions}`);
    if (!numbers.every(isFiniteNumber)) return invalid("a vector has something that is no number");
    const vector = shortened(numbers);
    if (vector === undefined) return invalid("a vector has the length zero");
    vectors.push(vector);
  }
  return { ok: true, value: vectors };
}
const isFiniteNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

/** Eight bits for each number, and the scale that makes the length 1. Undefined: all numbers are zero. */
export function shortened(numbers: ArrayLike<number>): Vector | undefined {
  let most = 0;
  for (let index = 0; index < numbers.length; index++) most = Math.max(most, Math.abs(numbers[index] as number));
  if (most === 0) return undefined;
  const bytes = new Int8Array(numbers.length);
  let length = 0;
  for (let index = 0; index < numbers.length; index++) {
    const byte = Math.round(((numbers[index] as number) / most) * 127);
    bytes[index] = byte;
    length += byte * byte;
  }
  return { bytes, scale: 1 / Math.sqrt(length) };
}

/** The number of tokens that the service counted; undefined: it does not say, or nonsense. */
export function tokensIn(answer: unknown): number | undefined {
  if (typeof answer !== "object" || answer === null) return undefined;
  const usage: unknown = Reflect.get(answer, "usage");
  if (typeof usage !== "object" || usage === null) return undefined;
  const total: unknown = Reflect.get(usage, "total_tokens") ?? Reflect.get(usage, "prompt_tokens");
  return typeof total === "number" && Number.isSafeInteger(total) && total >= 0 ? total : undefined;
}
/** A failure that the service counts all the same. */
export const counted = (failed: Result<never>, used: number | "unknown"): EmbedAnswer => (failed.ok ? failed : { ...failed, used });
/** For a service that does not count. */
export const estimatedTokens = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + tokensOfText(text), 0);
export { invalid as invalidAnswer };
