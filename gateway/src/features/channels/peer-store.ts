/**
 * Stores the agent's conversations on platforms: who wrote there last, when, and how many messages in a row came from bots. The list
 * of possible recipients comes from here. Decides nothing (`targets.ts` and `intake.ts` do), and never stores the text of a message.
 */
import type { ChannelInbound, Peer, PeerKind } from "../../../../protocol/gen/types.ts";
import { cleanName } from "../../../../protocol/runtime/clean-name.ts";
import type { KnownPlace } from "./targets.ts";
import { all, type Database, one, run } from "../../platform/sql.ts";

type Row = {
  channel: string;
  account: string;
  kind: string;
  peer: string;
  name: string | null;
  sender: string;
  phone: string | null;
  self: number;
  last_at: number;
  bots: number;
};
export interface PeerRecord extends KnownPlace {
  readonly channel: string;
  readonly accountId: string;
  readonly peer: Peer;
  readonly lastAt: number;
}
/** The count of a bot's messages in a row starts again after this silence. */
const BOT_SILENCE_MS = 3_600_000;
/** The time of a conversation's last message is written at most this often. */
const ACTIVITY_WRITE_MS = 600_000;
/** Beyond this number the least recently active are dropped. */
export const MAX_PEERS = 5_000;

export class Peers {
  readonly #db: Database;
  /** Rises with each change of a record. */
  changes = 0;
  constructor(db: Database) {
    this.#db = db;
  }

  /** Records a message of an allowed sender. Returns how many messages in a row came from bots, this one included. */
  record(channel: string, accountId: string, { peer, sender, senderIds, fromOwner }: ChannelInbound, now: number): number {
    const { sql } = this.#db;
    const senderId = sender?.id ?? peer.id;
    const name = cleanName(peer.name ?? (peer.kind === "dm" ? sender?.name : undefined)) ?? null;
    const known = this.#row(channel, accountId, peer.kind, peer.id);
    const self = peer.kind === "dm" && fromOwner === true ? 1 : 0;
    const bots = sender?.bot === true ? (known && Math.abs(now - known.last_at) < BOT_SILENCE_MS ? known.bots : 0) + 1 : 0;
    const same =
      known?.bots === bots &&
      known.sender === senderId &&
      known.name === name &&
      known.self === self &&
      known.phone === (senderIds?.phone ?? null);
    if (same && Math.abs(now - known.last_at) < ACTIVITY_WRITE_MS) return bots;
    this.changes += 1;
    run(
      sql,
      `INSERT INTO channel_peers(channel, account, kind, peer, name, sender, phone, self, last_at, bots) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT(channel, account, kind, peer) DO UPDATE SET name = excluded.name, sender = excluded.sender, phone = excluded.phone, self = excluded.self, last_at = excluded.last_at, bots = excluded.bots`,
      channel,
      accountId,
      peer.kind,
      peer.id,
      name,
      senderId,
      senderIds?.phone ?? null,
      self,
      now,
      bots,
    );
    if (known === undefined)
      run(
        sql,
        "DELETE FROM channel_peers WHERE (channel, account, kind, peer) IN (SELECT channel, account, kind, peer FROM channel_peers ORDER BY last_at DESC LIMIT -1 OFFSET ?)",
        MAX_PEERS,
      );
    return bots;
  }
  #row(channel: string, accountId: string, kind: PeerKind, id: string): Row | undefined {
    return one<Row>(
      this.#db.sql,
      "SELECT * FROM channel_peers WHERE channel = ? AND account = ? AND kind = ? AND peer = ?",
      channel,
      accountId,
      kind,
      id,
    );
  }
  /** On this account, or on every one. */
  find(channel: string, accountId: string | undefined, { kind, id }: Peer): readonly PeerRecord[] {
    return all<Row>(
      this.#db.sql,
      "SELECT * FROM channel_peers WHERE channel = ? AND (? = '' OR account = ?) AND kind = ? AND peer = ? ORDER BY last_at DESC LIMIT 8",
      channel,
      accountId ?? "",
      accountId ?? "",
      kind,
      id,
    ).map(recordOf);
  }
  /** Direct conversations, the most recently active first. */
  direct(limit: number): readonly PeerRecord[] {
    return all<Row>(this.#db.sql, "SELECT * FROM channel_peers WHERE kind = 'dm' ORDER BY last_at DESC, channel, peer LIMIT ?", limit).map(
      recordOf,
    );
  }
  /** The most recently active first. `query` is searched in names, ids and channels. */
  list(query: string, limit: number): readonly PeerRecord[] {
    return all<Row>(
      this.#db.sql,
      "SELECT * FROM channel_peers WHERE ? = '' OR instr(lower(coalesce(name, '') || ' ' || peer || ' ' || channel), ?) > 0 ORDER BY last_at DESC, channel, peer LIMIT ?",
      query,
      query,
      limit,
    ).map(recordOf);
  }
}
const recordOf = ({ channel, account, kind, peer, name, sender, phone, self, last_at }: Row): PeerRecord => ({
  channel,
  accountId: account,
  peer: { kind: kind as PeerKind, id: peer, ...(name === null ? {} : { name }) },
  senderId: sender,
  ...(phone === null ? {} : { phone }),
  self: self === 1,
  lastAt: last_at,
});
