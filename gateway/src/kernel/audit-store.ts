/**
 * The audit log: who did what, and whether it was allowed (promise S16). Append-only; each entry's hash covers the entry before, so that
 * a removed or altered entry is detected. An entry is stored with the act itself and hashed right after, because hashing is
 * asynchronous. Stores digests of arguments, never arguments.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { AuditEntry } from "../../../protocol/gen/types.ts";
import type { Clock } from "../platform/clock.ts";
import { sha256Hex } from "../platform/ids.ts";
import { all, type Database, one, run } from "../platform/sql.ts";
import type { AuditInput } from "../ports/audit.ts";

type Row = {
  seq: number;
  at: number;
  actor: string;
  action: string;
  target: string | null;
  decision: string;
  detail: string | null;
  args_hash: string | null;
  prev_hash: string | null;
  hash: string | null;
};

const FIRST = "0".repeat(64);
const ANCHOR = "audit-anchor";
const DAY_MS = 86_400_000;
/** Denials of one actor that get a row of their own in a minute; the rest is counted in the next row. */
const DENIALS_PER_MINUTE = 10;
const MAX_ACTORS = 256;

export class Audit {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #denials = new Map<string, { minute: number; rows: number; dropped: number }>();
  #sealing: Promise<void> = Promise.resolve();

  constructor(db: Database, clock: Clock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Stores an entry at once. Resolves when the entry is part of the hash chain. */
  append(input: AuditInput): Promise<void> {
    const now = this.#clock.now();
    const held = input.decision === "denied" ? this.#hold(`${input.actor} ${input.action}`, now) : 0;
    if (held === "drop") return Promise.resolve();
    const detail = held > 0 ? `${input.detail ?? ""} (and ${held} more like it before)`.trim() : input.detail;
    run(
      this.#db.sql,
      "INSERT INTO audit(at, actor, action, target, decision, detail, args_hash) VALUES(?, ?, ?, ?, ?, ?, ?)",
      now,
      input.actor.slice(0, 256),
      input.action.slice(0, 128),
      input.target?.slice(0, 512) ?? null,
      input.decision,
      detail?.slice(0, 1024) ?? null,
      input.argsHash?.slice(0, 64) ?? null,
    );
    return this.seal();
  }

  /** Hashes the new entries in order. Concurrent calls share one pass. */
  seal(): Promise<void> {
    this.#sealing = this.#sealing.catch(() => undefined).then(() => this.#sealOpen());
    return this.#sealing;
  }

  /** The newest first. */
  async list(
    limit: number,
    beforeSeq: number | undefined,
    action: string | undefined,
  ): Promise<{ readonly entries: readonly AuditEntry[]; readonly count: number; readonly intact: boolean }> {
    await this.seal();
    const rows = all<Row>(
      this.#db.sql,
      "SELECT * FROM audit WHERE seq < ? AND (? = '' OR action = ?) AND hash IS NOT NULL ORDER BY seq DESC LIMIT ?",
      beforeSeq ?? Number.MAX_SAFE_INTEGER,
      action ?? "",
      action ?? "",
      limit,
    );
    const count =
      one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM audit WHERE (? = '' OR action = ?)", action ?? "", action ?? "")?.n ?? 0;
    return { entries: rows.map(entryOf), count, intact: await this.#intact() };
  }

  /** The actions that the log has entries of, in alphabetical order. */
  actions(): readonly string[] {
    return all<{ action: string }>(this.#db.sql, "SELECT DISTINCT action FROM audit ORDER BY action").map(({ action }) => action);
  }

  /** Removes entries that are older than the retention. The chain continues from the last removed hash. */
  prune(now: number): void {
    const limit = now - LIMITS.auditDays * DAY_MS;
    const last = one<{ seq: number; hash: string }>(
      this.#db.sql,
      "SELECT seq, hash FROM audit WHERE at < ? AND hash IS NOT NULL ORDER BY seq DESC LIMIT 1",
      limit,
    );
    if (last === undefined) return;
    this.#db.transactionSync(() => {
      this.#db.kv.put(ANCHOR, last.hash);
      run(this.#db.sql, "DELETE FROM audit WHERE seq <= ?", last.seq);
    });
  }

  /** When the oldest entry expires. */
  nextPrune(): number | undefined {
    const oldest = one<{ at: number | null }>(this.#db.sql, "SELECT min(at) AS at FROM audit")?.at ?? undefined;
    // A day late, so that a busy day is pruned at once and not entry by entry.
    return oldest === undefined ? undefined : oldest + (LIMITS.auditDays + 1) * DAY_MS;
  }

  /** The number of denials that were dropped before this one, or `drop` for this one too. */
  #hold(what: string, now: number): number | "drop" {
    const minute = Math.floor(now / 60_000);
    const seen = this.#denials.get(what);
    if (seen === undefined || seen.minute !== minute) {
      if (seen === undefined && this.#denials.size >= MAX_ACTORS) this.#denials.clear();
      this.#denials.set(what, { minute, rows: 1, dropped: 0 });
      return seen?.dropped ?? 0;
    }
    if (seen.rows >= DENIALS_PER_MINUTE) {
      seen.dropped++;
      return "drop";
    }
    seen.rows++;
    return 0;
  }

  async #sealOpen(): Promise<void> {
    for (const row of all<Row>(this.#db.sql, "SELECT * FROM audit WHERE hash IS NULL ORDER BY seq")) {
      const prev =
        one<{ hash: string }>(this.#db.sql, "SELECT hash FROM audit WHERE seq < ? AND hash IS NOT NULL ORDER BY seq DESC LIMIT 1", row.seq)
          ?.hash ?? this.#anchor();
      const hash = await hashOf(row, prev);
      run(this.#db.sql, "UPDATE audit SET prev_hash = ?, hash = ? WHERE seq = ? AND hash IS NULL", prev, hash, row.seq);
    }
  }

  async #intact(): Promise<boolean> {
    let prev = this.#anchor();
    for (const row of all<Row>(this.#db.sql, "SELECT * FROM audit WHERE hash IS NOT NULL ORDER BY seq")) {
      if (row.prev_hash !== prev || row.hash !== (await hashOf(row, prev))) return false;
      prev = row.hash;
    }
    return true;
  }

  #anchor(): string {
    return this.#db.kv.get<string>(ANCHOR) ?? FIRST;
  }
}

const hashOf = (row: Row, prev: string): Promise<string> =>
  sha256Hex(JSON.stringify([prev, row.seq, row.at, row.actor, row.action, row.target, row.decision, row.detail, row.args_hash]));

function entryOf(row: Row): AuditEntry {
  return {
    seq: row.seq,
    at: row.at,
    actor: row.actor,
    action: row.action,
    decision: row.decision === "allowed" || row.decision === "denied" ? row.decision : "failed",
    prevHash: row.prev_hash ?? "",
    hash: row.hash ?? "",
    ...(row.target === null ? {} : { target: row.target }),
    ...(row.detail === null ? {} : { detail: row.detail }),
    ...(row.args_hash === null ? {} : { argsHash: row.args_hash }),
  };
}
