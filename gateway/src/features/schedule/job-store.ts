/**
 * Jobs, and a row for each of their times that came (rule SC1). A row is written before anything is done for it, in one transaction with
 * the job's next time; it is unique by job and time, so that a time is never taken twice.
 */
import type { CronOutcome } from "../../../../protocol/gen/types.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { Due } from "../../schedule/schedule.ts";
import { type BeatBody, isBeatId, type Job, type JobBody, type JobRun, nounOf, type RunBody } from "./job.ts";

/** Why a time is not begun. */
export const STOPPED = { reason: "stopped", error: "GSV is stopped." } as const;
const GOES_ON = { reason: "busy", error: "The run before still goes on." } as const;
type JobRow = {
  id: string;
  agent: string;
  body: string;
  enabled: number;
  next_at: number | null;
  looked_at: number;
  failures: number;
  paused: string | null;
};
type RunRow = { id: number; job: string; ts: number; status: string; body: string; check_at: number | null; tries: number };

export const MAX_JOBS = 200;
/** Runs that are kept of each job, and of all jobs together that were removed after their run. */
const RUNS_KEPT = 200;
/** In one pass of the alarm. */
const DUE_AT_ONCE = 50;
/** As beatId makes them. */
const isBeat = (column: string): string => `(${column} >= 'heartbeat:' AND ${column} < 'heartbeat;')`;
/** Heartbeats and the jobs of hooks, which the owner keeps elsewhere. */
const IS_KEPT_ELSEWHERE = "(instr(id, ':') > 0)";
/** A time waits for a run that a hook has caused: no sender keeps a job from its own times. */
const IS_WOKEN = "id IN (SELECT job FROM cron_runs WHERE check_at IS NOT NULL AND json_extract(body, '$.given') IS NOT NULL)";
const DUE = `NOT ${IS_WOKEN} AND enabled = 1 AND next_at IS NOT NULL AND (? = 0 OR json_extract(body, '$.schedule.kind') <> 'at')`;

export class JobStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  count(): number {
    return one<{ n: number }>(this.#db.sql, `SELECT count(*) AS n FROM cron_jobs WHERE NOT ${IS_KEPT_ELSEWHERE}`)?.n ?? 0;
  }
  find(id: string): Job | undefined {
    const row = one<JobRow>(this.#db.sql, "SELECT * FROM cron_jobs WHERE id = ?", id);
    return row === undefined ? undefined : jobOf(row);
  }
  /** The heartbeats of all agents. */
  beats(): readonly Job[] {
    return all<JobRow>(this.#db.sql, `SELECT * FROM cron_jobs WHERE ${isBeat("id")} ORDER BY id`).map(jobOf);
  }
  /** Jobs without heartbeats and without those of hooks. The next to run first; those without a next time last. */
  list(): readonly Job[] {
    return all<JobRow>(
      this.#db.sql,
      `SELECT * FROM cron_jobs WHERE NOT ${IS_KEPT_ELSEWHERE} ORDER BY next_at IS NULL OR enabled = 0, next_at, id`,
    ).map(jobOf);
  }
  /** False: there are as many jobs as there may be. */
  add(job: Job): boolean {
    return this.#db.transactionSync(() => {
      if (this.count() >= MAX_JOBS) return false;
      this.#leaveEarlier(job.id);
      this.#write(job);
      return true;
    });
  }
  /**
   * A new job has nothing of a removed one with its id: rows of that one would take its times, and a run of it that goes on would end as a
   * run of the new job. Such a run keeps its row, under a name that no job has.
   */
  #leaveEarlier(id: string): void {
    run(this.#db.sql, "DELETE FROM cron_runs WHERE job = ? AND check_at IS NULL", id);
    run(this.#db.sql, "UPDATE cron_runs SET job = 'removed:' || id || ':' || job WHERE job = ?", id);
  }
  /** Beside the limit of jobs, for a hook: instead of an earlier job with this id, of which nothing stays. */
  keep(job: Job): void {
    this.#db.transactionSync(() => {
      this.#leaveEarlier(job.id);
      this.#write(job);
    });
  }
  update(job: Job): void {
    this.#write(job);
  }
  #write({ id, agentId, body, enabled, nextAt, lookedAt, failures, paused }: Job): void {
    run(
      this.#db.sql,
      `INSERT INTO cron_jobs(id, agent, body, enabled, next_at, looked_at, failures, paused) VALUES(?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT(id) DO UPDATE SET agent = excluded.agent, body = excluded.body, enabled = excluded.enabled, next_at = excluded.next_at,
         looked_at = excluded.looked_at, failures = excluded.failures, paused = excluded.paused`,
      id,
      agentId,
      JSON.stringify(body),
      enabled ? 1 : 0,
      nextAt ?? null,
      lookedAt,
      failures,
      paused ?? null,
    );
  }
  /** Its heartbeat included. */
  ofAgent(agentId: string): readonly Job[] {
    return all<JobRow>(this.#db.sql, "SELECT * FROM cron_jobs WHERE agent = ? ORDER BY id", agentId).map(jobOf);
  }
  /** The row of a run that goes on stays until the run ends. */
  remove(id: string): boolean {
    return this.#db.transactionSync(() => {
      const existed = this.find(id) !== undefined;
      run(this.#db.sql, "DELETE FROM cron_jobs WHERE id = ?", id);
      run(this.#db.sql, "DELETE FROM cron_runs WHERE job = ? AND check_at IS NULL", id);
      return existed;
    });
  }

  /** A heartbeat that is switched off. What happened stays, also what a run that goes on will have done. */
  retire(id: string): void {
    run(this.#db.sql, "DELETE FROM cron_jobs WHERE id = ?", id);
  }
  /** The heartbeat of an agent that is gone: an agent with its name has nothing of it. */
  forget(id: string): void {
    this.#db.transactionSync(() => {
      this.retire(id);
      this.#leaveEarlier(id);
    });
  }
  /** The heartbeats that have a row, or had one. */
  knownBeats(): readonly string[] {
    const rows = `SELECT id FROM cron_jobs WHERE ${isBeat("id")} UNION SELECT job AS id FROM cron_runs WHERE ${isBeat("job")}`;
    return all<{ id: string }>(this.#db.sql, rows).map(({ id }) => id);
  }

  /** `now`: a clock that was set back makes jobs due at once, so that their next times are worked out again. `repeating`: no others. */
  nextDue(now: number, repeating: boolean): number | undefined {
    const { at, looked } = one<{ at: number | null; looked: number | null }>(
      this.#db.sql,
      `SELECT min(next_at) AS at, max(looked_at) AS looked FROM cron_jobs WHERE ${DUE}`,
      repeating ? 1 : 0,
    ) ?? { at: null, looked: null };
    return looked !== null && looked > now ? now : (at ?? undefined);
  }
  /** Jobs whose time has come, or whose next time was worked out by a clock that was set back since. */
  due(now: number, repeating: boolean): readonly Job[] {
    return all<JobRow>(
      this.#db.sql,
      `SELECT * FROM cron_jobs WHERE ${DUE} AND (next_at <= ? OR looked_at > ?) ORDER BY next_at, id LIMIT ?`,
      repeating ? 1 : 0,
      now,
      now,
      DUE_AT_ONCE,
    ).map(jobOf);
  }

  /**
   * Takes the times of a job that have come: a row for the time that runs, or that is skipped, and rows for those that are missed; and
   * the job's next time. Undefined: the job has changed meanwhile, or nothing runs.
   */
  take(job: Job, came: Due, next: number | undefined, now: number, isStopped: boolean): JobRun | undefined {
    return this.#db.transactionSync(() => {
      const current = this.find(job.id);
      if (current?.nextAt !== job.nextAt || !current?.enabled) return undefined;
      this.#write({ ...without(current, "nextAt"), ...(next === undefined ? {} : { nextAt: next }), lookedAt: now });
      const { missed, missedCount } = came;
      for (const ts of missed) this.#insert(job.id, ts, "missed", {}, undefined);
      const [oldest] = missed.slice(-1);
      if (missedCount > missed.length && oldest !== undefined)
        this.#insert(job.id, oldest - 1, "missed", { count: missedCount - missed.length }, undefined);
      if (came.start === undefined) return undefined;
      const skip = isStopped ? STOPPED : this.open(job.id) === undefined ? undefined : GOES_ON;
      if (skip !== undefined) this.#insert(job.id, came.start, "skipped", { ...skip, endedAt: now }, undefined);
      const taken = skip === undefined ? this.#insert(job.id, came.start, "waiting", {}, now) : undefined;
      this.#prune(job.id);
      return taken;
    });
  }
  /** A run beside the schedule. Undefined: one goes on. `cause`: what a hook has brought, or how far the chain has come that it belongs to. */
  takeByHand(jobId: string, now: number, cause: Pick<RunBody, "given" | "hops"> = {}): JobRun | undefined {
    return this.#db.transactionSync(() => {
      if (this.open(jobId) !== undefined) return undefined;
      let ts = now;
      while (one(this.#db.sql, "SELECT 1 AS x FROM cron_runs WHERE job = ? AND ts = ?", jobId, ts) !== undefined) ts++;
      const taken = this.#insert(jobId, ts, "waiting", { byHand: true, ...cause }, now);
      this.#prune(jobId);
      return taken;
    });
  }
  /** A time that has a row already stays as it is. */
  #insert(jobId: string, ts: number, status: CronOutcome, body: RunBody, checkAt: number | undefined): JobRun | undefined {
    const row = one<RunRow>(
      this.#db.sql,
      "INSERT INTO cron_runs(job, ts, status, body, check_at, tries) VALUES(?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING RETURNING *",
      jobId,
      ts,
      status,
      JSON.stringify(body),
      checkAt ?? null,
    );
    return row === undefined ? undefined : runOf(row);
  }
  #prune(jobId: string): void {
    run(
      this.#db.sql,
      `DELETE FROM cron_runs WHERE job = ? AND check_at IS NULL
         AND id <= (SELECT id FROM cron_runs WHERE job = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
      jobId,
      jobId,
      RUNS_KEPT,
    );
  }

  /** The rows of a job that was removed after its run stay, so that the owner can look at them. */
  #pruneRemoved(): void {
    const removed = "check_at IS NULL AND job NOT IN (SELECT id FROM cron_jobs)";
    run(
      this.#db.sql,
      `DELETE FROM cron_runs WHERE ${removed} AND id <= (SELECT id FROM cron_runs WHERE ${removed} ORDER BY id DESC LIMIT 1 OFFSET ?)`,
      RUNS_KEPT,
    );
  }

  /** How many of the last runs of a job that hooks have caused failed in a row; `most` of them are looked at. */
  wokenFailures(jobId: string, most: number): number {
    const last = all<{ status: string }>(
      this.#db.sql,
      `SELECT status FROM cron_runs WHERE job = ? AND check_at IS NULL AND json_extract(body, '$.given') IS NOT NULL
         ORDER BY id DESC LIMIT ?`,
      jobId,
      most,
    );
    const ok = last.findIndex(({ status }) => status !== "error");
    return ok < 0 ? last.length : ok;
  }
  /** The run of a job that has not ended. */
  open(jobId: string): JobRun | undefined {
    const row = one<RunRow>(this.#db.sql, "SELECT * FROM cron_runs WHERE job = ? AND check_at IS NOT NULL", jobId);
    return row === undefined ? undefined : runOf(row);
  }
  /** Runs of all jobs that have not ended, the first taken first. */
  allOpen(): readonly JobRun[] {
    return all<RunRow>(this.#db.sql, "SELECT * FROM cron_runs WHERE check_at IS NOT NULL ORDER BY id").map(runOf);
  }
  /** Whether there is a job with this id, or a row of a removed one. */
  isKnown(id: string): boolean {
    return this.find(id) !== undefined || one(this.#db.sql, "SELECT 1 AS x FROM cron_runs WHERE job = ? LIMIT 1", id) !== undefined;
  }
  runById(id: number): JobRun | undefined {
    const row = one<RunRow>(this.#db.sql, "SELECT * FROM cron_runs WHERE id = ?", id);
    return row === undefined ? undefined : runOf(row);
  }
  lastEnded(jobId: string): JobRun | undefined {
    const ended = "job = ? AND check_at IS NULL AND status <> 'missed'";
    const row = one<RunRow>(this.#db.sql, `SELECT * FROM cron_runs WHERE ${ended} ORDER BY id DESC LIMIT 1`, jobId);
    return row === undefined ? undefined : runOf(row);
  }
  /** A heartbeat that wakes the model: its marks and its row are one step, so that a crash does not look again. */
  wake(
    job: Job,
    id: number,
    found: Pick<BeatBody, "marks" | "failing">,
    said: Pick<RunBody, "because" | "failing">,
    checkAt: number,
  ): void {
    this.#db.transactionSync(() => {
      this.mark(job.id, found);
      this.change(id, { body: said, checkAt });
    });
  }
  /** Keeps what a look has found. */
  mark(jobId: string, found: Pick<BeatBody, "marks" | "failing">): void {
    const current = this.find(jobId);
    if (current?.body.beat !== undefined) this.#write({ ...current, body: { ...current.body, beat: { ...current.body.beat, ...found } } });
  }
  /** The newest first; without a job those of all jobs, and no heartbeats. `agentId`: none of other agents' jobs. */
  runs(jobId: string | undefined, beforeId: number, limit: number, agentId?: string): readonly JobRun[] {
    return all<RunRow>(
      this.#db.sql,
      `SELECT * FROM cron_runs WHERE ((? = '' AND instr(job, ':') = 0) OR job = ?) AND id < ?
         AND (? = '' OR job NOT IN (SELECT id FROM cron_jobs WHERE agent <> ?)) ORDER BY id DESC LIMIT ?`,
      jobId ?? "",
      jobId ?? "",
      beforeId,
      agentId ?? "",
      agentId ?? "",
      limit,
    ).map(runOf);
  }
  /** A machine is connected: runs that waited for it are looked at now. */
  lookAtWaiting(nodeId: string, now: number): void {
    for (const { id, body } of this.allOpen()) if (body.waiting?.includes(nodeId)) this.change(id, { checkAt: now });
  }
  nextCheck(): number | undefined {
    return (
      one<{ at: number | null }>(this.#db.sql, "SELECT min(check_at) AS at FROM cron_runs WHERE check_at IS NOT NULL")?.at ?? undefined
    );
  }
  /** False: the run has ended already. */
  change(
    id: number,
    change: { readonly status?: CronOutcome; readonly body?: Partial<RunBody>; readonly checkAt: number; readonly tries?: number },
  ): boolean {
    return this.#db.transactionSync(() => {
      const current = this.runById(id);
      if (current?.checkAt === undefined) return false;
      this.#rewrite(
        current,
        change.status ?? current.status,
        { ...current.body, ...change.body },
        change.checkAt,
        change.tries ?? current.tries,
      );
      return true;
    });
  }
  /**
   * Ends a run and counts the failures of its job; with `paused`, the job runs no more. Undefined: it has ended already. A job that is
   * removed after its run is removed here. `isUncounted`: the job is not to blame.
   */
  end(
    id: number,
    status: Exclude<CronOutcome, "running" | "waiting">,
    body: Partial<RunBody>,
    now: number,
    pauseAfter: { readonly failures: number; readonly reason: (error: string) => string },
    isUncounted = false,
  ): { readonly job: Job | undefined; readonly pausedNow: boolean } | undefined {
    return this.#db.transactionSync(() => {
      const current = this.runById(id);
      if (current?.checkAt === undefined) return undefined;
      const { given } = current.body;
      // The text has done its work, and may be long.
      const kept = given === undefined ? {} : { given: { ...given, text: "" } };
      this.#rewrite(current, status, { ...current.body, ...body, ...kept, endedAt: now }, undefined, current.tries);
      const job = this.find(current.jobId);
      if (job === undefined) {
        // A heartbeat that was switched off meanwhile keeps what happened.
        if (isBeatId(current.jobId)) this.#pruneRemoved();
        else run(this.#db.sql, "DELETE FROM cron_runs WHERE job = ? AND check_at IS NULL", current.jobId);
        return { job, pausedNow: false };
      }
      const removes = job.body.deleteAfterRun ?? (job.body.schedule.kind === "at" && status === "ok");
      if (removes && job.nextAt === undefined && current.body.byHand === undefined) {
        run(this.#db.sql, "DELETE FROM cron_jobs WHERE id = ?", job.id);
        this.#pruneRemoved();
        return { job, pausedNow: false };
      }
      // A failure of a hook's delivery says nothing about the job's own times.
      const isOthers = given !== undefined && nounOf(job) === "job";
      if (status === "skipped" || isUncounted || isOthers) return { job, pausedNow: false };
      const failures = status === "error" ? job.failures + 1 : 0;
      const pausedNow = failures >= pauseAfter.failures && job.enabled && job.nextAt !== undefined;
      this.#write({
        ...job,
        failures,
        ...(pausedNow ? { enabled: false, paused: pauseAfter.reason(body.error ?? "").slice(0, 512) } : {}),
      });
      return { job, pausedNow };
    });
  }
  #rewrite({ id }: JobRun, status: CronOutcome, body: RunBody, checkAt: number | undefined, tries: number): void {
    run(
      this.#db.sql,
      "UPDATE cron_runs SET status = ?, body = ?, check_at = ?, tries = ? WHERE id = ?",
      status,
      JSON.stringify(body),
      checkAt ?? null,
      tries,
      id,
    );
  }
}
function without<T extends object, K extends keyof T>(value: T, key: K): Omit<T, K> {
  const { [key]: _removed, ...rest } = value;
  return rest;
}
const jobOf = (row: JobRow): Job => ({
  id: row.id,
  agentId: row.agent,
  body: JSON.parse(row.body) as JobBody,
  enabled: row.enabled === 1,
  ...(row.next_at === null ? {} : { nextAt: row.next_at }),
  lookedAt: row.looked_at,
  failures: row.failures,
  ...(row.paused === null ? {} : { paused: row.paused }),
});
const runOf = (row: RunRow): JobRun => ({
  id: row.id,
  jobId: row.job,
  ts: row.ts,
  status: row.status as CronOutcome,
  body: JSON.parse(row.body) as RunBody,
  ...(row.check_at === null ? {} : { checkAt: row.check_at }),
  tries: row.tries,
});
