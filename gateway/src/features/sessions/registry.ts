/** Which conversations exist: their keys, the short names that call ids carry, when they were last active. Never their content. */
import { asSessionKey, type SessionEntry } from "../../../../protocol/gen/types.ts";
import { randomName } from "../../platform/ids.ts";
import type { SearchableSession } from "../../ports/search.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

export interface SessionRecord {
  readonly key: string;
  readonly ref: string;
  readonly createdAt: number;
  /** The owner's own direct messages made it (whose.ts). Never changes. */
  readonly owned: boolean;
}
type Row = { key: string; ref: string; created_at: number; last_active_at: number; label: string | null; owned: number };

const REF_CHARACTERS = 10;
/** `last_active_at` is written at most this often (gateway rule D6), so that a message usually costs no write here. */
const ACTIVE_GRAIN_MS = 600_000;
/** Records kept in memory. Dropping one costs a read. */
const CACHED = 1024;

interface Cached extends SessionRecord {
  lastActiveAt: number;
}

export class Sessions {
  readonly #db: Database;
  readonly #byKey = new Map<string, Cached>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** The record of a key that is in use. Creates nothing. */
  find(key: string): SessionRecord | undefined {
    return this.#load(key);
  }

  /** The key behind a ref. */
  keyOf(ref: string): string | undefined {
    return one<{ key: string }>(this.#db.sql, "SELECT key FROM sessions WHERE ref = ?", ref)?.key;
  }

  /** The record of a key, made at its first message; notes that it is active. `owned` counts only when it is made. */
  touch(key: string, now: number, owned = false): SessionRecord {
    const known = this.#load(key);
    if (known === undefined) {
      const fresh: Cached = { key, ref: randomName(REF_CHARACTERS), createdAt: now, lastActiveAt: now, owned };
      run(
        this.#db.sql,
        "INSERT INTO sessions(key, ref, created_at, last_active_at, owned) VALUES(?, ?, ?, ?, ?)",
        key,
        fresh.ref,
        now,
        now,
        owned ? 1 : 0,
      );
      this.#keep(fresh);
      return fresh;
    }
    // A clock that was set back must not silence this for the difference.
    if (Math.abs(now - known.lastActiveAt) >= ACTIVE_GRAIN_MS) {
      known.lastActiveAt = now;
      run(this.#db.sql, "UPDATE sessions SET last_active_at = ? WHERE key = ?", now, key);
    }
    return known;
  }

  setLabel(key: string, label: string): void {
    run(this.#db.sql, "UPDATE sessions SET label = ? WHERE key = ?", label === "" ? null : label, key);
  }

  /** The last active first. */
  list(offset: number, limit: number): readonly SessionEntry[] {
    return all<Row>(this.#db.sql, "SELECT * FROM sessions ORDER BY last_active_at DESC, key LIMIT ? OFFSET ?", limit, offset).map(
      (row) => ({
        sessionKey: asSessionKey(row.key),
        createdAt: row.created_at,
        lastActiveAt: row.last_active_at,
        ...(row.label === null ? {} : { label: row.label }),
      }),
    );
  }

  /** How many each agent has, and when one of them was last active. Of agents that were taken away too. */
  byAgent(): ReadonlyMap<string, { readonly sessions: number; readonly lastActiveAt: number }> {
    // Keys are canonical: `agent:{agentId}:...`.
    const rows = all<{ agent: string; n: number; at: number }>(
      this.#db.sql,
      "SELECT substr(key, 7, instr(substr(key, 7), ':') - 1) AS agent, count(*) AS n, max(last_active_at) AS at FROM sessions GROUP BY agent",
    );
    return new Map(rows.map(({ agent, n, at }) => [agent, { sessions: n, lastActiveAt: at }]));
  }

  count(): number {
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM sessions")?.n ?? 0;
  }

  /** Keys that were active since `since`, the last active first. */
  activeSince(since: number, limit: number): readonly string[] {
    return all<{ key: string }>(
      this.#db.sql,
      "SELECT key FROM sessions WHERE last_active_at >= ? ORDER BY last_active_at DESC LIMIT ?",
      since,
      limit,
    ).map((row) => row.key);
  }

  /** Conversations of an agent, after this key in the order of keys. */
  ofAgent(agentId: string, afterKey: string, limit: number): readonly SearchableSession[] {
    return all<Row>(
      this.#db.sql,
      "SELECT * FROM sessions WHERE key > ? AND key >= ? AND key < ? ORDER BY key LIMIT ?",
      afterKey,
      `agent:${agentId}:`,
      `agent:${agentId};`,
      limit,
    ).map((row) => ({ key: row.key, lastActiveAt: row.last_active_at, quietSince: row.last_active_at + ACTIVE_GRAIN_MS }));
  }

  /** Conversations of an agent that the owner's own direct messages made, the last active first. */
  ownedBy(agentId: string, limit: number): readonly string[] {
    return all<{ key: string }>(
      this.#db.sql,
      "SELECT key FROM sessions WHERE owned = 1 AND key >= ? AND key < ? ORDER BY last_active_at DESC, key LIMIT ?",
      `agent:${agentId}:`,
      `agent:${agentId};`,
      limit,
    ).map((row) => row.key);
  }

  #load(key: string): Cached | undefined {
    const cached = this.#byKey.get(key);
    if (cached !== undefined) return cached;
    const row = one<Row>(this.#db.sql, "SELECT * FROM sessions WHERE key = ?", key);
    if (row === undefined) return undefined;
    const record: Cached = { key, ref: row.ref, createdAt: row.created_at, lastActiveAt: row.last_active_at, owned: row.owned === 1 };
    this.#keep(record);
    return record;
  }

  #keep(record: Cached): void {
    if (this.#byKey.size >= CACHED) {
      const oldest = this.#byKey.keys().next();
      if (oldest.done !== true) this.#byKey.delete(oldest.value);
    }
    this.#byKey.set(record.key, record);
  }
}
