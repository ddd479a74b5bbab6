/**
 * Vectorize as a vector index (rules LM20 to LM22), within the limits that Cloudflare documents: 1,536 dimensions, 64 bytes for a namespace
 * and for what a filter compares, and 100 answers without values and metadata. Its errors have no text of the service.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { type After, afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import { type EmbeddingModel, modelKey, type Vector } from "../../ports/embeddings.ts";
import type { MemoryScope } from "../../ports/long-term-memory.ts";
import { failure, type Result, succeed } from "../../ports/result.ts";
import type { MemoryNear } from "../../ports/search.ts";
import { type VectorBinding, type VectorFound, type VectorIndex, type VectorRow, VECTORS_FOUND } from "../../ports/vector-index.ts";

const MOST_DIMENSIONS = 1_536;
/** Bytes of a namespace, and of the text that a metadata index compares. */
const MOST_BYTES = 64;
const DIGEST_CHARS = 48;
const UNAVAILABLE = failure("storage.failed", "The vector index did not answer.");
const wrongSize = (dimensions: number) =>
  failure(
    "embeddings.refused",
    `The vector index is not for vectors of ${dimensions} numbers. Make one with \`--dimensions=${dimensions}\` and bind it, or choose another model.`,
  );
const numbersOf = ({ bytes, scale }: Vector): number[] => Array.from(bytes, (byte) => byte * scale);

export class Vectorize implements VectorIndex {
  readonly #binding: VectorBinding;
  readonly #sha256: (text: string) => Promise<string>;
  readonly #after: After;
  /** The numbers of the index's vectors, as it said last. Undefined: it was not asked, or failed since, and may have been made new. */
  #dimensions: number | undefined;

  constructor(binding: VectorBinding, sha256: (text: string) => Promise<string>, after: After = afterTimeout) {
    this.#binding = binding;
    this.#sha256 = sha256;
    this.#after = after;
  }

  takes(dimensions: number): boolean {
    return dimensions <= MOST_DIMENSIONS;
  }
  isUsedFor(dimensions: number): boolean {
    return this.takes(dimensions) && (this.#dimensions ?? dimensions) === dimensions;
  }
  async put(tenantId: string, of: EmbeddingModel, rows: readonly VectorRow[]): Promise<Result<void>> {
    const { dimensions } = of;
    if (!this.takes(dimensions) || rows.some(({ vector }) => vector.bytes.length !== dimensions)) return wrongSize(dimensions);
    return this.#asked(LIMITS.embeddingMs, dimensions, async () => {
      const [namespace, model] = [await this.#short(tenantId), await this.#short(modelKey(of))];
      const vectors = rows.map(async ({ id, agentId, vector }) => ({
        id,
        values: numbersOf(vector),
        namespace,
        metadata: { agent: await this.#short(agentId), model },
      }));
      await this.#binding.upsert(await Promise.all(vectors));
    });
  }
  remove(ids: readonly string[]): Promise<Result<void>> {
    return this.#asked(LIMITS.embeddingMs, undefined, async () => {
      await this.#binding.deleteByIds([...ids]);
    });
  }
  async nearest(
    { tenantId, agentId }: MemoryScope,
    { model, vector }: Pick<MemoryNear, "model" | "vector">,
  ): Promise<Result<readonly VectorFound[]>> {
    return this.#asked(LIMITS.embeddingQuestionMs, vector.bytes.length, async () => {
      const filter = { agent: await this.#short(agentId), model: await this.#short(model) };
      const namespace = await this.#short(tenantId);
      return foundIn(await this.#binding.query(numbersOf(vector), { topK: VECTORS_FOUND, namespace, filter }));
    });
  }
  /** `dimensions`: of the vectors that are sent. Undefined: none are. */
  async #asked<T>(ms: number, dimensions: number | undefined, ask: () => Promise<T>): Promise<Result<T>> {
    const work = async (): Promise<Result<T>> => {
      if (dimensions !== undefined && !(await this.#has(dimensions))) return wrongSize(dimensions);
      return succeed(await ask());
    };
    const answer = work().catch(() => {
      this.#dimensions = undefined;
      return UNAVAILABLE;
    });
    return within(this.#after, ms, answer, () => UNAVAILABLE);
  }
  /** Whether the index is for vectors of this size. One for another size is asked again each time: it may have been made new. */
  async #has(dimensions: number): Promise<boolean> {
    if (this.#dimensions !== dimensions) this.#dimensions = dimensionsIn(await this.#binding.describe());
    return this.#dimensions === dimensions;
  }
  /** Names that are too long are compared by their digest. */
  async #short(name: string): Promise<string> {
    return utf8Bytes(name) <= MOST_BYTES ? name : `sha256:${(await this.#sha256(name)).slice(0, DIGEST_CHARS)}`;
  }
}
/** Throws for an answer of another form, as below. */
function dimensionsIn(answer: unknown): number {
  const dimensions: unknown = typeof answer === "object" && answer !== null ? Reflect.get(answer, "dimensions") : undefined;
  if (typeof dimensions !== "number") throw new Error("the answer has no dimensions");
  return dimensions;
}
function foundIn(answer: unknown): readonly VectorFound[] {
  const matches: unknown = typeof answer === "object" && answer !== null ? Reflect.get(answer, "matches") : undefined;
  if (!Array.isArray(matches)) throw new Error("the answer has no matches");
  return matches.slice(0, VECTORS_FOUND).map((match: unknown) => {
    const [id, score]: readonly unknown[] =
      typeof match === "object" && match !== null ? [Reflect.get(match, "id"), Reflect.get(match, "score")] : [];
    if (typeof id !== "string" || typeof score !== "number") throw new Error("a match has no id or no score");
    return { id, score };
  });
}
