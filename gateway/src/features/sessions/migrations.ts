/** Tables of the sessions feature. Released migrations never change. */
import type { HistoricalMigration } from "../../kernel/feature.ts";
import type { Migration } from "../../platform/sql.ts";

export const SESSION_HISTORY: readonly HistoricalMigration[] = [
  {
    position: 1,
    name: "registries, pending calls, audit",
    up: (sql) => {
      sql.exec(`CREATE TABLE sessions(
        key TEXT PRIMARY KEY, ref TEXT NOT NULL UNIQUE, created_at INTEGER NOT NULL, last_active_at INTEGER NOT NULL, label TEXT
      ) STRICT`);
      sql.exec("CREATE INDEX sessions_by_activity ON sessions(last_active_at)");
    },
  },
  // Sessions made before this are the owner's only by their names: who wrote there first is not known any more.
  {
    position: 5,
    name: "sessions: whose they are",
    up: (sql) => {
      sql.exec("ALTER TABLE sessions ADD COLUMN owned INTEGER NOT NULL DEFAULT 0");
      sql.exec("CREATE INDEX sessions_owned ON sessions(key) WHERE owned = 1");
    },
  },
];

/** After the feature's other migrations. */
export const MODE_MIGRATIONS: readonly Migration[] = [
  {
    name: "sessions: their modes",
    up: (sql) => {
      sql.exec("ALTER TABLE sessions ADD COLUMN mode TEXT");
      sql.exec("ALTER TABLE sessions ADD COLUMN mode_until INTEGER");
    },
  },
];
