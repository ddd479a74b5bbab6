/** The tables of hooks and of their deliveries. */
import type { Migration } from "../../platform/sql.ts";

export const HOOK_MIGRATIONS: readonly Migration[] = [
  {
    name: "hooks, deliveries of hooks",
    up: (sql) => {
      sql.exec(`CREATE TABLE hooks(
        name TEXT PRIMARY KEY, body TEXT NOT NULL, secret TEXT NOT NULL, accepted INTEGER NOT NULL, ignored INTEGER NOT NULL,
        refused INTEGER NOT NULL, last_at INTEGER, last_refused_at INTEGER
      ) STRICT, WITHOUT ROWID`);
      sql.exec(`CREATE TABLE hook_deliveries(
        id INTEGER PRIMARY KEY AUTOINCREMENT, hook TEXT NOT NULL, key TEXT NOT NULL, digest TEXT, at INTEGER NOT NULL, text TEXT,
        run INTEGER, error TEXT, UNIQUE(hook, key)
      ) STRICT`);
      sql.exec("CREATE INDEX hook_deliveries_digest ON hook_deliveries(hook, digest) WHERE digest IS NOT NULL");
      sql.exec("CREATE INDEX hook_deliveries_at ON hook_deliveries(hook, at)");
      sql.exec("CREATE INDEX hook_deliveries_waiting ON hook_deliveries(hook, id) WHERE text IS NOT NULL");
    },
  },
];
