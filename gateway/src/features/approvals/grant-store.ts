/**
 * What the owner has allowed for a time, by answers to questions (rules GR1-GR6). A grant that was revoked, or whose time is over, never
 * holds again; its row stays for a while, so that the owner can see what it was.
 */
import type { Grant, GrantScope } from "../../ports/grants.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import { Version } from "../../storage/version-store.ts";

export interface GrantRow extends Grant {
  readonly sessionKey: string;
  /** The question whose answer made it. */
  readonly code: string;
  readonly by: string;
  readonly createdAt: number;
  readonly uses: number;
  readonly lastUsedAt?: number;
}
type Row = {
  id: string;
  agent_id: string;
  session_key: string;
  session_id: string | null;
  scope: string;
  code: string;
  made_by: string;
  created_at: number;
  expires_at: number;
  revoked_at: number | null;
  uses: number;
  last_used_at: number | null;
};
const KEPT_MS = 30 * 86_400_000;
/** Grants that hold at once. The owner sees them as a list, and each model call reads them. */
export const MAX_GRANTS = 200;

export class GrantStore {
  readonly #db: Database;
  readonly #version: Version;

  constructor(db: Database) {
    this.#db = db;
    this.#version = new Version(db, "grants-version");
  }

  /** Rises with every new and every revoked grant. */
  version(): number {
    return this.#version.get();
  }

  /** Part of the transaction in which the question ends. False: too many hold already. */
  add(grant: Omit<GrantRow, "uses" | "lastUsedAt">): boolean {
    if (this.list(grant.createdAt).length >= MAX_GRANTS) return false;
    run(
      this.#db.sql,
      `INSERT INTO grants(id, agent_id, session_key, session_id, scope, code, made_by, created_at, expires_at, uses)
       VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`,
      grant.id,
      grant.scope.agentId,
      grant.sessionKey,
      grant.sessionId ?? null,
      JSON.stringify(grant.scope),
      grant.code,
      grant.by,
      grant.createdAt,
      grant.expiresAt,
    );
    this.#version.raise();
    return true;
  }

  /** Those that hold, the newest first. */
  list(now: number): readonly GrantRow[] {
    const rows = all<Row>(
      this.#db.sql,
      "SELECT * FROM grants WHERE revoked_at IS NULL AND expires_at > ? ORDER BY created_at DESC, id",
      now,
    );
    return rows.map(grantOf);
  }
  /** For a run: the agent's, without those of its other conversations. */
  for(agentId: string, sessionKey: string, now: number): readonly Grant[] {
    return this.list(now).flatMap(({ id, scope, expiresAt, sessionId, sessionKey: of }) =>
      scope.agentId === agentId && (sessionId === undefined || of === sessionKey)
        ? [{ id, scope, expiresAt, ...(sessionId === undefined ? {} : { sessionId }) }]
        : [],
    );
  }
  /** Those of the ids that hold for this conversation now. Counts their use. */
  use(sessionKey: string, ids: readonly string[], now: number): readonly string[] {
    return this.#db.transactionSync(() =>
      ids.filter((id) => {
        const row = one<Row>(this.#db.sql, "SELECT * FROM grants WHERE id = ?", id);
        if (row === undefined || row.revoked_at !== null || row.expires_at <= now) return false;
        if (row.session_id !== null && row.session_key !== sessionKey) return false;
        run(this.#db.sql, "UPDATE grants SET uses = uses + 1, last_used_at = ? WHERE id = ?", now, id);
        return true;
      }),
    );
  }
  /** Undefined: there is no such grant. False: it holds no longer. */
  revoke(id: string, now: number): boolean | undefined {
    return this.#db.transactionSync(() => {
      const row = one<Row>(this.#db.sql, "SELECT * FROM grants WHERE id = ?", id);
      if (row === undefined) return undefined;
      if (row.revoked_at !== null || row.expires_at <= now) return false;
      run(this.#db.sql, "UPDATE grants SET revoked_at = ? WHERE id = ?", now, id);
      this.#version.raise();
      return true;
    });
  }

  /** Ends grants for an earlier conversation of the session alone: it was reset (rule GR7). */
  endOthers(sessionKey: string, sessionId: string, now: number): void {
    const found = "session_key = ? AND session_id <> ? AND revoked_at IS NULL";
    if (one(this.#db.sql, `SELECT id FROM grants WHERE ${found} LIMIT 1`, sessionKey, sessionId) === undefined) return;
    run(this.#db.sql, `UPDATE grants SET revoked_at = ? WHERE ${found}`, now, sessionKey, sessionId);
    this.#version.raise();
  }

  /** The session was deleted: what was allowed for this conversation alone ends. */
  forget(sessionKey: string): void {
    run(this.#db.sql, "DELETE FROM grants WHERE session_key = ? AND session_id IS NOT NULL", sessionKey);
    this.#version.raise();
  }

  nextPrune(): number | undefined {
    const at = one<{ at: number | null }>(this.#db.sql, "SELECT min(expires_at) AS at FROM grants")?.at;
    return at === null || at === undefined ? undefined : at + KEPT_MS;
  }
  prune(now: number): void {
    run(this.#db.sql, "DELETE FROM grants WHERE expires_at <= ?", now - KEPT_MS);
  }
}
function grantOf(row: Row): GrantRow {
  return {
    id: row.id,
    scope: JSON.parse(row.scope) as GrantScope,
    sessionKey: row.session_key,
    ...(row.session_id === null ? {} : { sessionId: row.session_id }),
    code: row.code,
    by: row.made_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    uses: row.uses,
    ...(row.last_used_at === null ? {} : { lastUsedAt: row.last_used_at }),
  };
}
