/**
 * The durable inbox of an account (promises P2, P3). A message is a row before its platform gets an acknowledgement, and the row is
 * deleted in the transaction that stores the gateway's answer. One message of a conversation at a time, the oldest first;
 * conversations in parallel. Makes no access decisions: the gateway does.
 */
import type { ChannelInbound, ChannelInboundOutcome, Media, Peer } from "../../../protocol/gen/types.ts";
import type { After } from "../../../protocol/runtime/within.ts";
import type { Database } from "./database.ts";
import { errorText } from "./error-text.ts";
import { KIT } from "./limits.ts";
import { peerName } from "./peer-name.ts";
import { dueAt, retryWait, withinOrThrow } from "./waits.ts";
import type { InboundFile, InboundItem } from "./platform.ts";

export interface InboxPorts {
  readonly db: Database;
  readonly now: () => number;
  readonly random: () => number;
  readonly after: After;
  /** Hands the message to the gateway. Throws when the outcome is unknown. */
  readonly handOver: (inbound: ChannelInbound) => Promise<ChannelInboundOutcome>;
  /** The key under which a file is stored; undefined when the gateway does not want it. */
  readonly slot: (inbound: ChannelInbound, file: InboundFile) => Promise<string | undefined>;
  /** Stores a file and returns its size in bytes. Throws `FileRefused` when a retry cannot help. */
  readonly store: (inbound: ChannelInbound, file: InboundFile) => Promise<number>;
  /** Runs in the transaction that deletes the message from the inbox. */
  readonly settled: (inbound: ChannelInbound, outcome: ChannelInboundOutcome, receipt: unknown) => void;
  /** Runs in the transaction of the last queued message: `count` messages of the conversation were not answered. `key` is the id of the last. */
  readonly tooLate: (peer: Peer, count: number, key: string) => void;
  /** Runs after that transaction. */
  readonly done: (inbound: ChannelInbound, outcome: ChannelInboundOutcome, receipt: unknown) => void;
  readonly log: (event: string, fields?: Readonly<Record<string, string | number | boolean | undefined>>) => void;
  /** An error that no retry was planned for, such as a full disk. */
  readonly failed: (what: string, error: unknown) => void;
}
export class FileRefused extends Error {
  override readonly name = "FileRefused";
}
/** The gateway did not take the message yet, and may have said when it will. */
class AskedLater extends Error {
  readonly afterMs: number | undefined;
  constructor(afterMs: number | undefined) {
    super("the gateway asked for a retry");
    this.afterMs = afterMs;
  }
}
const MIN_ASKED_MS = 100;
const LATE = "inbox.late";
const FLOODED = "inbox.flooded";

interface Row {
  readonly id: number;
  readonly key: string;
  readonly peer: string;
  readonly body: string;
  readonly files: string;
  readonly receipt: string | null;
  readonly received: number;
  readonly attempts: number;
}
/** `tries` counts the attempts for the first file in `rest`. */
interface OpenFiles {
  readonly rest: readonly InboundFile[];
  readonly tries: number;
}

export class Inbox {
  readonly #ports: InboxPorts;
  /** Conversations that this instance is serving. */
  readonly #busy = new Set<string>();

  constructor(ports: InboxPorts) {
    this.#ports = ports;
  }

  /** Durable when it returns. False: a duplicate, or the conversation has too many queued messages. Throws when the inbox is full. */
  take(item: InboundItem): boolean {
    const { db, now } = this.#ports;
    const peer = peerName(item.inbound.peer);
    return db.transaction(() => {
      const key = `${peer}/${item.key}`;
      if (db.query("SELECT 1 FROM seen WHERE key = ?", key).length > 0) return false;
      if (this.waiting() >= KIT.inboxRows) throw new Error("the inbox is full");
      const at = now();
      db.query("INSERT INTO seen(key, at) VALUES(?, ?)", key, at);
      // A flood in one conversation must not fill the inbox. The message counts as seen, so that the platform does not redeliver it.
      if (this.#waitingOf(peer) >= KIT.peerRows) {
        this.#raise(FLOODED);
        return false;
      }
      db.query(
        "INSERT INTO inbox(key, peer, body, files, receipt, received, attempts, next_at) VALUES(?, ?, ?, ?, ?, ?, 0, ?)",
        key,
        peer,
        JSON.stringify(item.inbound),
        JSON.stringify({ rest: item.files, tries: 0 } satisfies OpenFiles),
        item.receipt === undefined ? null : JSON.stringify(item.receipt),
        at,
        at,
      );
      return true;
    });
  }
  waiting(): number {
    return this.#ports.db.query<{ n: number }>("SELECT count(*) AS n FROM inbox")[0]?.n ?? 0;
  }
  #waitingOf(peer: string): number {
    return this.#ports.db.query<{ n: number }>("SELECT count(*) AS n FROM inbox WHERE peer = ?", peer)[0]?.n ?? 0;
  }
  /**
   * Epoch ms of the next thing to do; undefined when the inbox is empty. Messages under way or without a free slot have a lease: this
   * instance may die before they end.
   */
  nextAt(): number | undefined {
    const again = this.#ports.now() + KIT.leaseMs;
    const isFull = this.#busy.size >= KIT.peersAtOnce;
    return this.#heads()
      .map(({ peer, next_at }) => (isFull || this.#busy.has(peer) ? Math.max(next_at, again) : next_at))
      .toSorted((left, right) => left - right)[0];
  }
  #heads(): readonly { readonly peer: string; readonly next_at: number }[] {
    const { db, now } = this.#ports;
    return db
      .query<{ readonly peer: string; readonly next_at: number }>(
        "SELECT peer, next_at FROM inbox WHERE id IN (SELECT min(id) FROM inbox GROUP BY peer) ORDER BY next_at LIMIT 100",
      )
      .map(({ peer, next_at }) => ({ peer, next_at: dueAt(next_at, now()) }));
  }

  /** Hands over what is due; resolves when nothing is. Never throws; may be called at any time. */
  async pump(): Promise<void> {
    const now = this.#ports.now();
    const due = this.#heads()
      .filter(({ peer, next_at }) => next_at <= now && !this.#busy.has(peer))
      .slice(0, Math.max(0, KIT.peersAtOnce - this.#busy.size));
    await Promise.all(
      due.map(async ({ peer }) => {
        // A free slot: start conversations that waited for one.
        if (await this.#serve(peer)) await this.pump();
      }),
    );
  }
  /** False: an unexpected error; the alarm tries again. */
  async #serve(peer: string): Promise<boolean> {
    this.#busy.add(peer);
    try {
      for (;;) {
        const row = this.#ports.db.query<Row & { next_at: number }>(
          "SELECT id, key, peer, body, files, receipt, received, attempts, next_at FROM inbox WHERE peer = ? ORDER BY id LIMIT 1",
          peer,
        )[0];
        if (!row || dueAt(row.next_at, this.#ports.now()) > this.#ports.now() || !(await this.#one(row))) return true;
      }
    } catch (error) {
      this.#ports.failed("inbox", error);
      return false;
    } finally {
      this.#busy.delete(peer);
    }
  }

  /** True: the row is deleted and the next one may follow. */
  async #one(row: Row): Promise<boolean> {
    const { db, now, after, handOver, settled, done } = this.#ports;
    let inbound: ChannelInbound = JSON.parse(row.body);
    let outcome: ChannelInboundOutcome;
    const receipt: unknown = row.receipt === null ? undefined : JSON.parse(row.receipt);
    try {
      inbound = await this.#files(row, inbound);
      const late = now() - row.received > KIT.retryMaxMs;
      outcome = await withinOrThrow(
        KIT.handOverMs,
        "handing a message over",
        after,
        handOver(late ? { ...inbound, backlog: true } : inbound),
      );
      if (outcome.outcome === "later") throw new AskedLater(outcome.retryAfterMs);
      // One transaction: when the outbox is full, the message stays, and the gateway gives the same answer again.
      db.transaction(() => {
        db.query("DELETE FROM inbox WHERE id = ?", row.id);
        settled(inbound, outcome, receipt);
        if (outcome.unanswered === "late") this.#countLate(row);
        this.#tellLate(row, inbound.peer);
      });
    } catch (error) {
      const attempts = row.attempts + 1;
      db.query(
        "UPDATE inbox SET attempts = ?, next_at = ?, last_error = ? WHERE id = ?",
        attempts,
        now() + (askedWait(error) ?? retryWait(attempts, this.#ports.random())),
        errorText(error),
        row.id,
      );
      if (attempts === 1 || attempts % 10 === 0) this.#ports.log("hand_over_failed", { attempts, error: errorText(error) });
      return false;
    }
    done(inbound, outcome, receipt);
    return true;
  }
  #countLate({ peer }: Row): void {
    for (const name of [LATE, `${LATE}.${peer}`]) this.#raise(name);
  }
  #raise(counter: string): void {
    this.#ports.db.query(
      "INSERT INTO kv(name, value) VALUES(?, '1') ON CONFLICT(name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)",
      counter,
    );
  }
  /** With the last queued message of a conversation: tells how many were too old to be answered (promises P2, P10). */
  #tellLate({ peer: name, key }: Row, peer: Peer): void {
    const { db, tooLate } = this.#ports;
    const counter = `${LATE}.${name}`;
    const count = this.#count(counter);
    if (count === 0 || db.query("SELECT 1 FROM inbox WHERE peer = ? LIMIT 1", name).length > 0) return;
    db.query("DELETE FROM kv WHERE name = ?", counter);
    tooLate(peer, count, key);
  }
  #count(name: string): number {
    return Number(this.#ports.db.query<{ value: string }>("SELECT value FROM kv WHERE name = ?", name)[0]?.value ?? 0);
  }
  /** All messages ever that were dropped because their conversation had too many queued. */
  flooded(): number {
    return this.#count(FLOODED);
  }
  /** All messages ever that were too old to be answered. */
  late(): number {
    return this.#count(LATE);
  }

  /** Stores the files one by one; each step is durable, so that a restart continues there. */
  async #files(row: Row, before: ChannelInbound): Promise<ChannelInbound> {
    const { db, after, slot, store } = this.#ports;
    let inbound = before;
    let open: OpenFiles = JSON.parse(row.files);
    const keep = (rest: readonly InboundFile[], tries: number): void => {
      open = { rest, tries };
      db.query("UPDATE inbox SET body = ?, files = ? WHERE id = ?", JSON.stringify(inbound), JSON.stringify(open), row.id);
    };
    for (let file = open.rest[0]; file; file = open.rest[0]) {
      const rest = open.rest.slice(1);
      const tries = open.tries + 1;
      // An unreachable gateway says nothing about the file, so this counts as no attempt.
      const r2Key = await withinOrThrow(KIT.handOverMs, "asking for a media key", after, slot(inbound, file));
      if (r2Key === undefined) {
        inbound = withMedia(inbound, describe(file));
        keep(rest, 0);
        continue;
      }
      try {
        const size = await withinOrThrow(KIT.fileMs, "fetching a file", after, store(inbound, file));
        inbound = withMedia(inbound, { ...describe(file), r2Key, size });
      } catch (error) {
        const lasting = error instanceof FileRefused;
        if (!lasting && tries < KIT.fileTries) {
          keep(open.rest, tries);
          throw error;
        }
        const name = JSON.stringify(file.filename ?? file.kind);
        inbound = withText(withMedia(inbound, describe(file)), `[The file ${name} could not be fetched: ${errorText(error)}]`);
      }
      keep(rest, 0);
    }
    return inbound;
  }

  /** One bounded step of pruning. */
  prune(): void {
    this.#ports.db.query(
      "DELETE FROM seen WHERE key IN (SELECT key FROM seen WHERE at < ? ORDER BY at LIMIT ?)",
      this.#ports.now() - KIT.rememberMs,
      KIT.pruneRows,
    );
  }
}

const askedWait = (error: unknown): number | undefined =>
  error instanceof AskedLater && error.afterMs !== undefined ? Math.max(MIN_ASKED_MS, error.afterMs) : undefined;
const describe = (file: InboundFile): Media => ({
  type: file.kind,
  mimeType: file.mimeType,
  ...(file.filename === undefined ? {} : { filename: file.filename }),
  ...(file.durationSeconds === undefined ? {} : { duration: file.durationSeconds }),
});
const withMedia = (inbound: ChannelInbound, media: Media): ChannelInbound => ({
  ...inbound,
  message: { ...inbound.message, media: [...(inbound.message.media ?? []), media] },
});
const withText = (inbound: ChannelInbound, note: string): ChannelInbound => ({
  ...inbound,
  message: { ...inbound.message, text: inbound.message.text === "" ? note : `${inbound.message.text}\n\n${note}` },
});
