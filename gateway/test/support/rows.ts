/** D1 over SQLite in Node, for tests that need no Workers runtime: prepared statements, and batches as transactions. */
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import type { RowDatabase } from "../../src/storage/rows.ts";
import { statementsOf } from "../../../test/statements.ts";

/** `before` runs before each statement and may throw, as a database that fails does. */
export function sqliteRows(before: (sql: string) => void = () => undefined): RowDatabase {
  const sqlite = new DatabaseSync(":memory:");
  const prepared = statementsOf(sqlite);
  const run = (sql: string, values: readonly SQLInputValue[]) => {
    before(sql);
    // SQLite in Node takes numbered parameters by name only.
    const numbered = /\?\d/.test(sql);
    const statement = prepared(numbered ? sql.replaceAll(/\?(\d+)/g, ":p$1") : sql);
    const named = Object.fromEntries(values.map((value, index) => [`p${index + 1}`, value]));
    if (numbered) statement.setAllowUnknownNamedParameters(true);
    return { success: true, results: numbered ? statement.all(named) : statement.all(...values), meta: {} };
  };
  const statement = (sql: string, values: readonly SQLInputValue[] = []) => ({
    bind: (...given: SQLInputValue[]) => statement(sql, given),
    run: async () => run(sql, values),
    all: async () => run(sql, values),
    first: async () => run(sql, values).results[0] ?? null,
    now: () => run(sql, values),
  });
  const db = {
    prepare: (sql: string) => statement(sql),
    batch: async (statements: readonly ReturnType<typeof statement>[]) => {
      sqlite.exec("BEGIN");
      try {
        const results = statements.map((one) => one.now());
        sqlite.exec("COMMIT");
        return results;
      } catch (error) {
        sqlite.exec("ROLLBACK");
        throw error;
      }
    },
  };
  return db as unknown as RowDatabase;
}
