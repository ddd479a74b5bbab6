/** Tables of the invites feature. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";

export const INVITE_MIGRATIONS: readonly Migration[] = [
  {
    name: "invitations",
    up: (sql) => {
      sql.exec(`CREATE TABLE invites(
        id TEXT PRIMARY KEY, hash TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, name TEXT, expires_at INTEGER NOT NULL, nonce_hash TEXT, token_id TEXT
      ) STRICT, WITHOUT ROWID`);
    },
  },
];
