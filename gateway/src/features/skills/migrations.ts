/** Tables of the skills feature. Released migrations never change. */
import type { HistoricalMigration } from "../../kernel/feature.ts";
import type { Migration } from "../../platform/sql.ts";

export const SKILL_HISTORY: readonly HistoricalMigration[] = [
  {
    position: 3,
    name: "skills: what was approved",
    up: (sql) => {
      sql.exec(`CREATE TABLE skill_pins(
        agent_id TEXT NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL, approved_at INTEGER NOT NULL, approved_by TEXT NOT NULL,
        next_sha256 TEXT, next_at INTEGER, next_by TEXT, PRIMARY KEY(agent_id, name)
      ) STRICT, WITHOUT ROWID`);
    },
  },
];

export const SKILL_MIGRATIONS: readonly Migration[] = [
  {
    name: "skills: uploads",
    up: (sql) => {
      // `installed`: what was made of the upload. NULL: nothing yet.
      sql.exec("CREATE TABLE skill_uploads(id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL, installed TEXT) STRICT, WITHOUT ROWID");
      sql.exec(
        "CREATE TABLE skill_upload_chunks(id TEXT NOT NULL, chunk INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(id, chunk)) STRICT",
      );
    },
  },
];
