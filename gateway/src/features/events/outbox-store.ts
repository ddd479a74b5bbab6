/** Events that the queue may not have yet. A row is written before the event is, and removed when the queue has taken it. */
import { all, type Database, one, run } from "../../platform/sql.ts";

const AT_ONCE = 50;
export interface Unsent {
  readonly tries: number;
  readonly dueAt: number;
}

export class OutboxStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }
  put(id: string, dueAt: number): void {
    const insert = "INSERT INTO event_outbox(id, due_at, tries) VALUES(?, ?, 0) ON CONFLICT(id) DO UPDATE SET due_at = excluded.due_at";
    run(this.#db.sql, insert, id, dueAt);
  }
  again(id: string, dueAt: number): void {
    run(this.#db.sql, "UPDATE event_outbox SET due_at = ?, tries = tries + 1 WHERE id = ?", dueAt, id);
  }
  /** Only as the caller knows the row: what was put since then is for a later change of the event. */
  remove(id: string, dueAt: number): void {
    run(this.#db.sql, "DELETE FROM event_outbox WHERE id = ? AND due_at = ?", id, dueAt);
  }
  next(): number | undefined {
    return one<{ at: number | null }>(this.#db.sql, "SELECT min(due_at) AS at FROM event_outbox")?.at ?? undefined;
  }
  due(now: number): readonly ({ readonly id: string } & Unsent)[] {
    return all<{ id: string; tries: number; dueAt: number }>(
      this.#db.sql,
      "SELECT id, tries, due_at AS dueAt FROM event_outbox WHERE due_at <= ? ORDER BY due_at LIMIT ?",
      now,
      AT_ONCE,
    );
  }
}
