/** The tables of the export of traces. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";

export const TELEMETRY_MIGRATIONS: readonly Migration[] = [
  {
    name: "runs that wait for the export of their traces",
    up: (sql) => {
      sql.exec(`CREATE TABLE telemetry_runs(
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_key TEXT NOT NULL, run_id TEXT NOT NULL, root_key TEXT NOT NULL,
        root_run TEXT NOT NULL, parent_call TEXT, due_at INTEGER NOT NULL, tries INTEGER NOT NULL, UNIQUE(session_key, run_id)
      ) STRICT`);
      sql.exec(`CREATE TABLE telemetry_state(
        one INTEGER PRIMARY KEY CHECK(one = 1), exported INTEGER NOT NULL, dropped INTEGER NOT NULL, tries INTEGER NOT NULL,
        exported_at INTEGER, failed_at INTEGER, problem TEXT, paused_until INTEGER, paused_version INTEGER) STRICT`);
      sql.exec("INSERT INTO telemetry_state(one, exported, dropped, tries) VALUES(1, 0, 0, 0)");
    },
  },
];
