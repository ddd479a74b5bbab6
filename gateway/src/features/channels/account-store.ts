/**
 * Stores channel accounts, and the messages that they have handed over, to recognise duplicates (promise P2). Each message keeps its
 * session, so that a retry goes to the same one whatever was configured meanwhile.
 */
import type { ChannelAccount, ChannelInboundOutcome } from "../../../../protocol/gen/types.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { DAY_MS } from "../../../../protocol/runtime/day.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";
import type { ChannelRef } from "../../ports/channels.ts";

export interface AccountRecord {
  readonly channel: string;
  readonly accountId: string;
  readonly connectedAt: number;
  readonly lastMessageAt?: number;
  readonly state?: ChannelAccount;
}
export interface Taken {
  readonly sessionKey: string;
  /** Undefined: handed over, outcome not known yet. */
  readonly outcome?: ChannelInboundOutcome;
}
const FORGET_STEP = 200;
/** The activity of an account is written at most this often. */
const ACTIVE_GRAIN_MS = 60_000;

export class Channels {
  readonly #db: Database;
  constructor(db: Database) {
    this.#db = db;
  }

  taken(key: string): Taken | undefined {
    const row = one<{ session: string; outcome: string | null }>(
      this.#db.sql,
      "SELECT session, outcome FROM channel_inbox WHERE key = ?",
      key,
    );
    return (
      row && { sessionKey: row.session, ...(row.outcome === null ? {} : { outcome: JSON.parse(row.outcome) as ChannelInboundOutcome }) }
    );
  }
  claim(key: string, sessionKey: string, now: number): void {
    run(
      this.#db.sql,
      "INSERT INTO channel_inbox(key, session, outcome, at) VALUES(?, ?, NULL, ?) ON CONFLICT(key) DO NOTHING",
      key,
      sessionKey,
      now,
    );
  }
  settle(key: string, outcome: ChannelInboundOutcome): void {
    run(this.#db.sql, "UPDATE channel_inbox SET outcome = ? WHERE key = ?", JSON.stringify(outcome), key);
  }
  /** Conversations in which a person wrote on this channel after a moment, with the time of the last message. */
  wroteSince(channel: string, at: number): readonly { readonly session: string; readonly at: number }[] {
    const prefix = `${channel}/`;
    return all(
      this.#db.sql,
      "SELECT session, max(at) AS at FROM channel_inbox WHERE at > ? AND substr(key, 1, ?) = ? AND session <> '' GROUP BY session",
      at,
      prefix.length,
      prefix,
    );
  }
  /** Deletes expired rows, in one bounded step. True: there may be more. */
  prune(now: number): boolean {
    const { sql } = this.#db;
    const step = (statement: string, before: number | string): boolean => all(sql, statement, before, FORGET_STEP).length === FORGET_STEP;
    const messages = step(
      "DELETE FROM channel_inbox WHERE key IN (SELECT key FROM channel_inbox WHERE at < ? ORDER BY at LIMIT ?) RETURNING 1",
      now - LIMITS.dedupeMs,
    );
    // One day more, so that the count is still there after the clock is set back.
    const counts = step(
      "DELETE FROM channel_counts WHERE (channel, sender) IN (SELECT channel, sender FROM channel_counts WHERE day < ? LIMIT ?) RETURNING 1",
      new Date(now - 2 * DAY_MS).toISOString().slice(0, 10),
    );
    return messages || counts;
  }
  /** When the first row expires. */
  nextExpiry(): number | undefined {
    const { sql } = this.#db;
    const message = one<{ at: number | null }>(sql, "SELECT min(at) AS at FROM channel_inbox")?.at ?? undefined;
    const day = one<{ day: string | null }>(sql, "SELECT min(day) AS day FROM channel_counts")?.day ?? undefined;
    const due = [
      ...(message === undefined ? [] : [message + LIMITS.dedupeMs]),
      ...(day === undefined ? [] : [Date.parse(`${day}T00:00:00Z`) + 3 * DAY_MS]),
    ];
    return due.length === 0 ? undefined : Math.min(...due);
  }

  /** Records that the account is active: at its first message, and then at intervals. */
  touch(channel: string, accountId: string, now: number): void {
    run(
      this.#db.sql,
      `INSERT INTO channel_accounts(channel, account, connected_at, last_message_at, state) VALUES(?, ?, ?, ?, NULL)
       ON CONFLICT(channel, account) DO UPDATE SET last_message_at = excluded.last_message_at
       WHERE coalesce(last_message_at, 0) < excluded.last_message_at - ?`,
      channel,
      accountId,
      now,
      now,
      ACTIVE_GRAIN_MS,
    );
  }
  setState(channel: string, state: ChannelAccount, now: number): void {
    run(
      this.#db.sql,
      `INSERT INTO channel_accounts(channel, account, connected_at, state) VALUES(?, ?, ?, ?)
       ON CONFLICT(channel, account) DO UPDATE SET state = excluded.state`,
      channel,
      state.accountId,
      now,
      JSON.stringify(state),
    );
  }
  accounts(): readonly AccountRecord[] {
    return all<{ channel: string; account: string; connected_at: number; last_message_at: number | null; state: string | null }>(
      this.#db.sql,
      "SELECT * FROM channel_accounts ORDER BY channel, account LIMIT 1000",
    ).map((row) => ({
      channel: row.channel,
      accountId: row.account,
      connectedAt: row.connected_at,
      ...(row.last_message_at === null ? {} : { lastMessageAt: row.last_message_at }),
      ...(row.state === null ? {} : { state: JSON.parse(row.state) as ChannelAccount }),
    }));
  }

  /** As the channel reported it last. */
  stateOf({ channel, accountId }: ChannelRef): ChannelAccount | undefined {
    const row = one<{ state: string | null }>(
      this.#db.sql,
      "SELECT state FROM channel_accounts WHERE channel = ? AND account = ?",
      channel,
      accountId,
    );
    return row?.state ? (JSON.parse(row.state) as ChannelAccount) : undefined;
  }

  /** A sender's messages of this day, so far. */
  today(channel: string, sender: string, day: string): number {
    return (
      one<{ n: number }>(this.#db.sql, "SELECT n FROM channel_counts WHERE channel = ? AND sender = ? AND day = ?", channel, sender, day)
        ?.n ?? 0
    );
  }
  /** Counts a sender's messages of this day. */
  countToday(channel: string, sender: string, day: string): number {
    const { sql } = this.#db;
    run(
      sql,
      `INSERT INTO channel_counts(channel, sender, day, n) VALUES(?, ?, ?, 1)
       ON CONFLICT(channel, sender) DO UPDATE SET n = CASE WHEN day = excluded.day THEN n + 1 ELSE 1 END, day = excluded.day`,
      channel,
      sender,
      day,
    );
    return one<{ n: number }>(sql, "SELECT n FROM channel_counts WHERE channel = ? AND sender = ?", channel, sender)?.n ?? 0;
  }
}
