/**
 * Cloudflare's Vectorize as it is documented, in memory: its limits, filters by metadata indexes, and changes that are accepted at once and
 * visible later. It is exact, which the service is not.
 */
import type { VectorBinding } from "../../src/ports/vector-index.ts";

const [MOST_DIMENSIONS, MOST_UPSERTED, MOST_FOUND, NAME_BYTES, METADATA_BYTES, FILTER_BYTES] = [1_536, 1_000, 100, 64, 10_240, 2_048];
type Given = Parameters<VectorBinding["upsert"]>[0][number];
type Kept = Given & { readonly indexed: Readonly<Record<string, string>> };
/** `refuse`: nothing happens. `lose`: it is accepted, and the answer is lost. `late`: the answer is lost, and it is accepted with the next `arrive`. */
export type Fault = "refuse" | "lose" | "late";

const bytes = (text: string): number => new TextEncoder().encode(text).length;
function must(isSo: boolean, code: number, message: string): void {
  if (!isSo) throw new Error(`VECTOR_ERROR (code = ${code}): ${message}`);
}

export class FakeVectorize implements VectorBinding {
  /** What queries see. */
  readonly visible = new Map<string, Kept>();
  readonly calls: string[] = [];
  fault: (call: "describe" | "query" | "upsert" | "deleteByIds") => Fault | undefined = () => undefined;
  #accepted: (() => void)[] = [];
  #late: (() => void)[] = [];
  #dimensions: number;
  readonly #metadataIndexes: readonly string[];

  constructor(dimensions: number, metadataIndexes: readonly string[] = ["agent", "model"]) {
    must(dimensions <= MOST_DIMENSIONS, 40001, "too many dimensions");
    this.#dimensions = dimensions;
    this.#metadataIndexes = metadataIndexes;
  }

  /** Makes accepted changes visible, in their order. */
  settle(most: number = Number.POSITIVE_INFINITY): void {
    for (const change of this.#accepted.splice(0, most)) change();
  }
  /** What was under way is accepted. */
  arrive(): void {
    this.#accepted.push(...this.#late.splice(0));
  }
  /** As after it was deleted and made new. */
  madeNew(dimensions: number): void {
    this.clear();
    this.#dimensions = dimensions;
  }
  clear(): void {
    this.visible.clear();
    this.#accepted = [];
  }

  async describe(): Promise<unknown> {
    if (this.fault("describe") !== undefined) throw new Error("Network connection lost.");
    return { dimensions: this.#dimensions, vectorCount: this.visible.size };
  }
  async upsert(vectors: Given[]): Promise<unknown> {
    return this.#change("upsert", () => {
      must(vectors.length > 0 && vectors.length <= MOST_UPSERTED, 40003, "invalid batch");
      for (const { id, values, namespace, metadata } of vectors) {
        must(values.length === this.#dimensions, 40012, "bad vector");
        must(values.every(Number.isFinite), 40004, "invalid values");
        must(bytes(id) > 0 && bytes(id) <= NAME_BYTES, 40008, "id too long");
        must(bytes(namespace) > 0 && bytes(namespace) <= NAME_BYTES, 40009, "namespace too long");
        must(bytes(JSON.stringify(metadata)) <= METADATA_BYTES, 40010, "metadata too large");
        must(
          Object.keys(metadata).every((key) => key !== "" && !/[."]|^\$/.test(key)),
          40011,
          "invalid metadata key",
        );
      }
      const kept = vectors.map((vector): Kept => {
        const indexed = Object.entries(vector.metadata).filter(([key]) => this.#metadataIndexes.includes(key));
        return { ...vector, values: [...vector.values].map(Math.fround), indexed: Object.fromEntries(indexed) };
      });
      return () => {
        for (const vector of kept) this.visible.set(vector.id, vector);
      };
    });
  }
  async deleteByIds(ids: string[]): Promise<unknown> {
    const gone = [...ids];
    return this.#change("deleteByIds", () => () => {
      for (const id of gone) this.visible.delete(id);
    });
  }
  async query(vector: number[], { topK, namespace, filter }: Parameters<VectorBinding["query"]>[1]): Promise<unknown> {
    this.calls.push("query");
    if (this.fault("query") !== undefined) throw new Error("Network connection lost.");
    must(vector.length === this.#dimensions, 40006, "bad vector");
    must(topK >= 1 && topK <= MOST_FOUND, 40007, "invalid topK");
    must(bytes(JSON.stringify(filter)) <= FILTER_BYTES, 40013, "filter too large");
    const matches = [...this.visible.values()]
      .filter((kept) => kept.namespace === namespace)
      // Without a metadata index nothing matches.
      .filter(({ indexed }) => Object.entries(filter).every(([key, value]) => indexed[key] === value))
      .map(({ id, values }) => ({ id, score: cosine(vector, values) }))
      .sort((one, other) => other.score - one.score)
      .slice(0, topK);
    return { count: matches.length, matches };
  }

  #change(call: "upsert" | "deleteByIds", check: () => () => void): { mutationId: string } {
    this.calls.push(call);
    const fault = this.fault(call);
    if (fault === "refuse") throw new Error("Network connection lost.");
    const change = check();
    (fault === "late" ? this.#late : this.#accepted).push(change);
    if (fault !== undefined) throw new Error("Network connection lost.");
    return { mutationId: String(this.calls.length) };
  }
}
function cosine(one: readonly number[], other: readonly number[]): number {
  const dot = (a: readonly number[], b: readonly number[]): number => a.reduce((sum, value, index) => sum + value * (b[index] ?? 0), 0);
  return dot(one, other) / Math.sqrt(dot(one, one) * dot(other, other));
}
