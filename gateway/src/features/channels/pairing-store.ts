/**
 * Stores pairing requests and the owner's decisions about them. Keeps a stranger's first messages until the decision, so that no accepted
 * message is lost. Decides nothing: `access.ts` does.
 */
import type { ApprovedPair, ChannelInbound, PairRole, PendingPair } from "../../../../protocol/gen/types.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { Known } from "./access.ts";
import { e164, phoneOf } from "../../kernel/routing/identity-links.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

type Row = {
  channel: string;
  account: string;
  sender: string;
  state: string;
  name: string | null;
  code: string;
  first_message: string;
  requested_at: number;
  noticed_at: number;
};
export interface Decided {
  readonly senderId: string;
  readonly senderName?: string;
}
export interface Held {
  readonly channel: string;
  readonly accountId: string;
  readonly inbound: ChannelInbound;
}
/** Without letters and digits that people confuse. */
const CODE_CHARACTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789";
const CODE_LENGTH = 6;
const MAX_FIRST_CHARS = 1024;
const MAX_HELD_BYTES = 65_536;
/** Requests in one list, of all channels. */
const MAX_LISTED = 1_000;
const PRUNE_STEP = 20;

export class Pairings {
  readonly #db: Database;
  /** Rises with each decision. */
  changes = 0;
  constructor(db: Database) {
    this.#db = db;
  }

  known(channel: string, sender: string): Known {
    const state = one<{ state: string }>(this.#db.sql, "SELECT state FROM pairs WHERE channel = ? AND sender = ?", channel, sender)?.state;
    return state === "owner" || state === "guest" || state === "rejected" ? state : undefined;
  }

  /**
   * Stores a stranger's request. `kept`: the message is one of the first few and is held. `notice`: the stranger gets a notice now.
   * When too many requests are pending, the oldest makes way.
   */
  request(
    held: Held,
    who: { readonly sender: string; readonly name?: string },
    now: number,
    random: (length: number) => Uint8Array,
  ): { readonly code: string; readonly notice: boolean; readonly kept: boolean } {
    const { sql } = this.#db;
    return this.#db.transactionSync(() => {
      const { channel, accountId, inbound } = held;
      const known = one<Pick<Row, "code" | "noticed_at">>(
        sql,
        "SELECT code, noticed_at FROM pairs WHERE channel = ? AND sender = ?",
        channel,
        who.sender,
      );
      const code = known?.code ?? codeOf(random(CODE_LENGTH));
      if (!known) {
        this.#makeRoom(channel);
        run(
          sql,
          "INSERT INTO pairs VALUES(?, ?, ?, 'pending', ?, ?, ?, ?, ?, NULL)",
          channel,
          who.sender,
          accountId,
          who.name ?? null,
          code,
          inbound.message.text.toWellFormed().slice(0, MAX_FIRST_CHARS).toWellFormed(),
          now,
          now,
        );
      }
      const body = heldBody(inbound);
      const count = one<{ n: number }>(sql, "SELECT count(*) AS n FROM held WHERE channel = ? AND sender = ?", channel, who.sender)?.n ?? 0;
      const kept = count < LIMITS.pairMessages && body.length <= MAX_HELD_BYTES;
      if (kept) run(sql, "INSERT INTO held(channel, sender, account, body) VALUES(?, ?, ?, ?)", channel, who.sender, accountId, body);
      const notice = !known || Math.abs(now - known.noticed_at) >= LIMITS.pairNoticeMs;
      if (known && notice) run(sql, "UPDATE pairs SET noticed_at = ? WHERE channel = ? AND sender = ?", now, channel, who.sender);
      return { code, notice, kept };
    });
  }

  /** The oldest requests of the channel make way: otherwise strangers could close it for everyone else. */
  #makeRoom(channel: string): void {
    const { sql } = this.#db;
    const old = all<{ sender: string }>(
      sql,
      "SELECT sender FROM pairs WHERE channel = ? AND state = 'pending' ORDER BY requested_at DESC, sender LIMIT -1 OFFSET ?",
      channel,
      LIMITS.pairsWaiting - 1,
    );
    for (const { sender } of old) {
      run(sql, "DELETE FROM held WHERE channel = ? AND sender = ?", channel, sender);
      run(sql, "DELETE FROM pairs WHERE channel = ? AND sender = ?", channel, sender);
    }
  }

  /** Pending requests, the oldest first. */
  pending(): readonly PendingPair[] {
    return all<Row & { waiting: number }>(
      this.#db.sql,
      `SELECT p.*, (SELECT count(*) FROM held h WHERE h.channel = p.channel AND h.sender = p.sender) AS waiting
       FROM pairs p WHERE p.state = 'pending' ORDER BY p.requested_at LIMIT ?`,
      MAX_LISTED,
    ).map((row) => ({
      channel: row.channel,
      senderId: row.sender,
      ...(row.name === null ? {} : { senderName: row.name }),
      requestedAt: row.requested_at,
      firstMessage: row.first_message,
      code: row.code,
      waiting: row.waiting,
    }));
  }

  /** Approved senders: by channel, the latest approval first. */
  approved(): readonly ApprovedPair[] {
    return all<Pick<Row, "channel" | "sender" | "name" | "requested_at"> & { state: PairRole; decided_at: number | null }>(
      this.#db.sql,
      `SELECT channel, sender, name, state, requested_at, decided_at FROM pairs WHERE state IN ('owner', 'guest')
       ORDER BY channel, coalesce(decided_at, requested_at) DESC, sender LIMIT ?`,
      MAX_LISTED,
    ).map(({ channel, sender, name, state, requested_at, decided_at }) => ({
      channel,
      senderId: sender,
      ...(name === null ? {} : { senderName: name }),
      role: state,
      since: decided_at ?? requested_at,
    }));
  }

  /** Approves the pairing request with this sender id, number or code. Undefined: there is none. `ambiguous`: there are several. */
  approve(channel: string, senderOrCode: string, role: PairRole, now: number): Decided | "ambiguous" | undefined {
    return this.#decide(channel, senderOrCode, role, now);
  }
  reject(channel: string, senderOrCode: string, now: number): Decided | "ambiguous" | undefined {
    const row = this.#decide(channel, senderOrCode, "rejected", now);
    if (row !== undefined && row !== "ambiguous")
      run(this.#db.sql, "DELETE FROM held WHERE channel = ? AND sender = ?", channel, row.senderId);
    return row;
  }
  #decide(channel: string, senderOrCode: string, state: PairRole | "rejected", now: number): Decided | "ambiguous" | undefined {
    const { sql } = this.#db;
    this.changes += 1;
    return this.#db.transactionSync(() => {
      const row = this.#find(channel, senderOrCode);
      if (row === "ambiguous") return row;
      if (!row) return undefined;
      run(sql, "UPDATE pairs SET state = ?, decided_at = ? WHERE channel = ? AND sender = ?", state, now, channel, row.sender);
      return { senderId: row.sender, ...(row.name === null ? {} : { senderName: row.name }) };
    });
  }

  /** By id, phone number or code. Senders choose ids on some platforms, so one text may fit several requests: then none is meant. */
  #find(channel: string, written: string): Row | "ambiguous" | undefined {
    const { sql } = this.#db;
    const code = written.replace(/^code:/i, "").toUpperCase();
    const byCode = one<Row>(sql, "SELECT * FROM pairs WHERE channel = ? AND code = ? AND state = 'pending'", channel, code);
    const found = [
      one<Row>(sql, "SELECT * FROM pairs WHERE channel = ? AND sender = ?", channel, written),
      this.#byPhone(channel, written),
      byCode,
    ].filter((row) => row !== undefined);
    const [row] = found;
    return new Set(found.map(({ sender }) => sender)).size > 1 ? "ambiguous" : row;
  }
  /** The pending request of the sender whose platform says that they have this number. Two such senders: none of them is meant. */
  #byPhone(channel: string, written: string): Row | undefined {
    const number = written.trim().startsWith("+") ? e164(written, "written") : undefined;
    if (number === undefined) return undefined;
    const rows = all<Row & { phone: string | null }>(
      this.#db.sql,
      `SELECT DISTINCT p.*, json_extract(h.body, '$.senderIds.phone') AS phone
       FROM pairs p JOIN held h ON h.channel = p.channel AND h.sender = p.sender WHERE p.channel = ? AND p.state = 'pending'`,
      channel,
    ).filter(({ sender, phone }) => phone !== null && phoneOf({ channel, id: sender, phone }) === number);
    const [row] = rows;
    return new Set(rows.map(({ sender }) => sender)).size === 1 ? row : undefined;
  }

  /** Deletes old pairing requests with their messages, in a bounded step. True: there may be more. */
  prune(now: number): boolean {
    const { sql } = this.#db;
    return this.#db.transactionSync(() => {
      const old = all<{ channel: string; sender: string }>(
        sql,
        "SELECT channel, sender FROM pairs WHERE state = 'pending' AND requested_at < ? ORDER BY requested_at LIMIT ?",
        now - LIMITS.pairWaitMs,
        PRUNE_STEP,
      );
      for (const { channel, sender } of old) {
        run(sql, "DELETE FROM held WHERE channel = ? AND sender = ?", channel, sender);
        run(sql, "DELETE FROM pairs WHERE channel = ? AND sender = ?", channel, sender);
      }
      return old.length === PRUNE_STEP;
    });
  }
  /** When the next pairing request expires. */
  nextExpiry(): number | undefined {
    const oldest = one<{ at: number | null }>(this.#db.sql, "SELECT min(requested_at) AS at FROM pairs WHERE state = 'pending'")?.at;
    return oldest === null || oldest === undefined ? undefined : oldest + LIMITS.pairWaitMs;
  }

  /** Held messages of an approved sender, the oldest first. They stay until `released`. */
  held(channel: string, sender: string): readonly (Held & { readonly id: number })[] {
    return all<{ id: number; account: string; body: string }>(
      this.#db.sql,
      "SELECT id, account, body FROM held WHERE channel = ? AND sender = ? ORDER BY id",
      channel,
      sender,
    ).map(({ id, account, body }) => ({ id, channel, accountId: account, inbound: JSON.parse(body) as ChannelInbound }));
  }
  released(id: number): void {
    run(this.#db.sql, "DELETE FROM held WHERE id = ?", id);
  }
  /** Approved senders whose held messages an interrupted instance has not released. */
  unreleased(): readonly { readonly channel: string; readonly sender: string }[] {
    return all<{ channel: string; sender: string }>(
      this.#db.sql,
      `SELECT DISTINCT h.channel, h.sender FROM held h JOIN pairs p ON p.channel = h.channel AND p.sender = h.sender
       WHERE p.state IN ('owner', 'guest') LIMIT 100`,
    );
  }
}

/** A text that is too long is cut, with a note. */
function heldBody(inbound: ChannelInbound): string {
  const body = JSON.stringify(inbound);
  if (body.length <= MAX_HELD_BYTES) return body;
  const { text } = inbound.message;
  // In JSON a character takes up to six.
  const left = Math.max(0, Math.floor((MAX_HELD_BYTES - 256 - (body.length - JSON.stringify(text).length)) / 6));
  const message = { ...inbound.message, text: `${text.slice(0, left).toWellFormed()}\n[The rest was too long to be kept.]` };
  return JSON.stringify({ ...inbound, message });
}
function codeOf(bytes: Uint8Array): string {
  let code = "";
  for (const byte of bytes) code += CODE_CHARACTERS[byte % CODE_CHARACTERS.length] ?? "A";
  return code;
}
