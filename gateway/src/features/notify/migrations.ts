/** The table of notifications. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";

export const NOTIFY_MIGRATIONS: readonly Migration[] = [
  {
    name: "notifications",
    up: (sql) => {
      sql.exec(`CREATE TABLE notifications(
        id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, cause TEXT NOT NULL, agent TEXT NOT NULL,
        text TEXT NOT NULL, created_at INTEGER NOT NULL, state TEXT NOT NULL, due_at INTEGER NOT NULL, told_at INTEGER, told_in TEXT,
        with_id INTEGER, body TEXT NOT NULL
      ) STRICT`);
      sql.exec("CREATE INDEX notifications_due ON notifications(due_at) WHERE state = 'waiting'");
      sql.exec("CREATE INDEX notifications_cause ON notifications(cause, told_at)");
      sql.exec("CREATE INDEX notifications_with ON notifications(with_id) WHERE with_id IS NOT NULL");
    },
  },
];
