/** Tasks that were taken, by their keys (rule RT4). What became of a task is in the log of its conversation. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface Task {
  readonly id: string;
  readonly agentId: string;
  /** Undefined: the conversation was deleted, and the report with it. */
  readonly sessionKey: string | undefined;
  /** The digest of the request. */
  readonly bodySha256: string;
  readonly createdAt: number;
}
type Row = { id: string; agent_id: string; session_key: string; body_sha256: string; created_at: number };
const taskOf = (row: Row): Task => ({
  id: row.id,
  agentId: row.agent_id,
  sessionKey: row.session_key === GONE ? undefined : row.session_key,
  bodySha256: row.body_sha256,
  createdAt: row.created_at,
});
/** The key of a conversation that was deleted. */
const GONE = "";
const KEPT_MS = LIMITS.taskDays * 86_400_000;
/** Expired tasks of one pass of the alarm. */
const OVER_AT_ONCE = 100;

export class TaskStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }
  find(id: string): Task | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM tasks WHERE id = ?", id);
    return row && taskOf(row);
  }
  add({ id, agentId, sessionKey, bodySha256, createdAt }: Task & { readonly sessionKey: string }): void {
    run(
      this.#db.sql,
      "INSERT INTO tasks(id, agent_id, session_key, body_sha256, created_at) VALUES(?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
      id,
      agentId,
      sessionKey,
      bodySha256,
      createdAt,
    );
  }
  /** When the oldest task is to be deleted (rule RT6). */
  nextRemoval(): number | undefined {
    const oldest = one<{ at: number | null }>(this.#db.sql, "SELECT min(created_at) AS at FROM tasks")?.at ?? undefined;
    return oldest === undefined ? undefined : oldest + KEPT_MS;
  }
  /** Those whose time has come. */
  old(now: number): readonly Task[] {
    return all<Row>(this.#db.sql, "SELECT * FROM tasks WHERE created_at <= ? ORDER BY created_at LIMIT ?", now - KEPT_MS, OVER_AT_ONCE).map(
      taskOf,
    );
  }
  /** The row stays: the same request does nothing again (rule RT3). */
  sessionGone(sessionKey: string): void {
    run(this.#db.sql, "UPDATE tasks SET session_key = ? WHERE session_key = ?", GONE, sessionKey);
  }
  remove(id: string): void {
    run(this.#db.sql, "DELETE FROM tasks WHERE id = ?", id);
  }
}
