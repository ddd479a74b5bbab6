/**
 * SQLite in a Durable Object: migrations and typed rows. Must not know any feature's table. The schema's version is stored in a
 * table, because the platform denies `PRAGMA user_version`.
 */
import { NewerStateError } from "../ports/newer-state.ts";

export interface Migration {
  /** Describes the migration, for the log and for people. The name and its position in the list never change after a release. */
  readonly name: string;
  /** STRICT tables only. */
  readonly up: (sql: SqlStorage) => void;
}
/** The part of the storage that registries need. */
export type Database = Pick<DurableObjectStorage, "sql" | "kv" | "transactionSync">;
export type Value = string | number | null | ArrayBuffer;

/** The tables of one owner: a feature, the kernel, or the session. */
export type OwnTables = readonly [owner: string, migrations: readonly Migration[]];

/**
 * Owners of earlier versions whose tables no version uses any more. Every other owner that this version does not know is a part of a newer
 * one. A feature that is removed leaves its name here for good.
 */
export const FORMER_OWNERS: readonly string[] = [];

/** The version of each owner's tables. Creates nothing. */
export function levelsOf({ sql }: Pick<Database, "sql">): Readonly<Record<string, number>> {
  if (one(sql, "SELECT 1 AS x FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'") === undefined) return {};
  const rows = all<{ owner: string; version: number }>(sql, "SELECT owner, version FROM schema_version ORDER BY owner");
  return Object.fromEntries(rows.map(({ owner, version }) => [owner, version]));
}

/**
 * Brings all tables of an object to the newest version. Throws NewerStateError before anything is changed when a newer program has added
 * migrations or owners of tables: work that ignores its tables may break its data (rule UP17).
 */
export function migrateAll(storage: Database, tables: readonly OwnTables[], former: readonly string[] = FORMER_OWNERS): void {
  const known = new Map(tables.map(([owner, migrations]) => [owner, migrations.length]));
  for (const [owner, found] of Object.entries(levelsOf(storage))) {
    const most = known.get(owner) ?? (former.includes(owner) ? found : 0);
    if (found > most) throw new NewerStateError(`the ${owner.slice(0, OWNER_CHARS)} tables`, found, most);
  }
  for (const [owner, migrations] of tables) migrate(storage, owner, migrations);
}
const OWNER_CHARS = 64;

/**
 * Brings the tables of `owner` to the newest version: each missing migration runs once, in a transaction with the
 * record that it ran. Several owners can share one object. Costs one read when nothing is missing. Throws NewerStateError when a
 * newer program has added unknown migrations.
 */
export function migrate(storage: Database, owner: string, migrations: readonly Migration[]): void {
  storage.sql.exec("CREATE TABLE IF NOT EXISTS schema_version(owner TEXT PRIMARY KEY, version INTEGER NOT NULL) STRICT, WITHOUT ROWID");
  const done = one<{ version: number }>(storage.sql, "SELECT version FROM schema_version WHERE owner = ?", owner)?.version ?? 0;
  if (done > migrations.length) throw new NewerStateError(`the ${owner} tables`, done, migrations.length);
  for (const [index, migration] of migrations.entries()) {
    if (index < done) continue;
    storage.transactionSync(() => {
      migration.up(storage.sql);
      storage.sql.exec(
        "INSERT INTO schema_version(owner, version) VALUES(?, ?) ON CONFLICT(owner) DO UPDATE SET version = excluded.version",
        owner,
        index + 1,
      );
    });
  }
}

/** All rows. `T` is the row type of the statement; the caller must know SQLite's types. */
export function all<T extends Record<string, Value>>(sql: SqlStorage, statement: string, ...params: Value[]): T[] {
  return sql.exec<T>(statement, ...params).toArray();
}

/** The first row, if any. */
export function one<T extends Record<string, Value>>(sql: SqlStorage, statement: string, ...params: Value[]): T | undefined {
  const next = sql.exec<T>(statement, ...params).next();
  return next.done === true ? undefined : next.value;
}

/** Runs a statement for its effect. Use RETURNING to learn which rows changed. */
export function run(sql: SqlStorage, statement: string, ...params: Value[]): void {
  sql.exec(statement, ...params);
}
