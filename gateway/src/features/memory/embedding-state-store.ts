/** When memories are embedded next, and how the last attempt ended: one row in the gateway. What waits is in the memories' own rows. */
import type { Migration } from "../../platform/sql.ts";
import { type Database, one, run } from "../../platform/sql.ts";

export const EMBEDDING_MIGRATIONS: readonly Migration[] = [
  {
    name: "attempts of embedding memories",
    up: (sql) => {
      sql.exec(`CREATE TABLE memory_embedding(
        one INTEGER PRIMARY KEY CHECK(one = 1), model TEXT NOT NULL, marked INTEGER NOT NULL, due_at INTEGER, tries INTEGER NOT NULL,
        problem TEXT, serial INTEGER NOT NULL) STRICT`);
      sql.exec("INSERT INTO memory_embedding(one, model, marked, tries, serial) VALUES(1, '', 0, 0, 0)");
    },
  },
  {
    name: "settings of the last attempt",
    up: (sql) => {
      sql.exec("ALTER TABLE memory_embedding ADD COLUMN settings_version INTEGER");
    },
  },
];

export interface EmbeddingState {
  /** The key of the model that the rows wait for. Empty: no service is chosen. */
  readonly model: string;
  /** Every row without a vector of this model is marked as waiting. */
  readonly marked: boolean;
  readonly dueAt: number | undefined;
  /** Failures in a row. */
  readonly tries: number;
  readonly problem: string | undefined;
  /** The settings with which the last attempt failed: others begin again. */
  readonly settingsVersion: number | undefined;
  /** Rises with every announcement of new rows. */
  readonly serial: number;
}
type Row = {
  model: string;
  marked: number;
  due_at: number | null;
  tries: number;
  problem: string | null;
  serial: number;
  settings_version: number | null;
};

/** The settings have changed in a way that may let an attempt succeed: another model, or anything after a failure. */
export const beginsAgain = ({ model, problem, settingsVersion }: EmbeddingState, target: string, version: number): boolean =>
  model !== target || (problem !== undefined && settingsVersion !== version);

export class EmbeddingStateStore {
  readonly #db: Pick<Database, "sql">;

  constructor(db: Pick<Database, "sql">) {
    this.#db = db;
  }
  read(): EmbeddingState {
    const row = one<Row>(this.#db.sql, "SELECT * FROM memory_embedding");
    return {
      model: row?.model ?? "",
      marked: row?.marked === 1,
      dueAt: row?.due_at ?? undefined,
      tries: row?.tries ?? 0,
      problem: row?.problem ?? undefined,
      settingsVersion: row?.settings_version ?? undefined,
      serial: row?.serial ?? 0,
    };
  }
  /** Another model was chosen. */
  begin(model: string, dueAt: number | undefined): void {
    run(this.#db.sql, "UPDATE memory_embedding SET model = ?, marked = 0, due_at = ?, tries = 0, problem = NULL", model, dueAt ?? null);
  }
  marked(): void {
    run(this.#db.sql, "UPDATE memory_embedding SET marked = 1");
  }
  /** Rows are about to be written, or were. A pause after failures stays. */
  announce(dueAt: number): void {
    run(
      this.#db.sql,
      "UPDATE memory_embedding SET serial = serial + 1, due_at = CASE WHEN problem IS NOT NULL AND due_at IS NOT NULL THEN due_at ELSE ? END",
      dueAt,
    );
  }
  worked(dueAt: number): void {
    run(this.#db.sql, "UPDATE memory_embedding SET due_at = ?, tries = 0, problem = NULL", dueAt);
  }
  failed(problem: string, tries: number, dueAt: number, settingsVersion: number): void {
    const set = "UPDATE memory_embedding SET due_at = ?, tries = ?, problem = ?, settings_version = ?";
    run(this.#db.sql, set, dueAt, tries, problem, settingsVersion);
  }
  /** No further attempt, unless rows were announced since `serial`: with them the attempts begin again. */
  gaveUp(problem: string, tries: number, settingsVersion: number, serial: number): void {
    const changed = "CASE WHEN serial = ?";
    const set = `UPDATE memory_embedding SET due_at = ${changed} THEN NULL ELSE due_at END, tries = ${changed} THEN ? ELSE 0 END, problem = ?, settings_version = ?`;
    run(this.#db.sql, set, serial, serial, tries, problem, settingsVersion);
  }
  /** Nothing waits, unless rows were announced since `serial`. */
  finished(serial: number): void {
    run(this.#db.sql, "UPDATE memory_embedding SET due_at = NULL, tries = 0, problem = NULL WHERE serial = ?", serial);
  }
}
