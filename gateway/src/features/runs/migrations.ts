/** Tables of the runs feature. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";

export const RUN_MIGRATIONS: readonly Migration[] = [
  {
    name: "runs: tasks",
    up: (sql) => {
      sql.exec(`CREATE TABLE tasks(
        id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, session_key TEXT NOT NULL, body_sha256 TEXT NOT NULL, created_at INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`);
      sql.exec("CREATE INDEX tasks_by_age ON tasks(created_at)");
    },
  },
];
