/** Machines that runs of jobs have waited for (rule OM8): which job needs which machine, and whether its absence was reported. */
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface Need {
  readonly nodeId: string;
  readonly jobId: string;
  /** The machine has been connected since then: the need is over. */
  readonly neededAt: number;
}
type Row = { node: string; job: string; needed_at: number };

export class NeedStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** A run of the job waits for the machine. `connectedAt`: when the machine was connected last. */
  note(nodeId: string, jobId: string, connectedAt: number, now: number): void {
    const { sql } = this.#db;
    const known = one<{ needed_at: number }>(sql, "SELECT needed_at FROM cron_needs WHERE node = ?", nodeId);
    if (known !== undefined && connectedAt <= known.needed_at) return;
    run(sql, "INSERT OR REPLACE INTO cron_needs(node, job, needed_at, reported) VALUES(?, ?, ?, 0)", nodeId, jobId, now);
  }
  /** Those whose absence was not reported. */
  open(): readonly Need[] {
    return all<Row>(this.#db.sql, "SELECT node, job, needed_at FROM cron_needs WHERE reported = 0 ORDER BY node").map((row) => ({
      nodeId: row.node,
      jobId: row.job,
      neededAt: row.needed_at,
    }));
  }
  reported(nodeId: string): void {
    run(this.#db.sql, "UPDATE cron_needs SET reported = 1 WHERE node = ?", nodeId);
  }
  forget(nodeId: string): void {
    run(this.#db.sql, "DELETE FROM cron_needs WHERE node = ?", nodeId);
  }
}
