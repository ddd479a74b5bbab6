/** Tables of the agents feature. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";

export const AGENT_MIGRATIONS: readonly Migration[] = [
  {
    name: "agents: definitions in force",
    up: (sql) => {
      sql.exec(`CREATE TABLE agent_definitions(
        agent_id TEXT PRIMARY KEY, text TEXT NOT NULL, definition TEXT NOT NULL, core_sha256 TEXT NOT NULL, characteristics_sha256 TEXT,
        files TEXT NOT NULL, defined_at INTEGER NOT NULL, defined_by TEXT NOT NULL
      ) STRICT, WITHOUT ROWID`);
    },
  },
];
