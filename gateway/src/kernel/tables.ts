/** Tables of the kernel: tokens and the audit log. Released migrations never change. */
import type { Migration } from "../platform/sql.ts";
import { GENESIS } from "./audit-chain.ts";
import type { HistoricalMigration } from "./feature.ts";
import type { KernelTables } from "./migrations.ts";

const history: readonly HistoricalMigration[] = [
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

const migrations: readonly Migration[] = [
  {
    name: "origin, tool and rule of audit entries",
    up: (sql) => {
      for (const column of ["origin TEXT", "tool TEXT", "rule TEXT", "format INTEGER NOT NULL DEFAULT 1"])
        sql.exec(`ALTER TABLE audit ADD COLUMN ${column}`);
      // Entries of the earlier format keep their hashes. This one commits to them; its detail is written when it is hashed.
      sql.exec(
        `INSERT INTO audit(at, actor, action, origin, decision, format)
         SELECT max(at), 'gateway', ?, 'gateway', 'allowed', 2 FROM audit HAVING count(*) > 0`,
        GENESIS,
      );
    },
  },
];

export const KERNEL_TABLES: KernelTables = { history, migrations };
