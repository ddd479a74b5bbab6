/**
 * The rows of notifications (rules NT2, NT3, NT9). A row that waits is told at its time; others of its cause join it meanwhile. Decides
 * nothing about places and hours.
 */
import type { NotificationKind, NotificationState } from "../../../../protocol/gen/types.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { NotificationBody, NotificationRow, NotifyRowsPort, Tell } from "../../ports/notify.ts";

type Row = {
  id: number;
  key: string;
  kind: string;
  cause: string;
  agent: string;
  text: string;
  created_at: number;
  state: string;
  due_at: number;
  told_at: number | null;
  told_in: string | null;
  with_id: number | null;
  body: string;
};
const HOUR_MS = 3_600_000;
/** Causes that wait, rows that wait with one, and rows that have ended. */
const MAX_WAITING = 100;
const MAX_TOGETHER = 50;
const MAX_ENDED = 500;
const MAX_FAILURES = 16;
const MAX_WHY = 300;
const STARTS = "INSERT INTO notifications(key, kind, cause, agent, text, created_at, state, due_at, with_id, body)";

type Rows = Omit<NotifyRowsPort["notifyRows"], "onTaken">;

export class NotifyStore implements Rows {
  readonly #db: Database;
  /** Masks stored secrets. */
  readonly #scrub: (text: string) => string;

  constructor(db: Database, scrub: (text: string) => string) {
    this.#db = db;
    this.#scrub = scrub;
  }

  /** Undefined: the key is known. */
  add({ kind, key, cause, text, agentId, ...about }: Tell & { readonly agentId: string }, now: number): number | undefined {
    const { sql } = this.#db;
    return this.#db.transactionSync(() => {
      if (one(sql, "SELECT 1 AS there FROM notifications WHERE key = ?", key) !== undefined) return undefined;
      const isAlone = about.question !== undefined || about.now !== undefined;
      const head = isAlone ? undefined : this.#waitingFor(cause);
      const ends = about.until === undefined ? {} : { until: about.until };
      if (head?.isBegun === false) return this.#join(head.row, { kind, key, cause, text, agentId }, now, ends);
      const told = one<{ at: number | null }>(sql, "SELECT max(told_at) AS at FROM notifications WHERE cause = ?", cause)?.at ?? undefined;
      // A notification that is being delivered counts as told. A clock that was set back delays one by an hour at most.
      const last = head === undefined ? told : now;
      const due = last === undefined || isAlone || last > now ? now : Math.max(now, last + HOUR_MS);
      const { inSession, toldSession, question, about: account, isMarkdown } = about;
      const body: NotificationBody = {
        ...(inSession === undefined ? {} : { inSession }),
        ...(toldSession === undefined ? {} : { toldSession }),
        ...(question === undefined ? {} : { question }),
        ...(isMarkdown === undefined ? {} : { isMarkdown }),
        ...(account === undefined ? {} : { about: account }),
        ...(about.now === undefined ? {} : { now: about.now }),
        ...ends,
      };
      const id = this.#insert("waiting", { kind, key, cause, text, agentId }, now, due, null, body);
      this.#bound();
      return id;
    });
  }
  /** `isBegun`: its text may have been told already, so it is not changed any more. */
  #waitingFor(cause: string): { readonly row: NotificationRow; readonly isBegun: boolean } | undefined {
    const found = one<Row>(
      this.#db.sql,
      "SELECT * FROM notifications WHERE cause = ? AND state = 'waiting' ORDER BY id DESC LIMIT 1",
      cause,
    );
    const row = found && rowOf(found);
    return row && { row, isBegun: row.toldAt !== undefined || row.body.asked !== undefined || row.body.failures !== undefined };
  }
  #join(head: NotificationRow, told: Joined, now: number, body: NotificationBody): number {
    const joined = one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM notifications WHERE with_id = ?", head.id)?.n ?? 0;
    if (joined >= MAX_TOGETHER) {
      // The latest text is kept: it takes the place of the one before it.
      const before = one<{ id: number }>(this.#db.sql, "SELECT max(id) AS id FROM notifications WHERE with_id = ?", head.id);
      if (before !== undefined) run(this.#db.sql, "DELETE FROM notifications WHERE id = ?", before.id);
      this.#write(head.id, { ...head.body, more: (head.body.more ?? 0) + 1 });
    }
    return this.#insert("merged", told, now, head.dueAt, head.id, body);
  }
  #insert(state: "waiting" | "merged", told: Joined, now: number, dueAt: number, withId: number | null, body: NotificationBody): number {
    const { kind, key, cause, text, agentId } = told;
    const given = [key, kind, cause, agentId, text, now, state, dueAt, withId, JSON.stringify(body)];
    const made = one<{ id: number }>(this.#db.sql, `${STARTS} VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`, ...given);
    return made?.id ?? 0;
  }
  #bound(): void {
    const { sql } = this.#db;
    const over = all<{ id: number }>(
      sql,
      "SELECT id FROM notifications WHERE state = 'waiting' ORDER BY id DESC LIMIT -1 OFFSET ?",
      MAX_WAITING,
    );
    // Notifications that wait with a dropped one are never told either.
    for (const { id } of over) this.drop(id);
    run(
      sql,
      `DELETE FROM notifications WHERE id IN (SELECT id FROM notifications WHERE state <> 'waiting'
       AND (with_id IS NULL OR with_id NOT IN (SELECT id FROM notifications WHERE state = 'waiting')) ORDER BY id DESC LIMIT -1 OFFSET ?)`,
      MAX_ENDED,
    );
  }

  waiting(limit: number): readonly NotificationRow[] {
    return all<Row>(this.#db.sql, "SELECT * FROM notifications WHERE state = 'waiting' ORDER BY due_at, id LIMIT ?", limit).map(rowOf);
  }
  countWaiting(): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM notifications WHERE state = 'waiting'")?.n ?? 0;
  }
  find(id: number): NotificationRow | undefined {
    const row = one<Row>(this.#db.sql, "SELECT * FROM notifications WHERE id = ?", id);
    return row && rowOf(row);
  }
  together(id: number): readonly NotificationRow[] {
    return all<Row>(this.#db.sql, "SELECT * FROM notifications WHERE id = ? OR with_id = ? ORDER BY id", id, id).map(rowOf);
  }
  list(limit: number, beforeId: number, kind: NotificationKind | undefined): readonly NotificationRow[] {
    return all<Row>(
      this.#db.sql,
      "SELECT * FROM notifications WHERE id < ? AND (? = '' OR kind = ?) ORDER BY id DESC LIMIT ?",
      beforeId,
      kind ?? "",
      kind ?? "",
      limit,
    ).map(rowOf);
  }
  merge(id: number, others: readonly number[]): void {
    this.#db.transactionSync(() => {
      for (const other of others) {
        run(this.#db.sql, "UPDATE notifications SET with_id = ? WHERE with_id = ?", id, other);
        run(this.#db.sql, "UPDATE notifications SET with_id = ?, state = 'merged' WHERE id = ? AND state = 'waiting'", id, other);
      }
    });
  }
  failed(id: number, way: string, why: string): void {
    const { failures = [] } = this.#bodyOf(id);
    const isKnown = failures.some((failure) => failure.way === way);
    const more = isKnown || failures.length >= MAX_FAILURES ? failures : [...failures, { way, why: this.#scrub(why).slice(0, MAX_WHY) }];
    this.#write(id, { ...this.#bodyOf(id), failures: more });
  }
  asked(id: number, way: string | undefined): void {
    const { asked: _, ...body } = this.#bodyOf(id);
    this.#write(id, way === undefined ? body : { ...body, asked: way });
  }
  wait(id: number, dueAt: number): void {
    const body = this.#bodyOf(id);
    this.#write(id, { ...body, tries: (body.tries ?? 0) + 1 });
    run(this.#db.sql, "UPDATE notifications SET due_at = ? WHERE id = ?", dueAt, id);
  }
  #bodyOf(id: number): NotificationBody {
    return this.find(id)?.body ?? {};
  }
  #write(id: number, body: NotificationBody): void {
    run(this.#db.sql, "UPDATE notifications SET body = ? WHERE id = ?", JSON.stringify(body), id);
  }
  end(id: number, state: "told" | "off", at: number, toldIn?: string): void {
    this.asked(id, undefined);
    run(this.#db.sql, "UPDATE notifications SET state = ?, told_at = ?, told_in = ? WHERE id = ?", state, at, toldIn ?? null, id);
  }
  drop(id: number): void {
    run(this.#db.sql, "UPDATE notifications SET state = 'dropped' WHERE id = ? OR with_id = ?", id, id);
  }
  /** The text of one that was told is not changed. */
  over(key: string, at: number): void {
    const row = one<Row>(this.#db.sql, "SELECT * FROM notifications WHERE key = ? AND state IN ('waiting', 'merged', 'told')", key);
    if (row !== undefined) this.#write(row.id, { ...rowOf(row).body, until: at });
  }
  /** It was told in a place that did not take it after all. */
  again(id: number, dueAt: number): void {
    run(this.#db.sql, "UPDATE notifications SET state = 'waiting', due_at = ?, told_in = NULL WHERE id = ? AND state = 'told'", dueAt, id);
  }
}
type Joined = Pick<NotificationRow, "kind" | "key" | "cause" | "text" | "agentId">;

const rowOf = ({ created_at, due_at, told_at, told_in, with_id, agent, kind, state, body, ...row }: Row): NotificationRow => ({
  ...row,
  kind: kind as NotificationKind,
  state: state as NotificationState,
  agentId: agent,
  createdAt: created_at,
  dueAt: due_at,
  ...(told_at === null ? {} : { toldAt: told_at }),
  ...(told_in === null ? {} : { toldIn: told_in }),
  ...(with_id === null ? {} : { withId: with_id }),
  body: JSON.parse(body) as NotificationBody,
});
