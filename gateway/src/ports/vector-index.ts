/** A vector index beside the database: vectors of memories, by nearness. Types only. The rows stay the truth (rules LM20 to LM23). */
import type { EmbeddingModel, Vector } from "./embeddings.ts";
import type { MemoryScope } from "./long-term-memory.ts";
import type { MemoryNear } from "./search.ts";
import type { Result } from "./result.ts";

/** A memory with a vector of the model that is asked about. */
export interface VectorRow {
  readonly id: string;
  readonly agentId: string;
  readonly vector: Vector;
}
export interface VectorFound {
  readonly id: string;
  /** About its cosine. */
  readonly score: number;
}
/** Never throws. Changes are asynchronous: an answer may show vectors that were removed, and lack those that were put. */
export interface VectorIndex {
  /** Whether it can hold vectors of this size at all. */
  takes(dimensions: number): boolean;
  /** Whether questions with vectors of this size go to it, as far as is known: not to one that was made for another size. */
  isUsedFor(dimensions: number): boolean;
  /** Puts or replaces vectors, of any agents. At most `VECTORS_AT_ONCE`. */
  put(tenantId: string, of: EmbeddingModel, rows: readonly VectorRow[]): Promise<Result<void>>;
  /** At most `VECTORS_AT_ONCE`. Unknown ids are no mistake. */
  remove(ids: readonly string[]): Promise<Result<void>>;
  /** The nearest vectors of this scope and model, the nearest first; at most `VECTORS_FOUND`. Scores may be inexact. */
  nearest(scope: MemoryScope, near: Pick<MemoryNear, "model" | "vector">): Promise<Result<readonly VectorFound[]>>;
}
export const VECTORS_AT_ONCE = 100;
export const VECTORS_FOUND = 100;

/** What the rows know about the vector index. Never throws. */
export interface VectorIndexRows {
  /** Rows whose vector of this model must be sent, the oldest first. */
  unsent(tenantId: string, of: EmbeddingModel, limit: number): Promise<Result<readonly VectorRow[]>>;
  /** Notes, before they are sent, that the index may have vectors of these rows. Returns those that still exist. */
  sending(tenantId: string, ids: readonly string[]): Promise<Result<readonly string[]>>;
  /** The index has accepted them as one batch, which is looked for by its last row. */
  sent(tenantId: string, of: EmbeddingModel, ids: readonly string[]): Promise<Result<void>>;
  /** Batches that were accepted and not yet found. `probe` of undefined: its row is gone, or has another vector. */
  batches(
    tenantId: string,
    of: EmbeddingModel,
    limit: number,
  ): Promise<Result<readonly { readonly id: string; readonly probe: VectorRow | undefined }[]>>;
  /** The batch was found: its rows need no scan any more. */
  found(tenantId: string, batch: string): Promise<Result<void>>;
  /** These are sent again: one batch, every batch that was not found, or everything. */
  resend(tenantId: string, which: { readonly batch: string } | "not found" | "all"): Promise<Result<void>>;
  /** The oldest and the newest row that was found with a vector of this model. */
  samples(tenantId: string, of: EmbeddingModel): Promise<Result<readonly VectorRow[]>>;
  /** How many rows with a vector of this model are not found yet; of very many a part. */
  behind(tenantId: string, of: EmbeddingModel): Promise<Result<number>>;
  /** Vectors that must be removed, those that are due first. */
  removals(tenantId: string, limit: number): Promise<Result<readonly VectorRemoval[]>>;
  /** The index has accepted their removal. `again`: when they are removed once more (epoch ms), because a vector that was under way may arrive later. */
  removed(tenantId: string, removals: readonly VectorRemoval[], again: number): Promise<Result<void>>;
}
export interface VectorRemoval {
  readonly id: string;
  /** Epoch ms. */
  readonly dueAt: number;
  /** It was removed before. */
  readonly again: boolean;
}

/** Cloudflare's Vectorize, as far as memories need it. */
export interface VectorBinding {
  describe(): Promise<unknown>;
  query(
    vector: number[],
    options: { readonly topK: number; readonly namespace: string; readonly filter: Readonly<Record<string, string>> },
  ): Promise<unknown>;
  upsert(
    vectors: {
      readonly id: string;
      readonly values: number[];
      readonly namespace: string;
      readonly metadata: Readonly<Record<string, string>>;
    }[],
  ): Promise<unknown>;
  deleteByIds(ids: string[]): Promise<unknown>;
}
