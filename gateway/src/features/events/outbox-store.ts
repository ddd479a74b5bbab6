/** Events that the queue may not have yet. A row is written before the event is, and removed when the queue has taken it. */
import { all, type Database, one, run } from "../../platform/sql.ts";

const AT_ONCE = 50;

export class OutboxStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }
  put(id: string, dueAt: number): void {
    run(this.#db.sql, "INSERT INTO event_outbox(id, due_at, tries) VALUES(?, ?, 0) ON CONFLICT(id) DO NOTHING", id, dueAt);
  }
  again(id: string, dueAt: number): void {
    run(this.#db.sql, "UPDATE event_outbox SET due_at = ?, tries = tries + 1 WHERE id = ?", dueAt, id);
  }
  remove(id: string): void {
    run(this.#db.sql, "DELETE FROM event_outbox WHERE id = ?", id);
  }
  next(): number | undefined {
    return one<{ at: number | null }>(this.#db.sql, "SELECT min(due_at) AS at FROM event_outbox")?.at ?? undefined;
  }
  due(now: number): readonly { readonly id: string; readonly tries: number }[] {
    return all<{ id: string; tries: number }>(
      this.#db.sql,
      "SELECT id, tries FROM event_outbox WHERE due_at <= ? ORDER BY due_at LIMIT ?",
      now,
      AT_ONCE,
    );
  }
}
