/** Tables of domain events: the log in D1, and the outbox in the gateway's object. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";
import type { RowMigration } from "../../storage/rows.ts";

export const EVENT_ROWS: readonly RowMigration[] = [
  {
    name: "event log",
    statements: [
      `CREATE TABLE event_log(
        id TEXT PRIMARY KEY, tenant_id TEXT NOT NULL, agent_id TEXT NOT NULL, task_id TEXT NOT NULL, session_key TEXT NOT NULL,
        topic TEXT NOT NULL, version INTEGER NOT NULL, payload TEXT NOT NULL, taint TEXT NOT NULL, taint_source TEXT NOT NULL,
        emitted_at INTEGER NOT NULL, status TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, replays INTEGER NOT NULL DEFAULT 0,
        reason TEXT, decision TEXT, decided_by TEXT, decided_at INTEGER, ended_at INTEGER) STRICT`,
      "CREATE INDEX events_in_order ON event_log(tenant_id, emitted_at, id)",
      "CREATE INDEX events_by_status ON event_log(tenant_id, status, emitted_at, id)",
      "CREATE INDEX events_by_end ON event_log(ended_at) WHERE ended_at IS NOT NULL",
    ],
  },
  {
    name: "jobs of events",
    statements: [
      "ALTER TABLE event_log ADD COLUMN hops INTEGER NOT NULL DEFAULT 0",
      "ALTER TABLE event_log ADD COLUMN handled_at INTEGER",
      `CREATE TABLE event_starts(
        event_id TEXT NOT NULL, agent_id TEXT NOT NULL, job_id TEXT NOT NULL, started_at INTEGER NOT NULL,
        PRIMARY KEY(event_id, agent_id)) STRICT, WITHOUT ROWID`,
    ],
  },
  {
    name: "decisions that conversations are told",
    statements: ["ALTER TABLE event_log ADD COLUMN word TEXT", "ALTER TABLE event_log ADD COLUMN decision_told_at INTEGER"],
  },
  {
    name: "events that a limit has stopped",
    statements: [
      "ALTER TABLE event_log ADD COLUMN is_limit INTEGER NOT NULL DEFAULT 0",
      // Before, only the text told it.
      "UPDATE event_log SET is_limit = 1 WHERE reason LIKE 'Stopped by a limit: the agent %'",
    ],
  },
  {
    name: "generations of events",
    // From 0: messages that are under way name none.
    statements: ["ALTER TABLE event_log ADD COLUMN generation INTEGER NOT NULL DEFAULT 0"],
  },
];
export const EVENT_MIGRATIONS: readonly Migration[] = [
  {
    name: "events: outbox",
    up: (sql) => {
      sql.exec("CREATE TABLE event_outbox(id TEXT PRIMARY KEY, due_at INTEGER NOT NULL, tries INTEGER NOT NULL) STRICT, WITHOUT ROWID");
      sql.exec("CREATE INDEX event_outbox_by_due ON event_outbox(due_at)");
    },
  },
];
