/** The tables of jobs and of what became of their times. */
import type { Migration } from "../../platform/sql.ts";

export const SCHEDULE_MIGRATIONS: readonly Migration[] = [
  {
    name: "jobs, runs of jobs",
    up: (sql) => {
      sql.exec(`CREATE TABLE cron_jobs(
        id TEXT PRIMARY KEY, agent TEXT NOT NULL, body TEXT NOT NULL, enabled INTEGER NOT NULL, next_at INTEGER, looked_at INTEGER NOT NULL,
        failures INTEGER NOT NULL, paused TEXT
      ) STRICT, WITHOUT ROWID`);
      sql.exec("CREATE INDEX cron_jobs_next ON cron_jobs(next_at) WHERE enabled = 1 AND next_at IS NOT NULL");
      sql.exec(`CREATE TABLE cron_runs(
        id INTEGER PRIMARY KEY AUTOINCREMENT, job TEXT NOT NULL, ts INTEGER NOT NULL, status TEXT NOT NULL, body TEXT NOT NULL,
        check_at INTEGER, tries INTEGER NOT NULL, UNIQUE(job, ts)
      ) STRICT`);
      sql.exec("CREATE INDEX cron_runs_check ON cron_runs(check_at) WHERE check_at IS NOT NULL");
    },
  },
  {
    name: "machines that jobs need",
    up: (sql) => {
      sql.exec(`CREATE TABLE cron_needs(
        node TEXT PRIMARY KEY, job TEXT NOT NULL, needed_at INTEGER NOT NULL, reported INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`);
    },
  },
  {
    name: "calls that made or changed jobs",
    up: (sql) => {
      sql.exec(`CREATE TABLE cron_made(
        call TEXT PRIMARY KEY, agent TEXT NOT NULL, run TEXT NOT NULL, at INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`);
    },
  },
];
