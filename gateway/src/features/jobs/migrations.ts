/** Tables of the jobs feature. Released migrations never change. */
import type { Migration } from "../../platform/sql.ts";

export const JOB_MIGRATIONS: readonly Migration[] = [
  {
    name: "jobs: queue, keys and turns",
    up: (sql) => {
      sql.exec(`CREATE TABLE agent_jobs(
        seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant_id TEXT NOT NULL, agent_id TEXT NOT NULL, body_sha256 TEXT NOT NULL,
        state TEXT NOT NULL, created_at INTEGER NOT NULL, look_at INTEGER
      ) STRICT`);
      sql.exec("CREATE INDEX agent_jobs_by_turn ON agent_jobs(state, tenant_id, agent_id, seq)");
      sql.exec("CREATE INDEX agent_jobs_by_look ON agent_jobs(look_at) WHERE look_at IS NOT NULL");
      sql.exec(`CREATE TABLE agent_job_keys(
        key_sha256 TEXT PRIMARY KEY, job_id TEXT NOT NULL, created_at INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID`);
      sql.exec("CREATE INDEX agent_job_keys_by_age ON agent_job_keys(created_at)");
      sql.exec(`CREATE TABLE agent_job_turns(
        tenant_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn INTEGER NOT NULL, PRIMARY KEY(tenant_id, agent_id)
      ) STRICT, WITHOUT ROWID`);
    },
  },
];
