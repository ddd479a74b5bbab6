/** Tables of the kernel: tokens and the audit log. Released migrations never change. */
import type { HistoricalMigration } from "./feature.ts";

export const KERNEL_HISTORY: readonly HistoricalMigration[] = [
  {
    position: 1,
    name: "registries, pending calls, audit",
    up: (sql) => {
      sql.exec(`CREATE TABLE tokens(
        id TEXT PRIMARY KEY, kind TEXT NOT NULL, hash TEXT NOT NULL UNIQUE, last4 TEXT NOT NULL, label TEXT, node_id TEXT, channel TEXT, account_id TEXT,
        created_at INTEGER NOT NULL, expires_at INTEGER, last_used_at INTEGER, revoked_at INTEGER, imported INTEGER NOT NULL DEFAULT 0
      ) STRICT`);
      sql.exec(`CREATE TABLE audit(
        seq INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL, target TEXT, decision TEXT NOT NULL,
        detail TEXT, args_hash TEXT, prev_hash TEXT, hash TEXT
      ) STRICT`);
    },
  },
];
