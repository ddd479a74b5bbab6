/** Tables of the skills feature. Released migrations never change. */
import type { HistoricalMigration } from "../../kernel/feature.ts";

export const SKILL_HISTORY: readonly HistoricalMigration[] = [
  {
    position: 3,
    name: "skills: what was approved",
    up: (sql) => {
      sql.exec(`CREATE TABLE skill_pins(
        agent_id TEXT NOT NULL, name TEXT NOT NULL, sha256 TEXT NOT NULL, approved_at INTEGER NOT NULL, approved_by TEXT NOT NULL,
        next_sha256 TEXT, next_at INTEGER, next_by TEXT, PRIMARY KEY(agent_id, name)
      ) STRICT, WITHOUT ROWID`);
    },
  },
];
