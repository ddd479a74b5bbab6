/** Jobs of which the object exists, and keys of requests, in the gateway's tables. What a job is and how it stands is in its object. */
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { JobTurn } from "../../ports/jobs.ts";
import type { Line } from "./turns.ts";

/** `storing`: the object may not have it yet. `granted`: it may begin, and has not said that it does. */
export type EntryState = "storing" | "queued" | "granted" | "running" | "awaiting_approval" | "ended";
export interface QueueEntry extends JobTurn {
  readonly state: EntryState;
  /** When the gateway looks whether the object goes on. */
  readonly lookAt?: number;
}
type Row = {
  id: string;
  tenant_id: string;
  agent_id: string;
  body_sha256: string;
  state: string;
  created_at: number;
  look_at: number | null;
};
const entryOf = (row: Row): QueueEntry => ({
  id: row.id,
  tenantId: row.tenant_id,
  agentId: row.agent_id,
  bodySha256: row.body_sha256,
  createdAt: row.created_at,
  state: row.state as EntryState,
  ...(row.look_at === null ? {} : { lookAt: row.look_at }),
});
const WAITING = "('storing', 'queued', 'granted')";
const RUNNING = "('granted', 'running')";
/** Jobs of one pass. */
const AT_ONCE = 100;

export class QueueStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }
  find(id: string): QueueEntry | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM agent_jobs WHERE id = ?", id);
    return row && entryOf(row);
  }
  add(turn: JobTurn, state: EntryState, lookAt: number | undefined): void {
    run(
      this.#db.sql,
      `INSERT INTO agent_jobs(id, tenant_id, agent_id, body_sha256, state, created_at, look_at) VALUES(?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT(id) DO NOTHING`,
      turn.id,
      turn.tenantId,
      turn.agentId,
      turn.bodySha256,
      state,
      turn.createdAt,
      lookAt ?? null,
    );
  }
  /** A new job, and the key of its request, in one transaction. */
  take(turn: JobTurn, keySha256: string | undefined, lookAt: number): void {
    this.#db.transactionSync(() => {
      this.add(turn, "storing", lookAt);
      if (keySha256 === undefined) return;
      run(
        this.#db.sql,
        `INSERT INTO agent_job_keys(key_sha256, job_id, created_at) VALUES(?, ?, ?)
          ON CONFLICT(key_sha256) DO UPDATE SET job_id = excluded.job_id, created_at = excluded.created_at`,
        keySha256,
        turn.id,
        turn.createdAt,
      );
    });
  }
  put(id: string, state: EntryState, lookAt: number | undefined): void {
    run(this.#db.sql, "UPDATE agent_jobs SET state = ?, look_at = ? WHERE id = ?", state, lookAt ?? null, id);
  }
  /** The state stays as it is. */
  lookAgain(id: string, at: number): void {
    run(this.#db.sql, "UPDATE agent_jobs SET look_at = ? WHERE id = ? AND look_at IS NOT NULL", at, id);
  }
  remove(id: string): void {
    this.#db.transactionSync(() => {
      run(this.#db.sql, "DELETE FROM agent_jobs WHERE id = ?", id);
      run(this.#db.sql, "DELETE FROM agent_job_keys WHERE job_id = ?", id);
    });
  }
  /** The job that a key has made since `since`. */
  byKey(keySha256: string, since: number): QueueEntry | undefined {
    const row = one<Row>(
      this.#db.sql,
      "SELECT j.* FROM agent_job_keys k JOIN agent_jobs j ON j.id = k.job_id WHERE k.key_sha256 = ? AND k.created_at > ?",
      keySha256,
      since,
    );
    return row && entryOf(row);
  }
  dropKeys(before: number): void {
    run(
      this.#db.sql,
      "DELETE FROM agent_job_keys WHERE key_sha256 IN (SELECT key_sha256 FROM agent_job_keys WHERE created_at <= ? LIMIT ?)",
      before,
      AT_ONCE,
    );
  }
  /** Jobs that have not begun. */
  waiting(): number {
    return this.#count(WAITING);
  }
  running(): number {
    return this.#count(RUNNING);
  }
  awaiting(): number {
    return this.#count("('awaiting_approval')");
  }
  hasQueued(): boolean {
    return one(this.#db.sql, "SELECT 1 AS found FROM agent_jobs WHERE state = 'queued' LIMIT 1") !== undefined;
  }
  #count(states: string): number {
    return one<{ n: number }>(this.#db.sql, `SELECT count(*) AS n FROM agent_jobs WHERE state IN ${states}`)?.n ?? 0;
  }
  /** The agents with jobs that wait or run, the one with the oldest waiting job first. */
  lines(): readonly Line[] {
    const rows = all<{ tenant_id: string; agent_id: string; first: number | null; running: number; turn: number | null }>(
      this.#db.sql,
      `SELECT j.tenant_id, j.agent_id, min(CASE WHEN j.state = 'queued' THEN j.seq END) AS first, sum(j.state <> 'queued') AS running, t.turn
        FROM agent_jobs j LEFT JOIN agent_job_turns t ON t.tenant_id = j.tenant_id AND t.agent_id = j.agent_id
        WHERE j.state IN ('queued', 'granted', 'running') GROUP BY j.tenant_id, j.agent_id
        ORDER BY first IS NULL, first`,
    );
    return rows.map(({ tenant_id, agent_id, first, running, turn }) => ({
      tenantId: tenant_id,
      agentId: agent_id,
      running,
      lastTurn: turn ?? 0,
      ...(first === null ? {} : { first: this.#idOf(first) }),
    }));
  }
  #idOf(seq: number): string {
    return one<{ id: string }>(this.#db.sql, "SELECT id FROM agent_jobs WHERE seq = ?", seq)?.id ?? "";
  }
  /** The job may begin, and its agent's turn is the last one. */
  grant(id: string, lookAt: number): void {
    this.#db.transactionSync(() => {
      this.put(id, "granted", lookAt);
      run(
        this.#db.sql,
        `INSERT INTO agent_job_turns(tenant_id, agent_id, turn)
          SELECT tenant_id, agent_id, 1 + coalesce((SELECT max(turn) FROM agent_job_turns), 0) FROM agent_jobs WHERE id = ?
          ON CONFLICT(tenant_id, agent_id) DO UPDATE SET turn = excluded.turn`,
        id,
      );
    });
  }
  nextLook(): number | undefined {
    return one<{ at: number | null }>(this.#db.sql, "SELECT min(look_at) AS at FROM agent_jobs WHERE look_at IS NOT NULL")?.at ?? undefined;
  }
  toLookAt(now: number): readonly QueueEntry[] {
    return all<Row>(
      this.#db.sql,
      "SELECT * FROM agent_jobs WHERE look_at IS NOT NULL AND look_at <= ? ORDER BY look_at LIMIT ?",
      now,
      AT_ONCE,
    ).map(entryOf);
  }
}
