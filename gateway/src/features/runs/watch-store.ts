/** Tasks whose end must be told (rule EV13), until it is. */
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface TaskWatch {
  readonly id: string;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly hops: number;
  /** Looks that failed one after another. */
  readonly tries: number;
  /** Looks that found the task under way. */
  readonly looks: number;
}
type Row = { id: string; agent_id: string; session_key: string; hops: number; tries: number; looks: number };
const AT_ONCE = 50;
/** Until the first look. Each later pause is longer by this. */
export const LOOK_STEP_MS = 15_000;

export class WatchStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }
  add({ id, agentId, sessionKey, hops }: Omit<TaskWatch, "tries" | "looks">, lookAt: number): void {
    run(
      this.#db.sql,
      "INSERT INTO task_watches(id, agent_id, session_key, hops, look_at, tries) VALUES(?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING",
      id,
      agentId,
      sessionKey,
      hops,
      lookAt,
    );
  }
  next(): number | undefined {
    return one<{ at: number | null }>(this.#db.sql, "SELECT min(look_at) AS at FROM task_watches")?.at ?? undefined;
  }
  due(now: number): readonly TaskWatch[] {
    const rows = all<Row>(this.#db.sql, "SELECT * FROM task_watches WHERE look_at <= ? ORDER BY look_at LIMIT ?", now, AT_ONCE);
    return rows.map(({ agent_id: agentId, session_key: sessionKey, id, hops, tries, looks }) => ({
      id,
      agentId,
      sessionKey,
      hops,
      tries,
      looks,
    }));
  }
  again(id: string, lookAt: number, { tries, looks }: Pick<TaskWatch, "tries" | "looks">): void {
    run(this.#db.sql, "UPDATE task_watches SET look_at = ?, tries = ?, looks = ? WHERE id = ?", lookAt, tries, looks, id);
  }
  /** The task has news. */
  soon(id: string, now: number): void {
    run(this.#db.sql, "UPDATE task_watches SET look_at = ? WHERE id = ? AND look_at > ?", now, id, now);
  }
  remove(id: string): void {
    run(this.#db.sql, "DELETE FROM task_watches WHERE id = ?", id);
  }
  forget(sessionKey: string): void {
    run(this.#db.sql, "DELETE FROM task_watches WHERE session_key = ?", sessionKey);
  }
}
