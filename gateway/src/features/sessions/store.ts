/**
 * Which sessions exist: their keys, the refs in call ids, when they were last active, and who owns them. Never their content.
 *
 * Session ownership (promises S7, S8, X8): the main session and those of the command line are the owner's by their names. Any other
 * session is the owner's only if a direct message of the owner created it. No setting, role or later message changes that.
 */
import { asSessionKey, type PolicyMode, type SessionEntry } from "../../../../protocol/gen/types.ts";
import { isOwnersOwn } from "../../kernel/routing/session-keys.ts";
import { randomName } from "../../platform/ids.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { SearchableSessions } from "../../ports/search.ts";
import type { SessionIdentity } from "../../ports/session.ts";
import type { DeletedSession, NamedSession, SessionDirectory, SessionRecord } from "../../ports/sessions.ts";

type Row = {
  key: string;
  ref: string;
  created_at: number;
  last_active_at: number;
  label: string | null;
  owned: number;
  mode: string | null;
  mode_until: number | null;
};

const REF_CHARACTERS = 10;
/** How long the time of the last message may be in memory only (gateway rule D7): messages that follow each other cost one write. */
const WRITE_AFTER_MS = 10_000;
/** A session that was not active for this long has nothing new for the search index, even if the last write was lost. */
const QUIET_AFTER_MS = 600_000;
/** Records kept in memory. Dropping one costs a read. */
const CACHED = 1024;

/** The first key of an agent's sessions, and the first after them: keys are canonical, and `;` follows `:`. */
const keysOf = (agentId: string): readonly [string, string] => [`agent:${agentId}:`, `agent:${agentId};`];

interface Cached extends SessionRecord {
  lastActiveAt: number;
}

export class Sessions implements SessionDirectory {
  readonly #db: Database;
  readonly #after: (ms: number, work: () => void) => void;
  readonly #byKey = new Map<string, Cached>();
  /** The keys of the same records by ref: each report of a machine names its session by the ref. */
  readonly #keyByRef = new Map<string, string>();
  /** Last activities that are not written yet, by key. Every query of times writes them first. */
  readonly #unwritten = new Map<string, number>();

  /** `after` runs work later in the same incarnation. */
  constructor(db: Database, after: (ms: number, work: () => void) => void) {
    this.#db = db;
    this.#after = after;
  }

  /** The record of a key that is in use. Creates nothing. */
  find(key: string): SessionRecord | undefined {
    return this.#load(key);
  }

  /** The key behind a ref. */
  keyOf(ref: string): string | undefined {
    return this.#keyByRef.get(ref) ?? one<{ key: string }>(this.#db.sql, "SELECT key FROM sessions WHERE ref = ?", ref)?.key;
  }

  keyEndingWith(end: string): string | undefined {
    const [found, second] = all<{ key: string }>(
      this.#db.sql,
      "SELECT key FROM sessions WHERE length(key) >= length(?1) AND substr(key, -length(?1)) = ?1 LIMIT 2",
      end,
    );
    return second === undefined ? found?.key : undefined;
  }

  /** The record of a key, created at its first message; notes that the session is active. `owned` counts only at the creation. */
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
    if (now === known.lastActiveAt) return known;
    known.lastActiveAt = now;
    if (this.#unwritten.size === 0) this.#after(WRITE_AFTER_MS, () => this.#write());
    this.#unwritten.set(key, now);
    return known;
  }

  #write(): void {
    if (this.#unwritten.size === 0) return;
    this.#db.transactionSync(() => {
      for (const [key, at] of this.#unwritten) run(this.#db.sql, "UPDATE sessions SET last_active_at = ? WHERE key = ?", at, key);
    });
    this.#unwritten.clear();
  }

  setLabel(key: string, label: string): void {
    run(this.#db.sql, "UPDATE sessions SET label = ? WHERE key = ?", label === "" ? null : label, key);
  }

  /** The session's own mode, as it reported it. */
  setMode(key: string, { mode, modeUntil }: { readonly mode?: PolicyMode; readonly modeUntil?: number }): void {
    run(this.#db.sql, "UPDATE sessions SET mode = ?, mode_until = ? WHERE key = ?", mode ?? null, modeUntil ?? null, key);
  }

  /** The most recently active first. */
  list(now: number, offset: number, limit: number, agentId?: string): readonly SessionEntry[] {
    this.#write();
    return all<Row>(
      this.#db.sql,
      `SELECT * FROM sessions ${agentId === undefined ? "" : "WHERE key >= ? AND key < ?"} ORDER BY last_active_at DESC, key LIMIT ? OFFSET ?`,
      ...(agentId === undefined ? [] : keysOf(agentId)),
      limit,
      offset,
    ).map((row) => ({
      sessionKey: asSessionKey(row.key),
      createdAt: row.created_at,
      lastActiveAt: row.last_active_at,
      ...(row.label === null ? {} : { label: row.label }),
      ...(row.mode === null || (row.mode_until !== null && row.mode_until <= now)
        ? {}
        : { mode: row.mode as PolicyMode, ...(row.mode_until === null ? {} : { modeUntil: row.mode_until }) }),
    }));
  }

  /** How many sessions each agent has, and when one of them was last active. Agents that were removed are listed too. */
  byAgent(): ReadonlyMap<string, { readonly sessions: number; readonly lastActiveAt: number }> {
    this.#write();
    // Keys are canonical: `agent:{agentId}:...`.
    const rows = all<{ agent: string; n: number; at: number }>(
      this.#db.sql,
      "SELECT substr(key, 7, instr(substr(key, 7), ':') - 1) AS agent, count(*) AS n, max(last_active_at) AS at FROM sessions GROUP BY agent",
    );
    return new Map(rows.map(({ agent, n, at }) => [agent, { sessions: n, lastActiveAt: at }]));
  }

  count(agentId?: string): number {
    if (agentId === undefined) return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM sessions")?.n ?? 0;
    return one<{ n: number }>(this.#db.sql, "SELECT count(*) AS n FROM sessions WHERE key >= ? AND key < ?", ...keysOf(agentId))?.n ?? 0;
  }

  /** Keys that were active since `since`, the last active first. */
  activeSince(since: number, limit: number): readonly string[] {
    this.#write();
    return all<{ key: string }>(
      this.#db.sql,
      "SELECT key FROM sessions WHERE last_active_at >= ? ORDER BY last_active_at DESC LIMIT ?",
      since,
      limit,
    ).map((row) => row.key);
  }

  /** Sessions of an agent, after this key in the order of keys. */
  ofAgent(agentId: string, afterKey: string, limit: number): SearchableSessions {
    this.#write();
    const rows = all<Row>(
      this.#db.sql,
      "SELECT * FROM sessions WHERE key > ? AND key >= ? AND key < ? ORDER BY key LIMIT ?",
      afterKey,
      ...keysOf(agentId),
      limit + 1,
    );
    const sessions = rows
      .slice(0, limit)
      .map((row) => ({ key: row.key, lastActiveAt: row.last_active_at, quietSince: row.last_active_at + QUIET_AFTER_MS }));
    return { sessions, more: rows.length > limit };
  }

  /** Sessions of an agent that the owner's direct messages created, the most recently active first. */
  ownedBy(agentId: string, limit: number): readonly string[] {
    this.#write();
    return all<{ key: string }>(
      this.#db.sql,
      "SELECT key FROM sessions WHERE owned = 1 AND key >= ? AND key < ? ORDER BY last_active_at DESC, key LIMIT ?",
      ...keysOf(agentId),
      limit,
    ).map((row) => row.key);
  }

  atCommandLine(agentId: string): string | undefined {
    this.#write();
    const prefix = `agent:${agentId}:cli:dm`;
    return one<{ key: string }>(
      this.#db.sql,
      "SELECT key FROM sessions WHERE key >= ? AND key < ? ORDER BY last_active_at DESC, key LIMIT 1",
      `${prefix}:`,
      `${prefix};`,
    )?.key;
  }

  isOwners({ key, address }: NamedSession): boolean {
    return isOwnersOwn(address) || this.find(key)?.owned === true;
  }
  takeUp(session: NamedSession, now: number, owned = false): SessionIdentity {
    const { ref } = this.touch(session.key, now, owned);
    return { key: session.key, ref, agentId: session.address.agentId, isOwnersSession: this.isOwners(session) };
  }
  lookUp(session: NamedSession, refWhenNew: string): SessionIdentity {
    const ref = this.find(session.key)?.ref ?? refWhenNew;
    return { key: session.key, ref, agentId: session.address.agentId, isOwnersSession: this.isOwners(session) };
  }

  /** Part of the transaction that ends a deletion. The name is free again. */
  remove(key: string): void {
    run(this.#db.sql, "DELETE FROM sessions WHERE key = ?", key);
    this.#drop(key);
    this.#unwritten.delete(key);
  }
  /** What a deletion has to know of a session; undefined: there is none. */
  deletable(key: string): DeletedSession | undefined {
    const found = this.find(key);
    return found && { key, ref: found.ref, agentId: key.slice("agent:".length, key.indexOf(":", "agent:".length)) };
  }
  /** Keys of an agent's sessions, the last active first. */
  keysOf(agentId: string): readonly string[] {
    return all<{ key: string }>(
      this.#db.sql,
      "SELECT key FROM sessions WHERE key >= ? AND key < ? ORDER BY last_active_at DESC, key",
      ...keysOf(agentId),
    ).map(({ key }) => key);
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
      if (oldest.done !== true) this.#drop(oldest.value);
    }
    this.#byKey.set(record.key, record);
    this.#keyByRef.set(record.ref, record.key);
  }
  #drop(key: string): void {
    const record = this.#byKey.get(key);
    if (record === undefined) return;
    this.#byKey.delete(key);
    this.#keyByRef.delete(record.ref);
  }
}
