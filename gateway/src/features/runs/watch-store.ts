/** Tasks whose end must be told (rule EV13), until it is. */
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface TaskWatch {
  readonly id: string;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly hops: number;
  /** Looks that failed one after another. */
  readonly tries: number;
}
type Row = { id: string; agent_id: string; session_key: string; hops: number; tries: number };
const AT_ONCE = 50;

export class WatchStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }
  add({ id, agentId, sessionKey, hops }: Omit<TaskWatch, "tries">, lookAt: number): void {
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
    return rows.map(({ id, agent_id, session_key, hops, tries }) => ({ id, agentId: agent_id, sessionKey: session_key, hops, tries }));
  }
  again(id: string, lookAt: number, tries: number): void {
    run(this.#db.sql, "UPDATE task_watches SET look_at = ?, tries = ? WHERE id = ?", lookAt, tries, id);
  }
  remove(id: string): void {
    run(this.#db.sql, "DELETE FROM task_watches WHERE id = ?", id);
  }
  forget(sessionKey: string): void {
    run(this.#db.sql, "DELETE FROM task_watches WHERE session_key = ?", sessionKey);
  }
}
