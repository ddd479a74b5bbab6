/** The import that is under way, its pages, and what it has written; and the gateway's own tables as records. Decides nothing. */
import type { MoveHome } from "../../../../protocol/gen/types.ts";
import { countObject, readObject, writeRecords } from "../../platform/object-rows.ts";
import { all, type Database, levelsOf, type Migration, one, run } from "../../platform/sql.ts";
import type { MovedState, ObjectCursor, ObjectKind, ObjectPage, ObjectRecord } from "../../ports/moving.ts";
import type { MoveCounts } from "./records.ts";

const STATE = "move";

export const MOVE_MIGRATIONS: readonly Migration[] = [
  {
    name: "moves: parts of pages, and objects that an import has written",
    up: (sql) => {
      // Pages with rows of the gateway stay until the end of the import; of others, those that are not whole.
      sql.exec("CREATE TABLE move_parts(page INTEGER NOT NULL, part INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY(page, part)) STRICT");
      sql.exec("CREATE TABLE move_keys(kind TEXT NOT NULL, key TEXT NOT NULL, PRIMARY KEY(kind, key)) STRICT, WITHOUT ROWID");
    },
  },
];

export interface ImportState {
  readonly home: MoveHome;
  readonly by: string;
  readonly beganAt: number;
  /** `writing`: pages arrive. `live`: the gateway's tables are written, and what waits is not woken yet. `done`: for a repeated finish. */
  readonly phase: "writing" | "live" | "done";
  readonly pages: number;
  /** The digest of these pages. */
  readonly sha256: string;
  /** Everything was stopped before. */
  readonly wasStopped: boolean;
  /** Keys of the default files that were there. */
  readonly defaults: readonly string[];
  /** Those that the import has replaced. */
  readonly replaced: readonly string[];
  /** Secrets that the imported settings would have sent to another address. */
  readonly removedSecrets?: readonly string[];
  /** What the last page says. */
  readonly counts?: MoveCounts;
}
/** Objects that an import has written, beside the gateway. */
export type KeyKind = ObjectKind | "index";

export class MoveStore {
  readonly #db: Database;
  #state: ImportState | null | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  // ------------------------------------------------------------ the import

  state(): ImportState | undefined {
    if (this.#state === undefined) this.#state = this.#db.kv.get<ImportState>(STATE) ?? null;
    return this.#state ?? undefined;
  }
  /** An import that is not live. */
  isWriting(): boolean {
    return this.state()?.phase === "writing";
  }
  save(state: ImportState): void {
    this.#db.kv.put(STATE, state);
    this.#state = state;
  }
  clear(): void {
    this.#db.transactionSync(() => {
      this.#db.kv.delete(STATE);
      run(this.#db.sql, "DELETE FROM move_parts");
      run(this.#db.sql, "DELETE FROM move_keys");
    });
    this.#state = null;
  }
  putPart(page: number, part: number, body: string): void {
    run(this.#db.sql, "INSERT OR REPLACE INTO move_parts(page, part, body) VALUES(?, ?, ?)", page, part, body);
  }
  /** The text of a page; undefined while a part is missing. */
  page(page: number, parts: number): string | undefined {
    const rows = all<{ body: string }>(this.#db.sql, "SELECT body FROM move_parts WHERE page = ? AND part < ? ORDER BY part", page, parts);
    return rows.length === parts ? rows.map(({ body }) => body).join("") : undefined;
  }
  keptPage(page: number): string {
    return all<{ body: string }>(this.#db.sql, "SELECT body FROM move_parts WHERE page = ? ORDER BY part", page)
      .map(({ body }) => body)
      .join("");
  }
  keptPages(): readonly number[] {
    return all<{ page: number }>(this.#db.sql, "SELECT DISTINCT page FROM move_parts ORDER BY page").map(({ page }) => page);
  }
  /** A page was applied. Its text stays when it has rows of the gateway. */
  applied(state: ImportState, stays: boolean): void {
    this.#db.transactionSync(() => {
      if (!stays) run(this.#db.sql, "DELETE FROM move_parts WHERE page = ?", state.pages);
      this.#db.kv.put(STATE, state);
    });
    this.#state = state;
  }
  note(kind: KeyKind, key: string): void {
    run(this.#db.sql, "INSERT OR IGNORE INTO move_keys(kind, key) VALUES(?, ?)", kind, key);
  }
  noted(kind: KeyKind, after: string, limit: number): readonly string[] {
    const statement = "SELECT key FROM move_keys WHERE kind = ? AND key > ? ORDER BY key LIMIT ?";
    return all<{ key: string }>(this.#db.sql, statement, kind, after, limit).map(({ key }) => key);
  }
  notedCount(kind: KeyKind): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM move_keys WHERE kind = ?", kind)?.n ?? 0;
  }

  // ------------------------------------------------------------ the gateway's own tables

  atomic<T>(work: () => T): T {
    try {
      return this.#db.transactionSync(work);
    } catch (error) {
      this.#state = undefined;
      throw error;
    }
  }
  levels(): Readonly<Record<string, number>> {
    return levelsOf(this.#db);
  }
  count(table: string): number {
    return one<{ n: number }>(this.#db.sql, `SELECT count(*) AS n FROM "${table}"`)?.n ?? 0;
  }
  names({ table, columns }: MovedState["named"]["hooks"], most: number): readonly string[] {
    const name = columns.map((column) => `"${column}"`).join(" || '/' || ");
    return all<{ name: string }>(this.#db.sql, `SELECT ${name} AS name FROM "${table}" ORDER BY 1 LIMIT ?`, most).map((row) => row.name);
  }
  keysAfter({ table, column }: MovedState["objects"]["session"], after: string, limit: number): readonly string[] {
    const statement = `SELECT "${column}" AS key FROM "${table}" WHERE "${column}" > ? ORDER BY 1 LIMIT ?`;
    return all<{ key: string }>(this.#db.sql, statement, after, limit).map(({ key }) => key);
  }
  read({ tables, blank }: MovedState, cursor: ObjectCursor | undefined, budget: number): ObjectPage {
    return readObject(this.#db, { tables, blank, values: false }, cursor, budget);
  }
  write(records: readonly ObjectRecord[], { tables }: MovedState): void {
    writeRecords(this.#db, records, new Set(tables));
  }
  empty({ tables }: MovedState): void {
    for (const table of tables) run(this.#db.sql, `DELETE FROM "${table}"`);
  }
  rows({ tables }: MovedState): number {
    return countObject(this.#db, { tables, values: false }).rows;
  }
}
