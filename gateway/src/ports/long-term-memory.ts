/** The long-term memory of agents (gateway/spec/memory.md): its rows, who keeps them, and what sessions and clients may ask. Types only. */
import type { MemoryAuthor, SearchHit } from "../../../protocol/gen/types.ts";
import type { Result } from "./result.ts";
import type { EmbeddingModel, Vector } from "./embeddings.ts";
import type { Taint } from "./taint.ts";

/** Whose memory it is. It comes from the identity of the caller, never from a model's arguments (rule LM3). */
export interface MemoryScope {
  readonly tenantId: string;
  readonly agentId: string;
}

export interface NewMemory {
  /** A ULID. */
  readonly id: string;
  readonly content: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly author: MemoryAuthor;
  /** What the conversation had read. */
  readonly taint: Taint;
  /** The key of the conversation; empty: a client wrote the memory itself. */
  readonly sessionKey: string;
  /** With the conversation it names the memory: a repeated call makes one row. */
  readonly callId: string;
  /** What an earlier version would have stored as `callId`. A row with it that is the same otherwise is this memory. */
  readonly earlierCallId?: string;
  readonly supersedes?: string;
  /** Epoch ms. */
  readonly createdAt: number;
}
export interface StoredMemory extends NewMemory {
  readonly supersededBy?: string;
  /** The state at the embedding service that was asked last. Absent: none was. */
  readonly embedding?: { readonly state: "pending" | "done" | "refused"; readonly of?: EmbeddingModel };
}
export interface MemoryStored {
  readonly memory: StoredMemory;
  /** False: an earlier call made the row. */
  readonly isNew: boolean;
  /** The older memory was taken out of recall. */
  readonly superseded: boolean;
}
/** A memory that was written, superseded or removed. */
export interface MemoryChanged {
  /** Rises with every change. */
  readonly seq: number;
  readonly id: string;
  /** Absent: it was removed. */
  readonly memory?: StoredMemory;
  /** The vector of an embedding service. `isIndexed`: the vector index finds it. */
  readonly vector?: { readonly of: EmbeddingModel; readonly vector: Vector; readonly isIndexed: boolean };
}
export interface MemoryPage {
  readonly memories: readonly StoredMemory[];
  readonly more: boolean;
}

/** The rows. Every method sees the rows of one scope only. Never throws. */
export interface LongTermMemory {
  /**
   * Fails with `memory.unknown`, `memory.too_large` or `memory.full`, and then writes nothing. `awaitsVector`: an embedding service
   * will be asked for its vector.
   */
  store(scope: MemoryScope, memory: NewMemory, awaitsVector?: boolean): Promise<Result<MemoryStored>>;
  /** Those that exist, by id. */
  get(scope: MemoryScope, ids: readonly string[]): Promise<Result<ReadonlyMap<string, StoredMemory>>>;
  /** The newest first. */
  list(
    scope: MemoryScope,
    asked: { readonly before?: string; readonly superseded: boolean; readonly limit: number },
  ): Promise<Result<MemoryPage>>;
  /** How many existed. */
  remove(scope: MemoryScope, ids: readonly string[]): Promise<Result<number>>;
  /** Another text after every write. Undefined: others write, too. */
  state(): string | undefined;
  /** The changes after a number, each memory once, in order. */
  changes(scope: MemoryScope, afterSeq: number, limit: number): Promise<Result<readonly MemoryChanged[]>>;
}

/** The vectors of an embedding service, which are in the rows (rules LM13 to LM18). Never throws. */
export interface MemoryVectors {
  /** Every row that has no vector of this model waits for one. */
  awaitVectors(tenantId: string, of: EmbeddingModel): Promise<Result<void>>;
  /** The oldest rows that wait, all of one agent. Undefined: none wait. */
  waiting(
    tenantId: string,
    asked: { readonly withoutAgents: readonly string[]; readonly limit: number },
  ): Promise<Result<{ readonly agentId: string; readonly texts: readonly WaitingText[] } | undefined>>;
  /** Keeps vectors of rows that still exist. */
  keepVectors(
    scope: MemoryScope,
    of: EmbeddingModel,
    vectors: readonly { readonly id: string; readonly vector: Vector }[],
  ): Promise<Result<void>>;
  /** The service does not take the text of this row. */
  noVector(scope: MemoryScope, of: EmbeddingModel, id: string): Promise<Result<void>>;
  /** Whether a recall of the agent can find a row by a vector of this model. */
  hasVectors(scope: MemoryScope, of: EmbeddingModel): Promise<Result<boolean>>;
  countVectors(tenantId: string): Promise<Result<{ readonly waiting: number; readonly refused: number }>>;
}
export interface WaitingText {
  readonly id: string;
  readonly content: string;
}

/** A fact that an agent's tool writes down. */
export interface Remembering {
  readonly agentId: string;
  readonly text: string;
  readonly supersedes?: string;
  readonly taint: Taint;
  readonly sessionKey: string;
  readonly callId: string;
  readonly now: number;
}
export interface Remembered {
  readonly id: string;
  readonly isNew: boolean;
  readonly superseded: boolean;
}
export interface RecallInput {
  readonly agentId: string;
  readonly query: string;
  /** Absent: the agent's `top_k`, else 10. */
  readonly limit?: number;
  readonly snippetChars: number;
}
/** A hit in a file with its label or in a transcript, or a row with its label. */
export type RecallHit =
  | { readonly kind: "text"; readonly hit: SearchHit; readonly taint?: Taint }
  | {
      readonly kind: "memory";
      readonly id: string;
      readonly text: string;
      readonly at: number;
      readonly taint: Taint;
      readonly score: number;
    };
export interface Recalled {
  readonly hits: readonly RecallHit[];
  readonly notes: readonly string[];
}
/** For sessions, whose tools ask it. */
export interface MemoryPort {
  remember(input: Remembering): Promise<Result<Remembered>>;
  recall(input: RecallInput): Promise<Result<Recalled>>;
}
