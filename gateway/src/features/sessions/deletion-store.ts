/** Which sessions are being deleted (rule SD2). A row exists from the request until nothing of the session is left. Calls no session. */
import type { DeletedSession } from "../../ports/sessions.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { Migration } from "../../platform/sql.ts";

export const DELETION_MIGRATIONS: readonly Migration[] = [
  {
    name: "sessions that are being deleted",
    up: (sql) => {
      // `ids`: the names that the session had, by which its oldest transcripts are found; null until the session has told them.
      sql.exec(
        "CREATE TABLE session_deletions(key TEXT PRIMARY KEY, ref TEXT NOT NULL, agent TEXT NOT NULL, ids TEXT) STRICT, WITHOUT ROWID",
      );
    },
  },
];
type Row = { key: string; ref: string; agent: string; ids: string | null };

export interface Deletion extends DeletedSession {
  readonly ids: readonly string[] | undefined;
}

export class DeletionStore {
  readonly #db: Database;
  /** Every message to a session asks, so the keys are kept in memory. */
  #keys: Set<string> | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  has(key: string): boolean {
    this.#keys ??= new Set(all<{ key: string }>(this.#db.sql, "SELECT key FROM session_deletions").map((row) => row.key));
    return this.#keys.has(key);
  }
  get count(): number {
    this.has("");
    return this.#keys?.size ?? 0;
  }
  /** In one transaction with `also`. A session that is being deleted already stays as it is. */
  begin(sessions: readonly DeletedSession[], also: () => void = () => undefined): void {
    try {
      this.#db.transactionSync(() => {
        for (const { key, ref, agentId } of sessions)
          run(this.#db.sql, "INSERT OR IGNORE INTO session_deletions(key, ref, agent) VALUES(?, ?, ?)", key, ref, agentId);
        also();
      });
    } finally {
      this.#keys = undefined;
    }
  }
  find(key: string): Deletion | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM session_deletions WHERE key = ?", key);
    return row && { key: row.key, ref: row.ref, agentId: row.agent, ids: row.ids === null ? undefined : (JSON.parse(row.ids) as string[]) };
  }
  first(limit: number): readonly string[] {
    return all<{ key: string }>(this.#db.sql, "SELECT key FROM session_deletions ORDER BY key LIMIT ?", limit).map(({ key }) => key);
  }
  noteIds(key: string, ids: readonly string[]): void {
    run(this.#db.sql, "UPDATE session_deletions SET ids = ? WHERE key = ?", JSON.stringify(ids), key);
  }
  cancel(key: string): void {
    run(this.#db.sql, "DELETE FROM session_deletions WHERE key = ?", key);
    this.#keys = undefined;
  }
  /** In one transaction with `also`, which removes what else names the session. */
  end(key: string, also: () => void): void {
    try {
      this.#db.transactionSync(() => {
        also();
        run(this.#db.sql, "DELETE FROM held_sessions WHERE key = ?", key);
        run(this.#db.sql, "DELETE FROM session_deletions WHERE key = ?", key);
      });
    } finally {
      this.#keys = undefined;
    }
  }
}
