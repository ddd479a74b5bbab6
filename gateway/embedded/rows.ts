/**
 * The table beside the files: what a file can't say of its object, and the intents of puts that have not ended. Must not know whether
 * a file still is what its row says.
 */
import { NewerStateError } from "../src/ports/newer-state.ts";
import type { ObjectInfo } from "./wire.ts";

export interface Row extends ObjectInfo {
  readonly mtime: number;
  /** When the content was known to be this etag's, epoch ms. */
  readonly checkedAt: number;
}

type StoredRow = {
  key: string;
  version: string;
  size: number;
  etag: string;
  uploaded: number;
  http: string;
  custom: string;
  checksums: string;
  mtime: number;
  checkedAt: number;
};
const rowOf = (row: StoredRow): Row => ({
  ...row,
  http: JSON.parse(row.http),
  custom: JSON.parse(row.custom),
  checksums: JSON.parse(row.checksums),
});

/** What a put is about to make of a key. */
export type Intent = Pick<Row, "key" | "version" | "uploaded" | "http" | "custom" | "checksums">;
type StoredIntent = Pick<StoredRow, "key" | "version" | "uploaded" | "http" | "custom" | "checksums">;

const FORMAT = 1;
const SCHEMA = `
CREATE TABLE IF NOT EXISTS format (version INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS objects (
  key TEXT PRIMARY KEY, version TEXT NOT NULL, size INTEGER NOT NULL, etag TEXT NOT NULL, uploaded INTEGER NOT NULL,
  http TEXT NOT NULL, custom TEXT NOT NULL, checksums TEXT NOT NULL, mtime INTEGER NOT NULL, checkedAt INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS intents (
  key TEXT PRIMARY KEY, version TEXT NOT NULL, uploaded INTEGER NOT NULL, http TEXT NOT NULL, custom TEXT NOT NULL, checksums TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`;

export class Rows {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;

  /** Throws `NewerStateError`, and leaves the table as it is, when a newer version has written it. */
  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
    this.#sql = storage.sql;
    storage.transactionSync(() => {
      this.#sql.exec(SCHEMA);
      const format = this.#sql.exec<{ version: number }>("SELECT version FROM format").toArray()[0]?.version;
      if (format === undefined) this.#sql.exec("INSERT INTO format VALUES (?)", FORMAT);
      else if (format > FORMAT) throw new NewerStateError("the tables of the agents' files", format, FORMAT);
    });
  }

  one(key: string): Row | undefined {
    const row = this.#sql.exec<StoredRow>("SELECT * FROM objects WHERE key = ?", key).toArray()[0];
    return row && rowOf(row);
  }
  /** Those of these keys that have a row, read at once: a list looks at many. */
  many(keys: readonly string[]): Row[] {
    return this.#sql
      .exec<StoredRow>("SELECT o.* FROM json_each(?) k CROSS JOIN objects o ON o.key = k.value", JSON.stringify(keys))
      .toArray()
      .map(rowOf);
  }
  /** Keys from `prefix` on that are greater than `after`, in order. */
  keys(prefix: string, after: string, most: number): string[] {
    return this.#sql
      .exec<{ key: string }>("SELECT key FROM objects WHERE key >= ? AND key > ? ORDER BY key LIMIT ?", prefix, after, most)
      .toArray()
      .map(({ key }) => key);
  }
  save(row: Row): void {
    this.#storage.transactionSync(() => {
      this.forgetIntent(row.key);
      this.#sql.exec(
        "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        row.key,
        row.version,
        row.size,
        row.etag,
        row.uploaded,
        JSON.stringify(row.http),
        JSON.stringify(row.custom),
        JSON.stringify(row.checksums),
        row.mtime,
        row.checkedAt,
      );
    });
  }
  forgetIntent(key: string): void {
    this.#sql.exec("DELETE FROM intents WHERE key = ?", key);
  }
  forget(key: string): void {
    this.#storage.transactionSync(() => {
      this.forgetIntent(key);
      this.#sql.exec("DELETE FROM objects WHERE key = ?", key);
    });
  }

  intent(key: string): Intent | undefined {
    const intent = this.#sql.exec<StoredIntent>("SELECT * FROM intents WHERE key = ?", key).toArray()[0];
    return (
      intent && {
        ...intent,
        http: JSON.parse(intent.http),
        custom: JSON.parse(intent.custom),
        checksums: JSON.parse(intent.checksums),
      }
    );
  }
  hasIntents(): boolean {
    return this.#sql.exec("SELECT 1 FROM intents LIMIT 1").toArray().length > 0;
  }
  intend({ key, version, uploaded, http, custom, checksums }: Intent): void {
    this.#sql.exec(
      "INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?, ?)",
      key,
      version,
      uploaded,
      JSON.stringify(http),
      JSON.stringify(custom),
      JSON.stringify(checksums),
    );
  }
}
