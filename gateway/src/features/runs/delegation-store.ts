/** Tasks that runs have handed to other agents (rule DG5). How they went is in the logs of their conversations. */
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface DelegatedTask {
  readonly id: string;
  readonly agentId: string;
  /** The agent's name, as the run has called it. */
  readonly name: string;
  /** The conversation and the run that handed it on. */
  readonly parentKey: string;
  readonly parentRun: string;
  readonly callId: string;
  readonly sessionKey: string;
}
type Row = { id: string; agent_id: string; name: string; parent_key: string; parent_run: string; call_id: string; session_key: string };
const taskOf = (row: Row): DelegatedTask => ({
  id: row.id,
  agentId: row.agent_id,
  name: row.name,
  parentKey: row.parent_key,
  parentRun: row.parent_run,
  callId: row.call_id,
  sessionKey: row.session_key,
});
/** Delegated tasks of one run: as many as its steps could hand on. */
const OF_ONE_RUN = 1_000;

export class DelegationStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }
  find(id: string): DelegatedTask | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM delegations WHERE id = ?", id);
    return row && taskOf(row);
  }
  /** How long the task has waited for the owner and for machines, as far as it was looked at. */
  waitedMs(id: string): number {
    return one<{ ms: number }>(this.#db.sql, "SELECT waited_ms AS ms FROM delegations WHERE id = ?", id)?.ms ?? 0;
  }
  waited(id: string, ms: number): void {
    run(this.#db.sql, "UPDATE delegations SET waited_ms = max(waited_ms, ?) WHERE id = ?", Math.round(ms), id);
  }
  add({ id, agentId, name, parentKey, parentRun, callId, sessionKey }: DelegatedTask): void {
    run(
      this.#db.sql,
      `INSERT INTO delegations(id, agent_id, name, parent_key, parent_run, call_id, session_key, open, waited_ms)
        VALUES(?, ?, ?, ?, ?, ?, ?, 1, 0)
        ON CONFLICT DO NOTHING`,
      id,
      agentId,
      name,
      parentKey,
      parentRun,
      callId,
      sessionKey,
    );
  }
  /** Those that some run may wait for. */
  open(): readonly DelegatedTask[] {
    return all<Row>(this.#db.sql, "SELECT * FROM delegations WHERE open = 1").map(taskOf);
  }
  countOpen(): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM delegations WHERE open = 1")?.n ?? 0;
  }
  /** Whether an open task was handed on by a run of this conversation. */
  isAbove(parentKey: string): boolean {
    return one(this.#db.sql, "SELECT 1 AS found FROM delegations WHERE open = 1 AND parent_key = ? LIMIT 1", parentKey) !== undefined;
  }
  close(id: string): void {
    run(this.#db.sql, "UPDATE delegations SET open = 0 WHERE id = ?", id);
  }
  /** Handed on by this run, in the order in which they were. */
  of(parentKey: string, parentRun: string): readonly DelegatedTask[] {
    return all<Row>(
      this.#db.sql,
      "SELECT * FROM delegations WHERE parent_key = ? AND parent_run = ? ORDER BY rowid LIMIT ?",
      parentKey,
      parentRun,
      OF_ONE_RUN,
    ).map(taskOf);
  }
  /** The task of a conversation. */
  behind(sessionKey: string): DelegatedTask | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM delegations WHERE session_key = ?", sessionKey);
    return row && taskOf(row);
  }
  /** The conversation of a task was deleted. */
  remove(sessionKey: string): void {
    run(this.#db.sql, "DELETE FROM delegations WHERE session_key = ?", sessionKey);
  }
}
