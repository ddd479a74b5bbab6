/**
 * Stores the approvals of skills: the digest of each skill's files, by whom and when (promises S10, TH14). Must not know files.
 * The owner's change is recorded before it is made, so that after a crash the old or the new skill is approved.
 */
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { SeenSkill, SkillPin } from "../../ports/skills.ts";
import { EMPTY_SHA256 } from "../../storage/skills/folder.ts";
import { Version } from "../../storage/version-store.ts";

export interface PinRecord extends SkillPin {
  readonly approvedAt: number;
  readonly approvedBy: string;
  readonly nextAt?: number;
  readonly nextBy?: string;
}
type Row = {
  agent_id: string;
  name: string;
  sha256: string;
  approved_at: number;
  approved_by: string;
  next_sha256: string | null;
  next_at: number | null;
  next_by: string | null;
};
/** Limit of pins per agent, and for the shared skills: several times the number of usable skills. */
const MAX_PINS = 500;

/** The agent's id; "" for shared skills. */
export const ownerOf = (scope: "agent" | "global", agentId: string): string => (scope === "agent" ? agentId : "");

export class SkillPins {
  readonly #db: Database;
  readonly #version: Version;

  constructor(db: Database) {
    this.#db = db;
    this.#version = new Version(db, "skills-version");
  }

  /** Rises with every change. */
  version(): number {
    return this.#version.get();
  }

  /** Every pin that applies to an agent. */
  list(agentId: string): readonly PinRecord[] {
    return all<Row>(this.#db.sql, "SELECT * FROM skill_pins WHERE agent_id IN ('', ?) ORDER BY agent_id, name", agentId).map(record);
  }
  find(owner: string, name: string): PinRecord | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM skill_pins WHERE agent_id = ? AND name = ?", owner, name);
    return row && record(row);
  }

  /** Completes announced changes that have arrived. A skill without a pin stays so: only the owner approves it. */
  seen(agentId: string, skills: readonly SeenSkill[], now: number): void {
    for (const { scope, name, sha256 } of skills) {
      const owner = ownerOf(scope, agentId);
      const pin = this.find(owner, name);
      if (pin?.next === sha256) this.#put(owner, name, sha256, pin.nextAt ?? now, pin.nextBy ?? pin.approvedBy);
    }
  }

  approve(owner: string, name: string, sha256: string, by: string, now: number): void {
    const pin = this.find(owner, name);
    if (pin?.sha256 === sha256 && pin.next === undefined) return;
    this.#put(owner, name, sha256, now, by);
  }

  /**
   * Announces the owner's change from `from` to `to`. False when `from` is not approved; then nothing is recorded. Without a pin only
   * a skill that has no files yet counts as approved.
   */
  allow(owner: string, name: string, from: string, to: string, by: string, now: number): boolean {
    const pin = this.find(owner, name);
    if (pin === undefined && (from !== EMPTY_SHA256 || this.#count(owner) >= MAX_PINS)) return false;
    if (pin !== undefined && pin.sha256 !== from && pin.next !== from) return false;
    if (to === from) return true;
    this.#db.transactionSync(() => {
      if (pin === undefined) this.#put(owner, name, from, now, by);
      else if (pin.next === from) this.#put(owner, name, from, pin.nextAt ?? now, pin.nextBy ?? by);
      run(
        this.#db.sql,
        "UPDATE skill_pins SET next_sha256 = ?, next_at = ?, next_by = ? WHERE agent_id = ? AND name = ?",
        to,
        now,
        by.slice(0, 256),
        owner,
        name,
      );
      this.#version.raise();
    });
    return true;
  }

  /** Returns whether there was a pin. */
  remove(owner: string, name: string): boolean {
    if (this.find(owner, name) === undefined) return false;
    this.#db.transactionSync(() => {
      run(this.#db.sql, "DELETE FROM skill_pins WHERE agent_id = ? AND name = ?", owner, name);
      this.#version.raise();
    });
    return true;
  }

  #count(owner: string): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM skill_pins WHERE agent_id = ?", owner)?.n ?? 0;
  }
  #put(owner: string, name: string, sha256: string, at: number, by: string): void {
    this.#db.transactionSync(() => {
      run(
        this.#db.sql,
        `INSERT INTO skill_pins(agent_id, name, sha256, approved_at, approved_by) VALUES(?, ?, ?, ?, ?)
         ON CONFLICT(agent_id, name) DO UPDATE SET sha256 = excluded.sha256, approved_at = excluded.approved_at,
           approved_by = excluded.approved_by, next_sha256 = NULL, next_at = NULL, next_by = NULL`,
        owner,
        name,
        sha256,
        at,
        by.slice(0, 256),
      );
      this.#version.raise();
    });
  }
}

const record = (row: Row): PinRecord => ({
  scope: row.agent_id === "" ? "global" : "agent",
  name: row.name,
  sha256: row.sha256,
  approvedAt: row.approved_at,
  approvedBy: row.approved_by,
  ...(row.next_sha256 === null ? {} : { next: row.next_sha256 }),
  ...(row.next_at === null ? {} : { nextAt: row.next_at }),
  ...(row.next_by === null ? {} : { nextBy: row.next_by }),
});
