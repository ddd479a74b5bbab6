/**
 * The texts of an agent's search index, in which SQLite's FTS5 finds what is exact and beginnings of words. Must not know their sources. Runs in
 * the caller's transactions.
 */
import type { Database } from "../../platform/sql.ts";
import { segment } from "./text.ts";
import type { VectorStore } from "./vector-store.ts";
import type { WordStore } from "./word-store.ts";

/** SQLite's "no limit". */
const ALL = -1;

export interface Doc {
  readonly position: number;
  readonly role?: string;
  readonly at: number;
  readonly text: string;
  /** The words of its date. */
  readonly day?: string;
}

export class TextStore {
  readonly #storage: Database;
  readonly #vectors: VectorStore;
  readonly #words: WordStore;

  constructor(storage: Database, vectors: VectorStore, words: WordStore) {
    this.#storage = storage;
    this.#vectors = vectors;
    this.#words = words;
  }

  /** Makes the tables; first drops those of another version. */
  create(): void {
    const { sql } = this.#storage;
    for (const table of ["places", "stems", "docs"]) sql.exec(`DROP TABLE IF EXISTS ${table}`);
    this.#words.create();
    sql.exec(
      "CREATE TABLE docs(id INTEGER PRIMARY KEY, source INTEGER NOT NULL, position INTEGER NOT NULL, ord INTEGER NOT NULL, role TEXT, at INTEGER NOT NULL, text TEXT NOT NULL, day TEXT NOT NULL) STRICT",
    );
    sql.exec("CREATE INDEX docs_of_source ON docs(source, position)");
    sql.exec("CREATE INDEX docs_in_order ON docs(source, ord)");
    // It reads its texts from `docs`.
    sql.exec(
      "CREATE VIRTUAL TABLE places USING fts5(text, day, content = 'docs', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2')",
    );
  }
  /** Adds texts of a source. One table after the other: FTS5 flushes its pending words whenever a statement writes to another table. */
  insert(sourceId: number, docs: readonly Doc[]): void {
    const { sql } = this.#storage;
    if (docs.length === 0) return;
    const from = sql.exec<{ next: number }>("SELECT coalesce(max(ord) + 1, 0) AS next FROM docs WHERE source = ?", sourceId).one().next;
    // Asking for the number of each new text takes longer than the rest of its insertion.
    const firstId = sql.exec<{ next: number }>("SELECT coalesce(max(id) + 1, 1) AS next FROM docs").one().next;
    for (const [index, { position, role, at, text, day = "" }] of docs.entries()) {
      const [id, ord, segmented] = [firstId + index, from + index, segment(text)];
      sql.exec(
        "INSERT INTO docs(id, source, position, ord, role, at, text, day) VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
        id,
        sourceId,
        position,
        ord,
        role ?? null,
        at,
        segmented,
        day,
      );
      this.#words.add({ id, source: sourceId, ord, at }, segmented, day);
    }
    sql.exec("INSERT INTO places(rowid, text, day) SELECT id, text, day FROM docs WHERE source = ? AND ord >= ?", sourceId, from);
    this.#vectors.added(sourceId, from);
  }
  has(sourceId: number): boolean {
    return this.#storage.sql.exec("SELECT 1 FROM docs WHERE source = ? LIMIT 1", sourceId).toArray().length > 0;
  }
  /** Removes up to `most` texts of a source with a position below `below`. Returns their number. */
  remove(sourceId: number, below: number, most: number): number {
    const { sql } = this.#storage;
    const some = "WHERE id IN (SELECT id FROM docs WHERE source = ? AND position < ? ORDER BY position, id LIMIT ?)";
    const params = [sourceId, below, most];
    sql.exec(`INSERT INTO places(places, rowid, text, day) SELECT 'delete', id, text, day FROM docs ${some}`, ...params);
    this.#vectors.removing(some, params);
    this.#words.removing(some, params);
    return sql.exec(`DELETE FROM docs ${some} RETURNING id`, ...params).toArray().length;
  }
  removeAll(sourceId: number): void {
    this.remove(sourceId, Number.MAX_SAFE_INTEGER, ALL);
  }
  /** Removes words of texts from the pages of FTS5's table too; without this they stay until the pages are merged. It takes longer. */
  erasing<T>(work: () => T): T {
    const set = (value: 0 | 1): void => {
      this.#storage.sql.exec(`INSERT INTO places(places, rank) VALUES('secure-delete', ${value})`);
    };
    set(1);
    const done = work();
    set(0);
    return done;
  }
}
