/** What must be known of transfers before their part is loaded: whether there is something to do, and when. Decides nothing. */
import { type Database, one, run } from "../../platform/sql.ts";

export class OpenTransfers {
  readonly #db: Database;
  constructor(db: Database) {
    this.#db = db;
  }

  isAny(): boolean {
    return one(this.#db.sql, "SELECT 1 AS found FROM transfers WHERE ended_at IS NULL LIMIT 1") !== undefined;
  }
  /** Open ones of clients. */
  ofClients(): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM transfers WHERE ended_at IS NULL AND session_key IS NULL")?.n ?? 0;
  }
  /** A conversation is deleted, and needs no word. */
  forgetSession(key: string): void {
    run(this.#db.sql, "UPDATE transfers SET tell = NULL WHERE session_key = ?", key);
  }
  /** A machine that connects may have to go on with one, or to remove what an ended one has left there. */
  concerns(nodeId: string): boolean {
    return this.isAny() || one(this.#db.sql, "SELECT 1 AS found FROM transfers WHERE leftover = ? LIMIT 1", nodeId) !== undefined;
  }
  /** When an open one is looked at, or an ended one is removed, or its parts. */
  nextDue(): number | undefined {
    const { due, parts } = one<{ due: number | null; parts: number | null }>(
      this.#db.sql,
      "SELECT (SELECT min(due_at) FROM transfers) AS due, (SELECT min(parts_at) FROM transfers WHERE parts_at IS NOT NULL) AS parts",
    ) ?? { due: null, parts: null };
    return due === null ? undefined : Math.min(due, parts ?? due);
  }
}
