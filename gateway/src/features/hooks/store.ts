/**
 * Hooks, and a row for each delivery that was accepted (rules HK4, HK5). A delivery with a text waits; one with the id of a run has begun.
 * Secrets are sealed by the caller.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { HookForm, HookTarget } from "../../../../protocol/gen/types.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface HookBody {
  readonly agentId: string;
  readonly form: HookForm;
  readonly target: HookTarget;
  readonly only: readonly string[];
  readonly createdAt: number;
}
export interface StoredHook {
  readonly name: string;
  readonly body: HookBody;
  /** Sealed. */
  readonly secret: string;
  readonly accepted: number;
  readonly ignored: number;
  readonly refused: number;
  readonly lastAt?: number;
  readonly lastRefusedAt?: number;
}
export interface StoredDelivery {
  readonly id: number;
  readonly hook: string;
  /** The sender's id. */
  readonly key: string;
  readonly at: number;
  /** What the run will get. Absent: it has begun, or was given up. */
  readonly text?: string;
  readonly run?: number;
  readonly error?: string;
}
type HookRow = {
  name: string;
  body: string;
  secret: string;
  accepted: number;
  ignored: number;
  refused: number;
  last_at: number | null;
  last_refused_at: number | null;
};
type DeliveryRow = { id: number; hook: string; key: string; at: number; text: string | null; run: number | null; error: string | null };

const MINUTE_MS = 60_000;

export class HookStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  atomic<T>(work: () => T): T {
    return this.#db.transactionSync(work);
  }
  list(): readonly StoredHook[] {
    return all<HookRow>(this.#db.sql, "SELECT * FROM hooks ORDER BY name").map(hookOf);
  }
  find(name: string): StoredHook | undefined {
    const row = one<HookRow>(this.#db.sql, "SELECT * FROM hooks WHERE name = ?", name);
    return row === undefined ? undefined : hookOf(row);
  }
  count(): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM hooks")?.n ?? 0;
  }
  add(name: string, body: HookBody, secret: string): void {
    run(
      this.#db.sql,
      "INSERT INTO hooks(name, body, secret, accepted, ignored, refused) VALUES(?, ?, ?, 0, 0, 0)",
      name,
      JSON.stringify(body),
      secret,
    );
  }
  reseal(name: string, secret: string): void {
    run(this.#db.sql, "UPDATE hooks SET secret = ? WHERE name = ?", secret, name);
  }
  remove(name: string): boolean {
    return this.#db.transactionSync(() => {
      const existed = this.find(name) !== undefined;
      run(this.#db.sql, "DELETE FROM hooks WHERE name = ?", name);
      run(this.#db.sql, "DELETE FROM hook_deliveries WHERE hook = ?", name);
      return existed;
    });
  }
  countIgnored(name: string, now: number): void {
    run(this.#db.sql, "UPDATE hooks SET ignored = ignored + 1, last_at = ? WHERE name = ?", now, name);
  }
  countRefused(name: string, refused: number, at: number): void {
    run(this.#db.sql, "UPDATE hooks SET refused = refused + ?, last_refused_at = ? WHERE name = ?", refused, at, name);
  }

  /** Whether a delivery was accepted before: by its id, or by the digest of its signed bytes. */
  isKnown(hook: string, key: string, digest: string | undefined): boolean {
    return (
      one(this.#db.sql, "SELECT 1 AS x FROM hook_deliveries WHERE hook = ? AND key = ?", hook, key) !== undefined ||
      (digest !== undefined &&
        one(this.#db.sql, "SELECT 1 AS x FROM hook_deliveries WHERE hook = ? AND digest = ?", hook, digest) !== undefined)
    );
  }
  /** A clock that was set back leaves later rows out. */
  lastMinute(hook: string, now: number): number {
    return (
      one<{ n: number }>(
        this.#db.sql,
        "SELECT count(*) AS n FROM hook_deliveries WHERE hook = ? AND at > ? AND at <= ?",
        hook,
        now - MINUTE_MS,
        now,
      )?.n ?? 0
    );
  }
  waitingCount(hook: string): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM hook_deliveries WHERE hook = ? AND text IS NOT NULL", hook)?.n ?? 0;
  }
  /** Stores a delivery and removes ids that are kept long enough. */
  accept(hook: string, key: string, digest: string | undefined, text: string, now: number): void {
    run(
      this.#db.sql,
      "INSERT INTO hook_deliveries(hook, key, digest, at, text) VALUES(?, ?, ?, ?, ?)",
      hook,
      key,
      digest ?? null,
      now,
      text,
    );
    run(this.#db.sql, "UPDATE hooks SET accepted = accepted + 1, last_at = ? WHERE name = ?", now, hook);
    run(
      this.#db.sql,
      `DELETE FROM hook_deliveries WHERE hook = ? AND text IS NULL AND
         id <= (SELECT id FROM hook_deliveries WHERE hook = ? ORDER BY id DESC LIMIT 1 OFFSET ?)`,
      hook,
      hook,
      LIMITS.hookDeliveriesKept,
    );
  }
  /** Names of hooks with a delivery that waits. */
  waitingHooks(): readonly string[] {
    return all<{ hook: string }>(this.#db.sql, "SELECT DISTINCT hook FROM hook_deliveries WHERE text IS NOT NULL").map(({ hook }) => hook);
  }
  firstWaiting(hook: string): StoredDelivery | undefined {
    const row = one<DeliveryRow>(
      this.#db.sql,
      "SELECT * FROM hook_deliveries WHERE hook = ? AND text IS NOT NULL ORDER BY id LIMIT 1",
      hook,
    );
    return row === undefined ? undefined : deliveryOf(row);
  }
  begun(id: number, runId: number): void {
    run(this.#db.sql, "UPDATE hook_deliveries SET text = NULL, run = ? WHERE id = ?", runId, id);
  }
  giveUp(hook: string, error: string): void {
    run(this.#db.sql, "UPDATE hook_deliveries SET text = NULL, error = ? WHERE hook = ? AND text IS NOT NULL", error, hook);
  }
  /** The newest first. */
  deliveries(hook: string, limit: number): readonly StoredDelivery[] {
    return all<DeliveryRow>(this.#db.sql, "SELECT * FROM hook_deliveries WHERE hook = ? ORDER BY id DESC LIMIT ?", hook, limit).map(
      deliveryOf,
    );
  }
}
const hookOf = (row: HookRow): StoredHook => ({
  name: row.name,
  body: JSON.parse(row.body) as HookBody,
  secret: row.secret,
  accepted: row.accepted,
  ignored: row.ignored,
  refused: row.refused,
  ...(row.last_at === null ? {} : { lastAt: row.last_at }),
  ...(row.last_refused_at === null ? {} : { lastRefusedAt: row.last_refused_at }),
});
const deliveryOf = (row: DeliveryRow): StoredDelivery => ({
  id: row.id,
  hook: row.hook,
  key: row.key,
  at: row.at,
  ...(row.text === null ? {} : { text: row.text }),
  ...(row.run === null ? {} : { run: row.run }),
  ...(row.error === null ? {} : { error: row.error }),
});
