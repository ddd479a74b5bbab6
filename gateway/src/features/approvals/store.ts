/**
 * The questions of all sessions, as the sessions last reported them. An index: the session that asked is the truth, and an answer
 * always goes there. An ended question is kept for a while without its text, so that a second answer gets the result of the first.
 */
import type { ApprovalEntry, ApprovalOutcome } from "../../../../protocol/gen/types.ts";
import type { GrantChoice } from "../../ports/grants.ts";
import type { AskedOffer } from "./granting.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface EndedRow {
  readonly code: string;
  readonly outcome: ApprovalOutcome;
  readonly by?: string;
  readonly again?: string;
  /** What else was allowed with the answer. */
  readonly choice?: GrantChoice;
  readonly at: number;
}
/** A question as it waits, and what an answer to it can grant. */
export interface Asked {
  readonly entry: ApprovalEntry;
  readonly offer?: AskedOffer;
}
export type Known =
  | ({ readonly sessionKey: string; readonly code: string; readonly state: "waiting" } & Asked)
  | { readonly sessionKey: string; readonly code: string; readonly state: "ended"; readonly ended: EndedRow };
export interface Changes {
  readonly asked: readonly ApprovalEntry[];
  readonly ended: readonly (Asked & { readonly end: EndedRow })[];
}
type Row = {
  session_key: string;
  code: string;
  expires_at: number;
  entry: string | null;
  offer: string | null;
  ended_at: number | null;
  outcome: string | null;
  answered_by: string | null;
  again: string | null;
};
/** From a key, and before another one. */
export type KeyRange = readonly [from: string, before: string];
/** The keys of questions about events: no session has such a key, so no report of a session ends one. */
export const EVENT_KEYS = ["event:", "event;"] as const satisfies KeyRange;
const IN_KEYS = "session_key >= ? AND session_key < ?";
const WAITING_IN = `FROM approvals WHERE ${IN_KEYS} AND ended_at IS NULL`;
/** Questions of a session, or about an event of it. */
const OF_SESSION = `(session_key = ? OR (${IN_KEYS} AND json_extract(entry, '$.sessionKey') = ?))`;
/** Ended questions are remembered for this long, and so many of them. */
const REMEMBERED_MS = 7 * 86_400_000;
const REMEMBERED = 2_000;

export class ApprovalStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /**
   * Takes all questions of a session. Undefined: a newer report is here already. `over` is called in the same transaction, once for
   * each question that ends.
   */
  report(
    sessionKey: string,
    revision: number,
    waiting: readonly Asked[],
    ended: readonly EndedRow[],
    now: number,
    over: (end: Changes["ended"][number]) => void = () => undefined,
  ): Changes | undefined {
    const { sql } = this.#db;
    return this.#db.transactionSync(() => {
      const last = one<{ revision: number }>(sql, "SELECT revision FROM approval_reports WHERE session_key = ?", sessionKey)?.revision ?? 0;
      if (revision < last) return undefined;
      run(
        sql,
        "INSERT INTO approval_reports(session_key, revision) VALUES(?, ?) ON CONFLICT(session_key) DO UPDATE SET revision = excluded.revision",
        sessionKey,
        revision,
      );
      const before = this.#asked(sessionKey);
      const waits = (code: string): boolean => waiting.some(({ entry }) => entry.code === code);
      const asked = waiting.filter(({ entry: { code } }) => !before.some(({ entry }) => entry.code === code));
      for (const { entry, offer } of asked)
        run(
          sql,
          `INSERT INTO approvals(session_key, code, expires_at, entry, offer) VALUES(?, ?, ?, ?, ?) ON CONFLICT(session_key, code) DO UPDATE SET
             expires_at = excluded.expires_at, entry = excluded.entry, offer = excluded.offer, ended_at = NULL, outcome = NULL,
             answered_by = NULL, again = NULL`,
          sessionKey,
          entry.code,
          entry.expiresAt,
          JSON.stringify(entry),
          offer === undefined ? null : JSON.stringify(offer),
        );
      const gone = before.filter(({ entry }) => !waits(entry.code));
      const ends = gone.map((question) => {
        const { code } = question.entry;
        return { ...question, end: ended.find((end) => end.code === code) ?? lost(code, now) };
      });
      // A question may have been asked and answered between two reports.
      const unseen = ended.filter(({ code }) => !waits(code));
      for (const end of [...unseen, ...ends.map(({ end }) => end)])
        run(
          sql,
          `INSERT INTO approvals(session_key, code, expires_at, ended_at, outcome, answered_by, again) VALUES(?, ?, ?, ?, ?, ?, ?)
           ON CONFLICT(session_key, code) DO UPDATE SET entry = NULL, offer = NULL, ended_at = excluded.ended_at, outcome = excluded.outcome,
             answered_by = excluded.answered_by, again = excluded.again`,
          sessionKey,
          end.code,
          end.at,
          end.at,
          end.outcome,
          end.by ?? null,
          end.again ?? null,
        );
      for (const end of ends) over(end);
      return { asked: asked.map(({ entry }) => entry), ended: ends };
    });
  }

  /** A question that no session reports. */
  ask(key: string, entry: ApprovalEntry): void {
    const values = [key, entry.code, entry.expiresAt, JSON.stringify(entry)];
    run(this.#db.sql, "INSERT INTO approvals(session_key, code, expires_at, entry) VALUES(?, ?, ?, ?)", ...values);
  }
  end(key: string, { code, outcome, by, at }: EndedRow): void {
    run(
      this.#db.sql,
      // The session stays, so that a second answer that names it finds the question.
      `UPDATE approvals SET entry = json_object('sessionKey', json_extract(entry, '$.sessionKey')), ended_at = ?, outcome = ?, answered_by = ?
       WHERE session_key = ? AND code = ? AND ended_at IS NULL`,
      at,
      outcome,
      by ?? null,
      key,
      code,
    );
  }

  /** Codes of the questions that wait. */
  codes(): readonly string[] {
    return all<{ code: string }>(this.#db.sql, "SELECT code FROM approvals WHERE ended_at IS NULL").map(({ code }) => code);
  }
  /** The first time at which a question of these keys is over. */
  nextExpiry(keys: KeyRange): number | undefined {
    return one<{ at: number | null }>(this.#db.sql, `SELECT min(expires_at) AS at ${WAITING_IN}`, ...keys)?.at ?? undefined;
  }
  expired(keys: KeyRange, now: number): readonly string[] {
    const rows = all<{ key: string }>(this.#db.sql, `SELECT session_key AS key ${WAITING_IN} AND expires_at <= ? LIMIT 100`, ...keys, now);
    return rows.map(({ key }) => key);
  }

  /** The session was deleted: the next one of its name reports from the beginning. */
  forget(sessionKey: string): void {
    run(this.#db.sql, "DELETE FROM approvals WHERE session_key = ?", sessionKey);
    run(this.#db.sql, "DELETE FROM approval_reports WHERE session_key = ?", sessionKey);
  }

  /** The oldest first. */
  waiting(sessionKey: string): readonly ApprovalEntry[] {
    return this.#asked(sessionKey).map(({ entry }) => entry);
  }
  /** The oldest first, those of sessions and those about events apart. */
  everywhere(most: { readonly calls: number; readonly events: number }): {
    readonly calls: readonly ApprovalEntry[];
    readonly events: readonly ApprovalEntry[];
  } {
    const calls = this.#where(`NOT (${IN_KEYS}) ORDER BY expires_at, code LIMIT ?`, ...EVENT_KEYS, most.calls);
    const events = this.#where(`${IN_KEYS} ORDER BY expires_at, code LIMIT ?`, ...EVENT_KEYS, most.events);
    return { calls: calls.map(({ entry }) => entry), events: events.map(({ entry }) => entry) };
  }
  /** Questions of the agent have no time left. */
  expireOf(range: KeyRange, agentId: string, at: number): void {
    const own = `${IN_KEYS} AND ended_at IS NULL AND json_extract(entry, '$.agentId') = ?`;
    run(this.#db.sql, `UPDATE approvals SET expires_at = ? WHERE ${own}`, at, ...range, agentId);
  }
  /** About events of the session, the oldest first. */
  eventsOf(sessionKey: string, most: number): readonly ApprovalEntry[] {
    const condition = `${IN_KEYS} AND json_extract(entry, '$.sessionKey') = ? ORDER BY expires_at, code LIMIT ?`;
    return this.#where(condition, ...EVENT_KEYS, sessionKey, most).map(({ entry }) => entry);
  }
  /** The questions that an answer of this kind can be given to. */
  offers(): readonly Asked[] {
    return this.#where("offer IS NOT NULL ORDER BY expires_at, code");
  }
  /** The questions about limits. */
  limits(): readonly ApprovalEntry[] {
    return this.#where("json_extract(entry, '$.limit') ORDER BY expires_at, code").map(({ entry }) => entry);
  }
  #asked(sessionKey: string): readonly Asked[] {
    return this.#where("session_key = ? ORDER BY expires_at, code", sessionKey);
  }
  #where(condition: string, ...values: readonly (string | number)[]): readonly Asked[] {
    return all<Row>(this.#db.sql, `SELECT * FROM approvals WHERE ended_at IS NULL AND ${condition}`, ...values).map(askedOf);
  }
  /** The questions with this code; when one waits, only those that wait. */
  find(code: string, sessionKey: string | undefined): readonly Known[] {
    const ofSession = sessionKey === undefined ? [] : [sessionKey, ...EVENT_KEYS, sessionKey];
    const rows = all<Row>(
      this.#db.sql,
      `SELECT * FROM approvals WHERE code = ? ${sessionKey === undefined ? "" : `AND ${OF_SESSION}`} ORDER BY ended_at DESC`,
      code,
      ...ofSession,
    );
    const waiting = rows.filter((row) => row.ended_at === null);
    return (waiting.length > 0 ? waiting : rows.slice(0, 1)).map(knownOf);
  }

  nextPrune(): number | undefined {
    const at = one<{ at: number | null }>(this.#db.sql, "SELECT min(ended_at) AS at FROM approvals")?.at;
    return at === null || at === undefined ? undefined : at + REMEMBERED_MS;
  }
  prune(now: number): void {
    const { sql } = this.#db;
    run(sql, "DELETE FROM approvals WHERE ended_at <= ?", now - REMEMBERED_MS);
  }
  /** Forgets the oldest of too many ended questions. */
  bound(): void {
    const { sql } = this.#db;
    const cut = one<{ at: number }>(
      sql,
      "SELECT ended_at AS at FROM approvals WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT 1 OFFSET ?",
      REMEMBERED,
    );
    if (cut) run(sql, "DELETE FROM approvals WHERE ended_at <= ?", cut.at);
  }
}
/** The session no longer remembers how the question ended. */
const lost = (code: string, at: number): EndedRow => ({ code, outcome: "withdrawn", at });
function askedOf(row: Row): Asked {
  if (row.entry === null) throw new Error("a question that waits has no text");
  const entry = JSON.parse(row.entry) as ApprovalEntry;
  return { entry, ...(row.offer === null ? {} : { offer: JSON.parse(row.offer) as AskedOffer }) };
}
function knownOf(row: Row): Known {
  const { session_key: sessionKey, code } = row;
  if (row.ended_at === null) return { sessionKey, code, state: "waiting", ...askedOf(row) };
  const ended: EndedRow = {
    code,
    outcome: (row.outcome ?? "withdrawn") as ApprovalOutcome,
    ...(row.answered_by === null ? {} : { by: row.answered_by }),
    ...(row.again === null ? {} : { again: row.again }),
    at: row.ended_at,
  };
  return { sessionKey, code, state: "ended", ended };
}
