/** The rows of runs that wait for the export of their traces, and how the last export ended (rule OT4). Decides nothing about traces. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type Database, one, run } from "../../platform/sql.ts";

export interface WaitingRun {
  readonly id: number;
  readonly sessionKey: string;
  readonly runId: string;
  /** The run at the top of the delegations; the run itself when it was not delegated. */
  readonly rootKey: string;
  readonly rootRun: string;
  /** The call that handed the task on. */
  readonly parentCall: string | undefined;
  readonly dueAt: number;
  /** Failures to read the run's record. */
  readonly tries: number;
}
type Row = {
  id: number;
  session_key: string;
  run_id: string;
  root_key: string;
  root_run: string;
  parent_call: string | null;
  due_at: number;
  tries: number;
};
export interface TelemetryState {
  readonly exported: number;
  readonly dropped: number;
  /** Failures of the collector in a row. */
  readonly tries: number;
  readonly exportedAt: number | undefined;
  readonly failedAt: number | undefined;
  readonly problem: string | undefined;
  readonly pausedUntil: number | undefined;
  /** The configuration's version at which the pause began: another one ends it. */
  readonly pausedVersion: number | undefined;
}
type StateRow = {
  exported: number;
  dropped: number;
  tries: number;
  exported_at: number | null;
  failed_at: number | null;
  problem: string | null;
  paused_until: number | null;
  paused_version: number | null;
};
const MAX_PROBLEM = 300;

export class TelemetryStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** A run that waits already stays as it is. */
  add(waiting: Omit<WaitingRun, "id" | "tries">): void {
    const { sql } = this.#db;
    this.#db.transactionSync(() => {
      run(
        sql,
        `INSERT INTO telemetry_runs(session_key, run_id, root_key, root_run, parent_call, due_at, tries) VALUES(?, ?, ?, ?, ?, ?, 0)
          ON CONFLICT DO NOTHING`,
        waiting.sessionKey,
        waiting.runId,
        waiting.rootKey,
        waiting.rootRun,
        waiting.parentCall ?? null,
        waiting.dueAt,
      );
      const over = this.waiting() - LIMITS.telemetryRuns;
      if (over <= 0) return;
      run(sql, "DELETE FROM telemetry_runs WHERE id IN (SELECT id FROM telemetry_runs ORDER BY id LIMIT ?)", over);
      run(sql, "UPDATE telemetry_state SET dropped = dropped + ?", over);
    });
  }
  waiting(): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM telemetry_runs")?.n ?? 0;
  }
  nextDue(): number | undefined {
    return one<{ at: number | null }>(this.#db.sql, "SELECT min(due_at) AS at FROM telemetry_runs")?.at ?? undefined;
  }
  /** The one that was due first. */
  due(now: number): WaitingRun | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM telemetry_runs WHERE due_at <= ? ORDER BY due_at, id LIMIT 1", now);
    return (
      row && {
        id: row.id,
        sessionKey: row.session_key,
        runId: row.run_id,
        rootKey: row.root_key,
        rootRun: row.root_run,
        parentCall: row.parent_call ?? undefined,
        dueAt: row.due_at,
        tries: row.tries,
      }
    );
  }
  /** `problem`: the collector took only a part. */
  exported(id: number, now: number, problem?: string): void {
    const { sql } = this.#db;
    this.#db.transactionSync(() => {
      run(sql, "DELETE FROM telemetry_runs WHERE id = ?", id);
      run(
        sql,
        `UPDATE telemetry_state SET exported = exported + 1, exported_at = ?, tries = 0, paused_until = NULL, paused_version = NULL,
          problem = ?, failed_at = coalesce(?, failed_at)`,
        now,
        problem?.slice(0, MAX_PROBLEM) ?? null,
        problem === undefined ? null : now,
      );
    });
  }
  /** Will not be exported. */
  drop(id: number, problem: string, now: number): void {
    const { sql } = this.#db;
    this.#db.transactionSync(() => {
      run(sql, "DELETE FROM telemetry_runs WHERE id = ?", id);
      run(sql, "UPDATE telemetry_state SET dropped = dropped + 1, problem = ?, failed_at = ?", problem.slice(0, MAX_PROBLEM), now);
    });
  }
  /** The run's record could not be read. */
  later(id: number, dueAt: number): void {
    run(this.#db.sql, "UPDATE telemetry_runs SET tries = tries + 1, due_at = ? WHERE id = ?", dueAt, id);
  }
  /** The collector takes nothing now. The run goes behind the others that wait: it may be the only one that is not taken. */
  pause(id: number, problem: string, now: number, until: number, version: number): void {
    const { sql } = this.#db;
    this.#db.transactionSync(() => {
      run(sql, "UPDATE telemetry_runs SET due_at = ? WHERE id = ?", until, id);
      run(
        sql,
        "UPDATE telemetry_state SET tries = tries + 1, problem = ?, failed_at = ?, paused_until = ?, paused_version = ?",
        problem.slice(0, MAX_PROBLEM),
        now,
        until,
        version,
      );
    });
  }
  /** Other settings than those of the pause end it, also for the run that waits for its end. */
  resume(version: number): void {
    const { sql } = this.#db;
    const { pausedUntil, pausedVersion, failedAt } = this.state();
    if (pausedUntil === undefined || pausedVersion === version) return;
    this.#db.transactionSync(() => {
      run(sql, "UPDATE telemetry_runs SET due_at = ? WHERE due_at = ?", failedAt ?? 0, pausedUntil);
      run(sql, "UPDATE telemetry_state SET paused_until = NULL, paused_version = NULL");
    });
  }
  state(): TelemetryState {
    const row = one<StateRow>(this.#db.sql, "SELECT * FROM telemetry_state");
    return {
      exported: row?.exported ?? 0,
      dropped: row?.dropped ?? 0,
      tries: row?.tries ?? 0,
      exportedAt: row?.exported_at ?? undefined,
      failedAt: row?.failed_at ?? undefined,
      problem: row?.problem ?? undefined,
      pausedUntil: row?.paused_until ?? undefined,
      pausedVersion: row?.paused_version ?? undefined,
    };
  }
  /** The export was turned off: nothing waits, and nothing is wrong. */
  clear(): void {
    const { sql } = this.#db;
    this.#db.transactionSync(() => {
      run(sql, "DELETE FROM telemetry_runs");
      run(sql, "UPDATE telemetry_state SET tries = 0, problem = NULL, paused_until = NULL, paused_version = NULL");
    });
  }
  /** The conversation was deleted. */
  forget(sessionKey: string): void {
    run(this.#db.sql, "DELETE FROM telemetry_runs WHERE session_key = ?", sessionKey);
  }
}
