/** Tables of the nodes feature. Released migrations never change. */
import type { HistoricalMigration } from "../../kernel/feature.ts";

export const NODE_HISTORY: readonly HistoricalMigration[] = [
  {
    position: 1,
    name: "registries, pending calls, audit",
    up: (sql) => {
      sql.exec(`CREATE TABLE nodes(
        id TEXT PRIMARY KEY, first_seen_at INTEGER NOT NULL, last_seen_at INTEGER NOT NULL, last_connected_at INTEGER, last_disconnected_at INTEGER,
        platform TEXT, version TEXT, ledger INTEGER NOT NULL, tools TEXT NOT NULL, host_capabilities TEXT NOT NULL, tool_capabilities TEXT NOT NULL, waiting TEXT NOT NULL
      ) STRICT`);
      sql.exec(`CREATE TABLE pending_calls(
        call TEXT PRIMARY KEY, kind TEXT NOT NULL, conn TEXT NOT NULL, request TEXT NOT NULL, token TEXT NOT NULL, node TEXT NOT NULL, tool TEXT NOT NULL,
        name TEXT, repeatable INTEGER NOT NULL, state TEXT NOT NULL, created_at INTEGER NOT NULL, deadline INTEGER NOT NULL
      ) STRICT`);
    },
  },
  {
    position: 2,
    name: "pending calls: the grace beside the deadline",
    up: (sql) => {
      sql.exec("ALTER TABLE pending_calls ADD COLUMN grace_until INTEGER");
    },
  },
];
