/** Small named values of an account, as JSON, in the same database as its queues. */
import type { Database } from "./database.ts";

export class KeyValues {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  get<T>(name: string): T | undefined {
    const row = this.#db.query<{ value: string }>("SELECT value FROM kv WHERE name = ?", name)[0];
    return row && (JSON.parse(row.value) as T);
  }
  put(name: string, value: unknown): void {
    this.#db.query(
      "INSERT INTO kv(name, value) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
      name,
      JSON.stringify(value),
    );
  }
  /** As `put`, for secrets: the earlier value is overwritten where it stands, so that none of it stays in the free space of a page. */
  replace(name: string, value: unknown): void {
    this.#overwrite(name);
    this.put(name, value);
  }
  /** Overwrites the value first, because it may be a key. */
  delete(name: string): void {
    this.#overwrite(name);
    this.#db.query("DELETE FROM kv WHERE name = ?", name);
  }
  #overwrite(name: string): void {
    this.#db.query("UPDATE kv SET value = printf('%.*c', length(CAST(value AS BLOB)), '0') WHERE name = ?", name);
  }
  /** All names with this prefix, sorted. */
  names(prefix: string): readonly string[] {
    return this.#db
      .query<{ name: string }>("SELECT name FROM kv WHERE name >= ? AND name < ? ORDER BY name", prefix, `${prefix}\u{10ffff}`)
      .map(({ name }) => name);
  }
}
