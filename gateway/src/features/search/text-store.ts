/** The texts of an agent's search index: SQLite's FTS5 finds what is exact in them, and their words as numbers rank them. Must not know their sources. Runs in the caller's transactions. */
import type { Database } from "../../platform/sql.ts";
import { segment } from "./text.ts";
import type { VectorStore } from "./vector-store.ts";
import { type WordStore, wordsOf } from "./word-store.ts";

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
    this.#words.drop();
    // The words are before the text, so that a scan over them reads no text.
    sql.exec(
      "CREATE TABLE docs(id INTEGER PRIMARY KEY, source INTEGER NOT NULL, position INTEGER NOT NULL, ord INTEGER NOT NULL, role TEXT, at INTEGER NOT NULL, words BLOB NOT NULL, text TEXT NOT NULL, day TEXT NOT NULL) STRICT",
    );
    sql.exec("CREATE INDEX docs_of_source ON docs(source, position)");
    sql.exec("CREATE INDEX docs_in_order ON docs(source, ord)");
    // It reads its texts from `docs`.
    sql.exec(
      "CREATE VIRTUAL TABLE places USING fts5(text, content = 'docs', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2')",
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
      const segmented = segment(text);
      const words = wordsOf(segmented, day);
      const [id, ord] = [firstId + index, from + index];
      sql.exec(
        "INSERT INTO docs(id, source, position, ord, role, at, words, text, day) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        id,
        sourceId,
        position,
        ord,
        role ?? null,
        at,
        words,
        segmented,
        day,
      );
      this.#words.added({ id, source: sourceId, ord, at }, words);
    }
    sql.exec("INSERT INTO places(rowid, text) SELECT id, text FROM docs WHERE source = ? AND ord >= ?", sourceId, from);
    this.#vectors.added(sourceId, from);
  }
  /** Removes up to `most` texts of a source with a position below `below`. Returns their number. */
  remove(sourceId: number, below: number, most: number): number {
    const { sql } = this.#storage;
    const some = "WHERE id IN (SELECT id FROM docs WHERE source = ? AND position < ? ORDER BY position, id LIMIT ?)";
    const params = [sourceId, below, most];
    sql.exec(`INSERT INTO places(places, rowid, text) SELECT 'delete', id, text FROM docs ${some}`, ...params);
    this.#vectors.removing(some, params);
    const removed = sql.exec<{ id: number }>(`DELETE FROM docs ${some} RETURNING id`, ...params).toArray();
    this.#words.removed(removed.map(({ id }) => id));
    return removed.length;
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
