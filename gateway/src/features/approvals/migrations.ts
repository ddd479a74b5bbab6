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
];
