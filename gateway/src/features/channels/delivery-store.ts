/**
 * Stores each delivery from before a channel is asked to take it until the channel reports its end; failed deliveries and unknown
 * outcomes are kept for 30 days (promises P9, P10; gateway rules CH16-CH18). Never the text of a message.
 */
import type { DeliveryProblem, DeliveryState, OutboundMessage, Peer } from "../../../../protocol/gen/types.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

type Row = {
  id: string;
  channel: string;
  account: string;
  peer: string | null;
  state: "queued" | DeliveryState;
  error: string | null;
  at: number;
  told: number;
};
/** Who was told of a problem: no one (0), the conversation (1), the owner too (2). */
const UNTOLD = 0;
const NOTED = 1;
type Outgoing = Pick<OutboundMessage, "deliveryId" | "peer" | "media">;
export interface Delivery {
  readonly id: string;
  readonly channel: string;
  readonly accountId: string;
  readonly peer?: Peer;
  readonly state: "queued" | DeliveryState;
  readonly error?: string;
  /** When it was handed over, or when its problem became known. */
  readonly at: number;
  readonly noted: boolean;
}
/** How long and how many problems are kept. The oldest are deleted first. */
export const PROBLEM_MS = 2_592_000_000;
const MAX_PROBLEMS = 1_000;
const MAX_QUEUED = 20_000;
/** A channel reports within a day and retries for a while: after this, no report will come. */
export const SILENT_MS = 2 * 86_400_000;
const STEP = 200;

export class Deliveries {
  readonly #db: Database;
  constructor(db: Database) {
    this.#db = db;
  }

  /** Call it before the channel is asked. False: the delivery is known already, and nothing changed. */
  begin({ deliveryId: id, peer, media = [] }: Outgoing, channel: string, accountId: string, now: number): boolean {
    const made = one(
      this.#db.sql,
      "INSERT INTO deliveries(id, channel, account, peer, state, error, at, told, files) VALUES(?, ?, ?, ?, 'queued', NULL, ?, 0, ?) ON CONFLICT(id) DO NOTHING RETURNING 1 AS made",
      id,
      channel,
      accountId,
      JSON.stringify(peer),
      now,
      JSON.stringify(media.flatMap(({ r2Key }) => r2Key ?? [])),
    );
    return made !== undefined;
  }
  /** Keys of the files of a delivery of this account. Undefined: there is no such delivery. `unknown`: it is of an earlier version. */
  filesOf(id: string, channel: string, accountId: string): readonly string[] | "unknown" | undefined {
    const row = one<{ files: string | null }>(
      this.#db.sql,
      "SELECT files FROM deliveries WHERE id = ? AND channel = ? AND account = ?",
      id,
      channel,
      accountId,
    );
    if (row === undefined) return undefined;
    return row.files === null ? "unknown" : (JSON.parse(row.files) as string[]);
  }
  /** Another channel or account has this delivery. */
  isOfAnother(id: string, channel: string, accountId: string): boolean {
    const row = one<{ channel: string; account: string }>(this.#db.sql, "SELECT channel, account FROM deliveries WHERE id = ?", id);
    return row !== undefined && (row.channel !== channel || row.account !== accountId);
  }
  arrived(id: string): void {
    run(this.#db.sql, "DELETE FROM deliveries WHERE id = ?", id);
  }
  /** `noted`: its conversation knows of the problem. False: this was known already. */
  failed(problem: Omit<Delivery, "state" | "noted"> & { readonly state: "failed" | "unknown" }, noted: boolean): boolean {
    const { id, channel, accountId, peer, state, error, at } = problem;
    return this.#db.transactionSync(() => {
      const before = one<Row>(this.#db.sql, "SELECT * FROM deliveries WHERE id = ?", id);
      if (before?.state === state) return false;
      run(
        this.#db.sql,
        `INSERT INTO deliveries(id, channel, account, peer, state, error, at, told) VALUES(?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT(id) DO UPDATE SET peer = coalesce(peer, excluded.peer), state = excluded.state, error = excluded.error, at = excluded.at, told = excluded.told`,
        id,
        channel,
        accountId,
        peer === undefined ? null : JSON.stringify(peer),
        state,
        error ?? null,
        at,
        noted ? NOTED : UNTOLD,
      );
      run(
        this.#db.sql,
        "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE state <> 'queued' ORDER BY at DESC, id LIMIT -1 OFFSET ?)",
        MAX_PROBLEMS,
      );
      return true;
    });
  }

  /** Problems that people have not been told of, the oldest first. */
  untold(limit: number): readonly Delivery[] {
    return all<Row>(this.#db.sql, "SELECT * FROM deliveries WHERE told < 2 AND state <> 'queued' ORDER BY at LIMIT ?", limit).map(
      deliveryOf,
    );
  }
  told({ id, state }: Pick<Delivery, "id" | "state">): void {
    run(this.#db.sql, "UPDATE deliveries SET told = 2 WHERE id = ? AND state = ?", id, state);
  }

  /** The problems of a channel, the newest first. */
  problems(channel: string, accountId: string | undefined, limit: number): DeliveryProblem[] {
    return all<Row>(
      this.#db.sql,
      "SELECT * FROM deliveries WHERE state <> 'queued' AND channel = ? AND (? = '' OR account = ?) ORDER BY at DESC, id LIMIT ?",
      channel,
      accountId ?? "",
      accountId ?? "",
      limit,
    ).flatMap((row) => {
      const { id, accountId: account, peer, state, error, at } = deliveryOf(row);
      if (state === "queued") return [];
      return [{ deliveryId: id, accountId: account, ...(peer ? { peer } : {}), state, ...(error === undefined ? {} : { error }), at }];
    });
  }
  /** The number of problems, by `channel/account`. */
  counts(): ReadonlyMap<string, number> {
    return new Map(
      all<{ name: string; n: number }>(
        this.#db.sql,
        "SELECT channel || '/' || account AS name, count(*) AS n FROM deliveries WHERE state <> 'queued' GROUP BY name",
      ).map(({ name, n }) => [name, n]),
    );
  }

  /** As a table that expires: a channel keeps what it holds during a stop, so no report is missed then (rule ST9). */
  expiring(stopped: () => unknown): { prune(now: number): boolean; nextExpiry(): number | undefined } {
    return { prune: (now) => this.prune(now, stopped() !== undefined), nextExpiry: () => this.nextExpiry() };
  }
  /** A stop is over: what channels have held gets its whole time. */
  resumed(now: number): void {
    run(this.#db.sql, "UPDATE deliveries SET at = ? WHERE state = 'queued'", now);
  }
  /** One bounded step: deliveries without a report become `unknown`; expired and surplus rows are deleted. True: there may be more. */
  prune(now: number, isStopped = false): boolean {
    const { sql } = this.#db;
    const step = (statement: string, ...params: (string | number)[]): boolean => all(sql, statement, ...params, STEP).length === STEP;
    const silent = isStopped
      ? "UPDATE deliveries SET at = ? WHERE id IN (SELECT id FROM deliveries WHERE state = 'queued' AND at < ? ORDER BY at LIMIT ?) RETURNING 1"
      : "UPDATE deliveries SET state = 'unknown', error = 'the channel never reported its end', at = ?, told = 0 WHERE id IN (SELECT id FROM deliveries WHERE state = 'queued' AND at < ? ORDER BY at LIMIT ?) RETURNING 1";
    return [
      step(silent, now, now - SILENT_MS),
      step(
        "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE state <> 'queued' AND at < ? ORDER BY at LIMIT ?) RETURNING 1",
        now - PROBLEM_MS,
      ),
      step(
        `DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE state = 'queued' ORDER BY at DESC, id LIMIT -1 OFFSET ${MAX_QUEUED}) AND id IN (SELECT id FROM deliveries WHERE state = 'queued' ORDER BY at LIMIT ?) RETURNING 1`,
      ),
    ].some(Boolean);
  }
  nextExpiry(): number | undefined {
    const { sql } = this.#db;
    const oldest = (where: string): number | undefined =>
      one<{ at: number | null }>(sql, `SELECT min(at) AS at FROM deliveries WHERE ${where}`)?.at ?? undefined;
    const [queued, problem] = [oldest("state = 'queued'"), oldest("state <> 'queued'")];
    const due = [...(queued === undefined ? [] : [queued + SILENT_MS]), ...(problem === undefined ? [] : [problem + PROBLEM_MS])];
    return due.length === 0 ? undefined : Math.min(...due);
  }
}
const deliveryOf = ({ id, channel, account, peer, state, error, at, told }: Row): Delivery => ({
  id,
  channel,
  accountId: account,
  ...(peer === null ? {} : { peer: JSON.parse(peer) as Peer }),
  state,
  ...(error === null ? {} : { error }),
  at,
  noted: told >= NOTED,
});
