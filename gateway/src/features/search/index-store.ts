/**
 * An agent's search index: its sources, their texts and the vectors of these. All tables are derived: they can be dropped at any time,
 * and the next search rebuilds them. Each call is one bounded transaction. Must not know how a source is read.
 */
import type { Database } from "../../platform/sql.ts";
import type { MemoryChanged } from "../../ports/long-term-memory.ts";
import type { SearchPlace } from "../../ports/search.ts";
import { type Find, IndexQuery } from "./index-query.ts";
import { RowVectorStore } from "./row-vector-store.ts";
import { type SourceChange, SourceStore } from "./source-store.ts";
import type { Embedder } from "./static-embeddings.ts";
import { type Doc, TextStore } from "./text-store.ts";
import { VectorStore } from "./vector-store.ts";
import { WordStore } from "./word-store.ts";

/** When this number changes, all tables are dropped and rebuilt. */
const SCHEMA = 9;
/** Rows that one transaction removes. */
const REMOVE_STEP = 500;
/** `docs` of undefined: the memory is not found any more. */
export interface MemoryChange extends Pick<MemoryChanged, "id" | "vector"> {
  readonly docs: readonly Doc[] | undefined;
}

export class IndexStore {
  readonly sources: SourceStore;
  readonly #storage: Database;
  readonly #texts: TextStore;
  readonly #vectors: VectorStore;
  readonly #rowVectors: RowVectorStore;
  readonly #words: WordStore;
  #isPrepared = false;

  /** `wordPlaces`: word-places.wasm. Undefined: words are looked for in JavaScript. */
  constructor(storage: Database, wordPlaces?: WebAssembly.Module) {
    this.#storage = storage;
    this.sources = new SourceStore(storage);
    this.#vectors = new VectorStore(storage);
    this.#rowVectors = new RowVectorStore(storage);
    this.#words = new WordStore(storage, wordPlaces);
    this.#texts = new TextStore(storage, this.#vectors, this.#words);
  }

  /** Creates the tables; first drops tables of another version. */
  prepare(agentId: string): void {
    if (this.#isPrepared) return;
    this.#create(agentId);
    this.#isPrepared = true;
  }
  #create(agentId: string): void {
    const { sql } = this.#storage;
    this.#transaction(() => {
      sql.exec("CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID");
      if (this.#meta("schema") === String(SCHEMA)) return;
      this.sources.create();
      this.#texts.create();
      this.#vectors.create();
      this.#rowVectors.create();
      for (const [name, value] of [
        ["memories", "0"],
        ["schema", String(SCHEMA)],
        ["agent", agentId],
      ] as const)
        this.#setMeta(name, value);
    });
  }
  /** The agent of this index; undefined before the first search. */
  agent(): string | undefined {
    const made = this.#storage.sql.exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'").toArray().length > 0;
    return made ? this.#meta("agent") : undefined;
  }
  #meta(name: string): string | undefined {
    return this.#storage.sql.exec<{ value: string }>("SELECT value FROM meta WHERE name = ?", name).toArray()[0]?.value;
  }

  #setMeta(name: string, value: string): void {
    this.#storage.sql.exec(
      "INSERT INTO meta(name, value) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
      name,
      value,
    );
  }

  /** Drops what is cached in memory when the transaction fails, because the tables do not have it. */
  #transaction<T>(work: () => T): T {
    try {
      return this.#storage.transactionSync(work);
    } catch (error) {
      this.#vectors.dropCache();
      this.#words.drop();
      throw error;
    }
  }

  // ---------------------------------------------------------------- memories

  /** Memories may be removed until this time (epoch ms); undefined: no removal is under way. */
  memoriesExpected(): number | undefined {
    const until = this.#meta("memories-expected");
    return until === undefined ? undefined : Number(until);
  }
  expectMemories(until: number | undefined): void {
    if (until === undefined) this.#storage.sql.exec("DELETE FROM meta WHERE name = 'memories-expected'");
    else this.#setMeta("memories-expected", String(until));
  }
  /** The last change of a memory that is indexed. */
  memoriesSeen(): number {
    return Number(this.#meta("memories") ?? 0);
  }
  /**
   * Applies changes of memories: `docs` of undefined removes a memory with everything that was made of it, down to the words in FTS5's
   * own tables. One transaction. False: others have applied changes since `from`, so these may be old, and nothing was applied.
   */
  memories(changes: readonly MemoryChange[], { from, to }: { readonly from: number; readonly to: number }): boolean {
    return this.#transaction(() => {
      if (this.memoriesSeen() !== from) return false;
      const removed: number[] = [];
      for (const { id, docs, vector } of changes) {
        const known = this.sources.one("memory", id);
        if (docs === undefined) {
          if (known !== undefined) removed.push(known.id);
        } else if (known !== undefined) this.#rowVectors.put(known.id, vector);
        else {
          const source = this.sources.addMemory(id);
          this.#texts.insert(source, docs);
          this.#rowVectors.put(source, vector);
        }
      }
      if (removed.length > 0) {
        this.#texts.erasing(() => {
          for (const source of removed) {
            this.#texts.removeAll(source);
            this.#rowVectors.remove(source);
            this.sources.remove(source);
          }
        });
      }
      this.#setMeta("memories", String(to));
      return true;
    });
  }

  // ---------------------------------------------------------------- other sources

  /** Adds texts to a source and records its progress, in one transaction. */
  add(sourceId: number, docs: readonly Doc[], change: SourceChange): void {
    this.#transaction(() => {
      this.#texts.insert(sourceId, docs);
      this.sources.change(sourceId, change);
    });
  }
  /** Replaces all texts of a source. For sources that fit one transaction. */
  replace(sourceId: number, docs: readonly Doc[], change: SourceChange): void {
    this.#transaction(() => {
      if (this.#texts.has(sourceId)) this.#texts.erasing(() => this.#texts.removeAll(sourceId));
      this.#texts.insert(sourceId, docs);
      this.sources.change(sourceId, change);
    });
  }
  /** Removes one step of a source's texts with a position below `below`. True when none remain. */
  removeBelow(sourceId: number, below: number): boolean {
    return this.#transaction(() => this.#texts.erasing(() => this.#texts.remove(sourceId, below, REMOVE_STEP)) < REMOVE_STEP);
  }
  /** Removes one step of a deleted source. True when nothing of any remains. */
  removeGone(): boolean {
    const gone = this.sources.gone();
    if (gone === undefined) return true;
    this.#transaction(() => {
      const isEmpty = this.#texts.erasing(() => this.#texts.remove(gone, Number.MAX_SAFE_INTEGER, REMOVE_STEP) < REMOVE_STEP);
      if (isEmpty) this.sources.remove(gone);
    });
    return false;
  }

  // ---------------------------------------------------------------- vectors and queries

  /** Embeds one step of the texts. With another model than before, all texts are embedded again. True when none wait. */
  embedSome(embedder: Embedder): boolean {
    if (this.#meta("vectors") !== embedder.model)
      this.#transaction(() => {
        this.#vectors.restart();
        this.#setMeta("vectors", embedder.model);
      });
    try {
      return this.#vectors.embedSome(embedder);
    } catch (error) {
      this.#vectors.dropCache();
      throw error;
    }
  }
  /** Texts wait for their vectors, and an embedder was there before. */
  isEmbedding(): boolean {
    return this.#meta("vectors") !== undefined && this.#vectors.isWaiting();
  }
  find(request: Find): SearchPlace[] {
    // In one transaction: else the platform begins and ends one for each question of many.
    return this.#storage.transactionSync(() => new IndexQuery(this.#storage, this.#words, this.#vectors, this.#rowVectors).find(request));
  }
}
