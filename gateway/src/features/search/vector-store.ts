/**
 * The vectors of an agent's indexed texts, eight bits for each number, and the exact search in them. Derived like everything in the index:
 * a text waits in `unembedded` until it has its vector, so that an interrupted pass goes on, and with another model all texts wait again. Must not know
 * how a vector is made.
 */
import type { Database } from "../../platform/sql.ts";
import type { Vector } from "../../ports/embeddings.ts";
import { type Near, Nearest } from "./nearest-texts.ts";
import { VectorCache } from "./vector-cache.ts";
import { cosine, DIMENSIONS, type Embedder } from "./static-embeddings.ts";

/** Texts that one transaction embeds. */
const EMBED_STEP = 500;
/** Vectors that are read at once. */
const SCAN_STEP = 4_000;
/** Vectors in memory: 60 MB, and 10 MB for the places of the texts, of the 128 MB that the platform gives. */
const MOST_CACHED = 200_000;
/** Places for texts that are added later. When they are taken, the next search reads the vectors again. */
const placesFor = (count: number): number => Math.min(MOST_CACHED, Math.ceil(count * 1.125) + 1_024);
type VectorRow = { doc: number; source: number; scale: number; bytes: ArrayBuffer };

export class VectorStore {
  readonly #storage: Database;
  #cache: VectorCache | undefined;
  #dots: WebAssembly.Module | undefined;

  constructor(storage: Database) {
    this.#storage = storage;
  }

  /** Makes the tables; runs in the transaction that makes those of the texts. */
  create(): void {
    const { sql } = this.#storage;
    this.#cache = undefined;
    for (const table of ["vectors", "unembedded"]) sql.exec(`DROP TABLE IF EXISTS ${table}`);
    sql.exec("CREATE TABLE vectors(doc INTEGER PRIMARY KEY, source INTEGER NOT NULL, scale REAL NOT NULL, bytes BLOB NOT NULL) STRICT");
    sql.exec("CREATE TABLE unembedded(doc INTEGER PRIMARY KEY) STRICT");
  }
  /** Texts that were added. */
  added(sourceId: number, fromOrd: number): void {
    this.#storage.sql.exec("INSERT INTO unembedded(doc) SELECT id FROM docs WHERE source = ? AND ord >= ?", sourceId, fromOrd);
  }
  /** Texts that are about to be removed: `some` selects them from `docs`. */
  removing(some: string, params: readonly SqlStorageValue[]): void {
    const { sql } = this.#storage;
    const gone = sql
      .exec<{ doc: number }>(`DELETE FROM vectors WHERE doc IN (SELECT id FROM docs ${some}) RETURNING doc`, ...params)
      .toArray();
    for (const { doc } of gone) this.#cache?.remove(doc);
    sql.exec(`DELETE FROM unembedded WHERE doc IN (SELECT id FROM docs ${some})`, ...params);
  }
  /** All texts wait again. */
  restart(): void {
    this.#cache = undefined;
    this.#storage.sql.exec("DELETE FROM vectors");
    this.#storage.sql.exec("INSERT OR IGNORE INTO unembedded(doc) SELECT id FROM docs");
  }
  isWaiting(): boolean {
    return this.#storage.sql.exec("SELECT 1 FROM unembedded LIMIT 1").toArray().length > 0;
  }
  /** Embeds one step of the texts that wait. True when none remain. */
  embedSome({ embed, dots }: Embedder): boolean {
    const { sql } = this.#storage;
    this.#dots = dots;
    if (!this.isWaiting()) return true;
    return this.#storage.transactionSync(() => {
      const waiting = sql
        .exec<{ id: number; source: number; text: string }>(
          "SELECT d.id, d.source, d.text FROM unembedded u JOIN docs d ON d.id = u.doc ORDER BY u.doc LIMIT ?",
          EMBED_STEP,
        )
        .toArray();
      for (const { id, source, text } of waiting) {
        const vector = embed(text);
        if (vector === undefined) continue;
        if (vector.bytes.length !== DIMENSIONS) throw new Error("the vector has another size than the index");
        const bytes = vector.bytes.slice().buffer;
        sql.exec("INSERT OR REPLACE INTO vectors(doc, source, scale, bytes) VALUES(?, ?, ?, ?)", id, source, vector.scale, bytes);
        if (this.#cache?.put(id, source, vector) === false) this.#cache = undefined;
      }
      sql.exec("DELETE FROM unembedded WHERE doc <= ?", waiting.at(-1)?.id ?? 0);
      return waiting.length < EMBED_STEP;
    });
  }
  /** How near these texts are. One without a vector is left out. */
  cosines(query: Vector, ids: readonly number[]): ReadonlyMap<number, number> {
    const cache = this.#cache;
    if (cache !== undefined) {
      const cosines = new Map<number, number>();
      for (const id of ids) {
        const near = cache.cosine(query, id);
        if (near !== undefined) cosines.set(id, near);
      }
      return cosines;
    }
    const rows = this.#storage.sql
      .exec<{ doc: number; scale: number; bytes: ArrayBuffer }>(
        "SELECT v.doc, v.scale, v.bytes FROM json_each(?) w JOIN vectors v ON v.doc = w.value",
        JSON.stringify(ids),
      )
      .toArray();
    return new Map(rows.map(({ doc, scale, bytes }) => [doc, cosine(query, bytesOf(bytes), scale)]));
  }
  /** The nearest texts of the sources that are searched, the nearest first. Every vector is compared. */
  nearest(query: Vector, isSearched: (source: number) => boolean, limit: number, least: number): readonly Near[] {
    this.#cache ??= this.#cached();
    if (this.#cache !== undefined) return this.#cache.nearest(query, isSearched, limit, least).best;
    const nearest = new Nearest(limit, least);
    this.#scan(({ doc, source, scale, bytes }) => {
      const near = cosine(query, bytesOf(bytes), scale);
      if (near > nearest.worst && isSearched(source)) nearest.offer(doc, near, source);
    });
    return nearest.best;
  }
  /** Reads the table again, because the memory may differ from it. */
  dropCache(): void {
    this.#cache = undefined;
  }
  /** Undefined: there are too many vectors to keep them in memory. */
  #cached(): VectorCache | undefined {
    const { count } = this.#storage.sql.exec<{ count: number }>("SELECT count(*) AS count FROM vectors").one();
    if (count > MOST_CACHED) return undefined;
    const cache = new VectorCache(DIMENSIONS, placesFor(count), this.#dots);
    this.#scan(({ doc, source, scale, bytes }) => cache.put(doc, source, { bytes: bytesOf(bytes), scale }));
    return cache;
  }
  #scan(each: (row: VectorRow) => void): void {
    for (let after = -1; ; ) {
      const rows = this.#storage.sql
        .exec<VectorRow>("SELECT doc, source, scale, bytes FROM vectors WHERE doc > ? ORDER BY doc LIMIT ?", after, SCAN_STEP)
        .toArray();
      for (const row of rows) each(row);
      const last = rows.at(-1);
      if (last === undefined || rows.length < SCAN_STEP) return;
      after = last.doc;
    }
  }
}
/** SQLite in Node gives a view. */
export const bytesOf = (blob: ArrayBuffer | Uint8Array): Int8Array =>
  blob instanceof ArrayBuffer ? new Int8Array(blob) : new Int8Array(blob.buffer, blob.byteOffset, blob.byteLength);
