/**
 * The vectors that an embedding service made of rows of long-term memory, and the exact search in them. They come with the rows and go
 * with them. Only vectors of one model are compared. Where a vector index finds rows, it replaces the scan and nothing else: each row that it
 * names is compared here. Must not know how a vector is made.
 */
import type { Database } from "../../platform/sql.ts";
import { modelKey, type Vector } from "../../ports/embeddings.ts";
import type { MemoryChanged } from "../../ports/long-term-memory.ts";
import type { MemoryNear } from "../../ports/search.ts";
import { cosine } from "./static-embeddings.ts";
import { type Near, Nearest } from "./nearest-texts.ts";
import { bytesOf } from "./vector-store.ts";

/** Vectors that are read at once. */
const SCAN_STEP = 1_000;
type Row = { doc: number; source: number; scale: number; bytes: ArrayBuffer };

export class RowVectorStore {
  readonly #storage: Database;
  #isWhole = false;

  constructor(storage: Database) {
    this.#storage = storage;
  }

  /** Makes the table; runs in the transaction that makes those of the texts. */
  create(): void {
    const { sql } = this.#storage;
    sql.exec("DROP TABLE IF EXISTS row_vectors");
    sql.exec(
      "CREATE TABLE row_vectors(source INTEGER PRIMARY KEY, model TEXT NOT NULL, scale REAL NOT NULL, bytes BLOB NOT NULL, indexed INTEGER NOT NULL) STRICT",
    );
  }
  /** The table may be from before the vector index. */
  #upgrade(): void {
    if (this.#isWhole) return;
    const { sql } = this.#storage;
    const columns = sql.exec<{ name: string }>("SELECT name FROM pragma_table_info('row_vectors')").toArray();
    if (columns.every(({ name }) => name !== "indexed")) sql.exec("ALTER TABLE row_vectors ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0");
    this.#isWhole = true;
  }
  /** The vector of a row; undefined: it has none. One of another size than its model's counts as none. */
  put(source: number, given: MemoryChanged["vector"]): void {
    if (given === undefined || given.vector.bytes.length !== given.of.dimensions) return this.remove(source);
    const { of, vector, isIndexed } = given;
    this.#upgrade();
    this.#storage.sql.exec(
      "INSERT OR REPLACE INTO row_vectors(source, model, scale, bytes, indexed) VALUES(?, ?, ?, ?, ?)",
      source,
      modelKey(of),
      vector.scale,
      vector.bytes.slice().buffer,
      isIndexed ? 1 : 0,
    );
  }
  remove(source: number): void {
    this.#storage.sql.exec("DELETE FROM row_vectors WHERE source = ?", source);
  }

  /** The nearest rows of these sources, each by its first text. */
  nearest({ model, vector, found }: MemoryNear, isSearched: (source: number) => boolean, limit: number, least: number): readonly Near[] {
    this.#upgrade();
    const nearest = new Nearest(limit, least);
    const offer = (rows: readonly Row[]): void => {
      for (const { doc, source, scale, bytes } of rows)
        if (isSearched(source)) nearest.offer(doc, nearness(vector, bytesOf(bytes), scale), source);
    };
    if (found !== undefined) offer(this.#found(model, found));
    // The vector index has compared the others.
    const scanned = found === undefined ? "" : " AND v.indexed = 0";
    for (let after = -1; ; ) {
      const rows = this.#storage.sql
        .exec<Row>(
          `SELECT d.id AS doc, v.source, v.scale, v.bytes FROM row_vectors v JOIN docs d ON d.source = v.source AND d.ord = 0
           WHERE v.source > ? AND v.model = ?${scanned} ORDER BY v.source LIMIT ?`,
          after,
          model,
          SCAN_STEP,
        )
        .toArray();
      offer(rows);
      const last = rows.at(-1);
      if (last === undefined || rows.length < SCAN_STEP) return nearest.best;
      after = last.source;
    }
  }
  /** Those that are here. Ids of rows that are gone, or of others, name nothing. */
  #found(model: string, ids: readonly string[]): readonly Row[] {
    return this.#storage.sql
      .exec<Row>(
        `SELECT d.id AS doc, v.source, v.scale, v.bytes FROM sources s JOIN row_vectors v ON v.source = s.id JOIN docs d ON d.source = v.source AND d.ord = 0
         WHERE s.kind = 'memory' AND s.name IN (SELECT value FROM json_each(?)) AND v.model = ? AND v.indexed = 1 ORDER BY v.source`,
        JSON.stringify(ids),
        model,
      )
      .toArray();
  }
  /** How near the rows of these texts are, by text. A text without such a vector is left out. */
  cosines({ model, vector }: MemoryNear, docs: readonly number[]): ReadonlyMap<number, number> {
    const rows = this.#storage.sql
      .exec<Row>(
        `SELECT d.id AS doc, v.source, v.scale, v.bytes FROM json_each(?) w JOIN docs d ON d.id = w.value
         JOIN row_vectors v ON v.source = d.source WHERE v.model = ?`,
        JSON.stringify(docs),
        model,
      )
      .toArray();
    return new Map(rows.map(({ doc, scale, bytes }) => [doc, nearness(vector, bytesOf(bytes), scale)]));
  }
}
/** Vectors of one model have one size; a damaged one is near nothing. */
const nearness = (vector: Vector, bytes: Int8Array, scale: number): number =>
  vector.bytes.length === bytes.length ? cosine(vector, bytes, scale) : 0;
