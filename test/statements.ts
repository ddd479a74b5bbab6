/** Statements of SQLite in Node, each compiled once: compiling takes many times as long as a small question of a test. */
import type { DatabaseSync, StatementSync } from "node:sqlite";

export function statementsOf(database: DatabaseSync): (sql: string) => StatementSync {
  const known = new Map<string, StatementSync>();
  return (sql) => {
    const statement = known.get(sql) ?? database.prepare(sql);
    known.set(sql, statement);
    return statement;
  };
}
