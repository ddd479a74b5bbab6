/**
 * The database for rows (D1), and its migrations: each is applied once, in one transaction with its mark, and a released one never changes.
 * Must not know what the tables are for.
 */
import { failure, type Result, storageFailed } from "../ports/result.ts";
import { NewerStateError, newerStateText } from "../ports/newer-state.ts";

export type RowDatabase = Pick<D1Database, "prepare" | "batch">;
export interface RowMigration {
  readonly name: string;
  readonly statements: readonly string[];
}

const MARKS =
  "CREATE TABLE IF NOT EXISTS gsv_migrations(owner TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, applied_at INTEGER NOT NULL, PRIMARY KEY(owner, number)) STRICT";
/** Another object may apply the same migrations at this moment. */
const ATTEMPTS = 3;

/** Throws what the database throws, and `NewerStateError` for the tables of a newer version, before anything is changed. */
export async function migrateRows(db: RowDatabase, owner: string, migrations: readonly RowMigration[], now: number): Promise<void> {
  await db.prepare(MARKS).run();
  for (let attempt = 1; ; attempt++) {
    try {
      return await applyMissing(db, owner, migrations, now);
    } catch (error) {
      if (attempt === ATTEMPTS || error instanceof NewerStateError) throw error;
    }
  }
}
async function applyMissing(db: RowDatabase, owner: string, migrations: readonly RowMigration[], now: number): Promise<void> {
  const mark = await db
    .prepare("SELECT coalesce(max(number), 0) AS number FROM gsv_migrations WHERE owner = ?")
    .bind(owner)
    .first<{ number: number }>();
  const applied = mark?.number ?? 0;
  if (applied > migrations.length) throw new NewerStateError(`the tables of ${owner}`, applied, migrations.length);
  for (const [index, { name, statements }] of migrations.entries()) {
    if (index < applied) continue;
    const done = db
      .prepare("INSERT INTO gsv_migrations(owner, number, name, applied_at) VALUES(?, ?, ?, ?)")
      .bind(owner, index + 1, name, now);
    await db.batch([done, ...statements.map((statement) => db.prepare(statement))]);
  }
}

/** Runs one operation on the database. An exception becomes `storage.failed`; its text is for `failed` alone, never for people. */
export async function guardedRows<T>(
  what: string,
  work: () => Promise<Result<T>>,
  failed: (what: string, error: unknown) => void,
): Promise<Result<T>> {
  try {
    return await work();
  } catch (error) {
    failed(what, error);
    const newer = newerStateText(error);
    if (newer !== undefined) return failure("storage.newer_version", newer);
    return storageFailed(`The database could not ${what}.`);
  }
}
