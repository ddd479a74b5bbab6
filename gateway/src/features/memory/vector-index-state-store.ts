/** When the vector index follows the memories next, and how the last attempt ended: one row in the gateway. What waits is in the memories' own rows. */
import { type Database, type Migration, one, run } from "../../platform/sql.ts";

export const VECTOR_INDEX_MIGRATION: Migration = {
  name: "attempts of the vector index",
  up: (sql) => {
    sql.exec(
      "CREATE TABLE memory_vector_index(one INTEGER PRIMARY KEY CHECK(one = 1), due_at INTEGER NOT NULL, tries INTEGER NOT NULL, problem TEXT, serial INTEGER NOT NULL) STRICT",
    );
    // Due at once: rows from before the index was bound are sent, too.
    sql.exec("INSERT INTO memory_vector_index(one, due_at, tries, serial) VALUES(1, 1, 0, 0)");
  },
};
export interface VectorIndexState {
  readonly dueAt: number;
  /** Attempts in a row that did not reach their end. */
  readonly tries: number;
  readonly problem: string | undefined;
  /** Rises with every announcement. */
  readonly serial: number;
}

export class VectorIndexStateStore {
  readonly #db: Pick<Database, "sql">;

  constructor(db: Pick<Database, "sql">) {
    this.#db = db;
  }
  read(): VectorIndexState {
    type Row = { due_at: number; tries: number; problem: string | null; serial: number };
    const row = one<Row>(this.#db.sql, "SELECT * FROM memory_vector_index");
    return { dueAt: row?.due_at ?? 1, tries: row?.tries ?? 0, problem: row?.problem ?? undefined, serial: row?.serial ?? 0 };
  }
  /** Rows are about to change, or did. A pause after a failure stays. */
  announce(dueAt: number): void {
    run(
      this.#db.sql,
      "UPDATE memory_vector_index SET serial = serial + 1, due_at = CASE WHEN problem IS NULL THEN min(due_at, ?) ELSE due_at END",
      dueAt,
    );
  }
  /** The attempt is over. Rows that were announced since `serial` keep their time. */
  ended(dueAt: number, tries: number, problem: string | undefined, serial: number): void {
    const isNews = problem === undefined && this.read().serial !== serial;
    const set = `UPDATE memory_vector_index SET due_at = ${isNews ? "min(due_at, ?)" : "?"}, tries = ?, problem = ?`;
    run(this.#db.sql, set, dueAt, tries, problem ?? null);
  }
}
