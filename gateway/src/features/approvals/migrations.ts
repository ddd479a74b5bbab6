/** Tables of the approvals feature. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";

export const APPROVAL_MIGRATIONS: readonly Migration[] = [
  {
    name: "approvals: questions of sessions",
    up: (sql) => {
      // `entry`: what is shown while the question waits. `ended_at` NULL: it waits.
      sql.exec(`CREATE TABLE approvals(
        session_key TEXT NOT NULL, code TEXT NOT NULL, expires_at INTEGER NOT NULL, entry TEXT,
        ended_at INTEGER, outcome TEXT, answered_by TEXT, again TEXT, PRIMARY KEY(session_key, code)
      ) STRICT, WITHOUT ROWID`);
      sql.exec("CREATE INDEX approvals_code ON approvals(code)");
      sql.exec("CREATE TABLE approval_reports(session_key TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT, WITHOUT ROWID");
    },
  },
  {
    name: "approvals: grants",
    up: (sql) => {
      // What an answer to the question can grant, while it waits.
      sql.exec("ALTER TABLE approvals ADD COLUMN offer TEXT");
      sql.exec(`CREATE TABLE grants(
        id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, session_key TEXT NOT NULL, session_id TEXT, scope TEXT NOT NULL, code TEXT NOT NULL,
        made_by TEXT NOT NULL, created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, revoked_at INTEGER, uses INTEGER NOT NULL,
        last_used_at INTEGER
      ) STRICT, WITHOUT ROWID`);
      sql.exec("CREATE INDEX grants_expiry ON grants(expires_at)");
    },
  },
];
