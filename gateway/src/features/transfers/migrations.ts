/** Tables of the transfers feature. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";

export const TRANSFER_MIGRATIONS: readonly Migration[] = [
  {
    name: "transfers",
    up: (sql) => {
      // `due_at`: when an open one is looked at, and when an ended one is removed. `leftover`: the machine whose temporary file must go.
      sql.exec(`CREATE TABLE transfers(
        id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, source TEXT NOT NULL, destination TEXT NOT NULL, forced INTEGER NOT NULL, by TEXT NOT NULL,
        state TEXT NOT NULL, size_bytes INTEGER, version TEXT, sha256 TEXT, done_bytes INTEGER NOT NULL, reason TEXT, problem TEXT,
        created_at INTEGER NOT NULL, moved_at INTEGER NOT NULL, due_at INTEGER NOT NULL, ended_at INTEGER, leftover TEXT
      ) STRICT, WITHOUT ROWID`);
      sql.exec("CREATE INDEX transfers_due ON transfers(due_at)");
    },
  },
  {
    name: "transfers of agents",
    up: (sql) => {
      // `tell`: how the conversation learns of the end, when its call did not wait for it. `taint`: what the conversation had read.
      for (const column of ["session_key", "taint", "tell"]) sql.exec(`ALTER TABLE transfers ADD COLUMN ${column} TEXT`);
    },
  },
  {
    name: "transfers: the token that began one",
    up: (sql) => {
      // A program has one. A transfer of an agent has none, nor one of an earlier version.
      sql.exec("ALTER TABLE transfers ADD COLUMN token_id TEXT");
    },
  },
  {
    name: "larger parts of files on their way into the workspace",
    up: (sql) => {
      // Parts of the earlier size are no beginning of the file: an open copy begins again.
      sql.exec("UPDATE transfers SET done_bytes = 0 WHERE ended_at IS NULL AND destination LIKE 'gsv:%'");
    },
  },
  {
    name: "transfers: parts that may be left",
    up: (sql) => {
      // When the parts of an ended transfer into the workspace are looked for. Without it, there are none.
      sql.exec("ALTER TABLE transfers ADD COLUMN parts_at INTEGER");
      sql.exec("CREATE INDEX transfers_parts ON transfers(parts_at) WHERE parts_at IS NOT NULL");
    },
  },
  {
    name: "transfers: signs of life, and copies that began again",
    up: (sql) => {
      // `alive_at`: when an end last worked without new bytes. `again`: 1 after a wrong checksum of a copy that had been continued.
      for (const column of ["alive_at", "again"]) sql.exec(`ALTER TABLE transfers ADD COLUMN ${column} INTEGER`);
    },
  },
];
