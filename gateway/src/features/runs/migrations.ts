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
  {
    name: "runs: delegations",
    up: (sql) => {
      sql.exec(`CREATE TABLE delegations(
        id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, name TEXT NOT NULL, parent_key TEXT NOT NULL, parent_run TEXT NOT NULL,
        call_id TEXT NOT NULL, session_key TEXT NOT NULL, open INTEGER NOT NULL, waited_ms INTEGER NOT NULL
      ) STRICT`);
      sql.exec("CREATE INDEX delegations_by_parent ON delegations(parent_key, parent_run)");
      sql.exec("CREATE INDEX delegations_open ON delegations(id) WHERE open = 1");
    },
  },
  {
    name: "runs: tasks whose end is told",
    up: (sql) => {
      sql.exec(`CREATE TABLE task_watches(
        id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, session_key TEXT NOT NULL, hops INTEGER NOT NULL, look_at INTEGER NOT NULL,
        tries INTEGER NOT NULL) STRICT, WITHOUT ROWID`);
      sql.exec("CREATE INDEX task_watches_by_look ON task_watches(look_at)");
    },
  },
  {
    name: "runs: looks at tasks have an end",
    up: (sql) => {
      sql.exec("ALTER TABLE task_watches ADD COLUMN looks INTEGER NOT NULL DEFAULT 0");
    },
  },
];
