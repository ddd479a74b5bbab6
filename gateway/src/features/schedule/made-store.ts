/** Calls of runs that made or changed jobs in the last 24 hours (rule SC11). A job that is removed after its run stays counted. */
import { DAY_MS } from "../../../../protocol/runtime/day.ts";
import { all, type Database, run } from "../../platform/sql.ts";
import type { JobMaker } from "../../ports/schedule.ts";

/** Jobs of one agent that are listed. More than any limit: only an owner who allows each call comes this far. */
const LISTED = 64;

export class MadeStore {
  readonly #db: Database;
  /** The times of all that are stored: each message asks for the version. */
  #times: readonly number[] | undefined;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The same call again counts once. */
  note(agentId: string, { callId, runId }: JobMaker, now: number): void {
    const { sql } = this.#db;
    this.#times = undefined;
    run(sql, "DELETE FROM cron_made WHERE at <= ?", now - DAY_MS);
    run(sql, "INSERT INTO cron_made(call, agent, run, at) VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING", callId, agentId, runId, now);
  }
  /** The runs of an agent's calls, the last ones first. */
  runsOf(agentId: string, now: number): readonly string[] {
    return all<{ run: string }>(
      this.#db.sql,
      "SELECT run FROM cron_made WHERE agent = ? AND at > ? ORDER BY at DESC, call LIMIT ?",
      agentId,
      now - DAY_MS,
      LISTED,
    ).map((row) => row.run);
  }
  /** Changes with each call that counts, and when one counts no more. */
  version(now: number): string {
    this.#times ??= all<{ at: number }>(this.#db.sql, "SELECT at FROM cron_made ORDER BY at").map(({ at }) => at);
    const counted = this.#times.filter((at) => at > now - DAY_MS);
    return `${counted.length}.${counted.at(-1) ?? 0}`;
  }
}
