/**
 * Calls of sessions that wait for machines, as the sessions last reported them (rule OM5). An index: the session has the calls, and
 * reports them again every few minutes.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { WaitingForNode, WaitReport } from "../../ports/waits.ts";

/** A row whose session never reported the end of its waits is removed after this time. */
const RETENTION_MS = 3_600_000;
type Row = { session_key: string; calls: string };

export class WaitStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Takes all waits of a session. False: too many sessions wait, and this one is not kept. */
  report({ sessionKey, revision, calls }: WaitReport, now: number): boolean {
    const { sql } = this.#db;
    run(sql, "DELETE FROM node_waits WHERE until < ?", now - RETENTION_MS);
    const known = one<{ revision: number }>(sql, "SELECT revision FROM node_waits WHERE session_key = ?", sessionKey);
    // An older report that was long on its way.
    if (known !== undefined && known.revision > revision) return true;
    if (calls.length === 0) {
      this.forget(sessionKey);
      return true;
    }
    const count = one<{ count: number }>(sql, "SELECT COUNT(*) AS count FROM node_waits")?.count ?? 0;
    if (known === undefined && count >= LIMITS.nodeWaitSessions) return false;
    run(
      sql,
      "INSERT OR REPLACE INTO node_waits(session_key, revision, until, calls) VALUES(?, ?, ?, ?)",
      sessionKey,
      revision,
      Math.max(...calls.map(({ expiresAt }) => expiresAt)),
      JSON.stringify(calls),
    );
    return true;
  }
  forget(sessionKey: string): void {
    run(this.#db.sql, "DELETE FROM node_waits WHERE session_key = ?", sessionKey);
  }
  /** By session. */
  waits(): ReadonlyMap<string, readonly WaitingForNode[]> {
    const rows = all<Row>(this.#db.sql, "SELECT session_key, calls FROM node_waits ORDER BY session_key");
    return new Map(rows.map((row) => [row.session_key, JSON.parse(row.calls) as WaitingForNode[]]));
  }
  /** The sessions with calls that wait for a machine. */
  sessionsFor(nodeId: string): readonly string[] {
    return [...this.waits()].flatMap(([key, calls]) => (calls.some((call) => call.nodeId === nodeId) ? [key] : []));
  }
}
