/**
 * The durable outbox of an account (promises P9, P3). A delivery is a row before its sender gets an answer, and each attempt is
 * written before it is made. Each conversation is sent in order, one message at a time. An attempt with an unknown outcome is
 * repeated only while the platform recognises the repetition; after that, and when a repetition fails, the delivery is `unknown`. While
 * everything is stopped, what agents wrote stays here, and other messages pass it (gateway rule ST9). Knows no platform.
 */
import type { DeliveryReport, DeliveryState, LiveText, Media, OutboundMessage } from "../../../protocol/gen/types.ts";
import type { After } from "../../../protocol/runtime/within.ts";
import type { Database } from "./database.ts";
import type { KeyValues } from "./kv.ts";
import { errorText } from "./error-text.ts";
import { KIT } from "./limits.ts";
import { peerName } from "./peer-name.ts";
import { dueAt, retryWait, withinOrThrow } from "./waits.ts";
import { LiveTexts } from "./live.ts";
import { nonceOf } from "./nonce.ts";
import { Permission } from "./permission.ts";
import type { OutboundFile, OutboundPart, Platform, SendOutcome } from "./platform.ts";
import { DeliveryReports } from "./reports.ts";
import { splitText } from "./split-text.ts";

export interface OutboxPorts {
  readonly db: Database;
  readonly kv: Pick<KeyValues, "get" | "put" | "delete">;
  readonly now: () => number;
  readonly random: () => number;
  readonly after: After;
  readonly platform: () => Pick<Platform, "capabilities" | "recognisesNonceMs" | "mark" | "send" | "showLive">;
  /** The account is started and its platform is connected. */
  readonly isOpen: () => boolean;
  /** Tells the gateway how a delivery ended. Throws when the report must be retried. */
  readonly report: (report: DeliveryReport) => Promise<void>;
  /** Asks the gateway whether what agents wrote may leave. Throws when it does not answer. */
  readonly mayDeliver: () => Promise<boolean>;
  readonly log: (event: string, fields?: Readonly<Record<string, string | number | boolean | undefined>>) => void;
  /** An error that no retry was planned for, such as a full disk. */
  readonly failed: (what: string, error: unknown) => void;
}
export class OutboxFull extends Error {
  override readonly name = "OutboxFull";
}
/** The stored part; the rest of OutboundPart is in the row's columns. */
type StoredPart = Omit<OutboundPart, "attempt" | "firstTriedAt" | "replaces">;
interface Row {
  readonly id: number;
  readonly delivery: string;
  readonly part: number;
  readonly peer: string;
  readonly body: string;
  readonly state: "waiting" | "trying";
  readonly attempts: number;
  readonly first_at: number;
  readonly next_at: number;
  readonly ask_from: number;
  readonly unsure: 0 | 1;
}
/** `held`: the attempt was not begun. */
type Attempt = SendOutcome | { readonly kind: "held" };
interface DeliveryRow {
  readonly state: "queued" | DeliveryState;
  readonly messages: string;
  readonly error: string | null;
}
/** Older failures are not counted in the account's status. */
const UNDELIVERED_MS = 7 * 86_400_000;
const NOT_ASKED = "the gateway did not answer for a day whether the message may leave";
const INTERRUPTED: SendOutcome = { kind: "unsure", error: "the channel was interrupted during this attempt" };
export class Outbox {
  readonly #ports: OutboxPorts;
  /** Conversations that this instance is sending to. */
  readonly #busy = new Set<string>();
  /** Ended attempts whose outcome could not be written, by row. A new instance knows none of them: to it they were interrupted. */
  readonly #unwritten = new Map<number, { readonly row: Row; readonly outcome: Attempt }>();
  readonly #live: LiveTexts;
  readonly #reports: DeliveryReports;
  readonly #permission: Permission;
  /** Deliveries that were handed to this instance. The permit of another one may be older than a stop that this instance does not know of. */
  readonly #handedOver = new Set<string>();

  constructor(ports: OutboxPorts) {
    this.#ports = ports;
    this.#permission = new Permission({
      ...ports,
      transaction: (work) => ports.db.transaction(work),
      released: () => this.#released(),
    });
    this.#live = new LiveTexts({ ...ports, permission: this.#permission });
    this.#reports = new DeliveryReports(ports);
  }

  /** Attempts that the last instance did not finish have an unknown outcome. Call once, when an instance starts. */
  recover(): void {
    for (const row of this.#rows("SELECT * FROM outbox WHERE state = 'trying' ORDER BY id")) this.#ended(row, INTERRUPTED);
  }

  /** Durable when it returns. False: a duplicate. Throws `OutboxFull`. */
  take(message: OutboundMessage): boolean {
    const { db, now } = this.#ports;
    return db.transaction(() => {
      if (db.query("SELECT 1 FROM deliveries WHERE id = ?", message.deliveryId).length > 0) return false;
      const parts = this.#partsOf(message);
      if (this.waiting() + parts.length > KIT.outboxRows) throw new OutboxFull("too many messages are queued for the platform");
      const at = now();
      const empty = parts.length === 0;
      db.query(
        "INSERT INTO deliveries VALUES(?, ?, ?, '[]', ?, ?, 0, ?)",
        message.deliveryId,
        at,
        empty ? "failed" : "queued",
        empty ? "the message is empty" : null,
        empty ? 0 : 1,
        at,
      );
      for (const [index, part] of parts.entries())
        db.query(
          "INSERT INTO outbox(delivery, part, peer, body, state, attempts, first_at, next_at, ask_from) VALUES(?, ?, ?, ?, 'waiting', 0, 0, ?, ?)",
          message.deliveryId,
          index,
          peerName(message.peer),
          JSON.stringify(part),
          at,
          message.askFrom === undefined ? 0 : Math.max(1, message.askFrom),
        );
      if (message.askFrom !== undefined) this.#handedOver.add(message.deliveryId);
      return true;
    });
  }
  #partsOf({ deliveryId, kind, peer, text, media = [], actions = [], replyToId }: OutboundMessage): StoredPart[] {
    const platform = this.#ports.platform();
    const { capabilities } = platform;
    // A text that says what to write needs no list.
    const unsaid = capabilities.buttons ? [] : actions.filter(({ id }) => !text.includes(id));
    const spoken = unsaid.length > 0 ? `${text}\n\n${unsaid.map(({ label }) => `- ${label}`).join("\n")}` : text;
    const texts = splitText(platform.mark(spoken), capabilities.maxTextChars);
    const files = media.flatMap((entry) => toFile(entry) ?? []);
    const bodies: { text: string; file?: OutboundFile }[] = texts.map((part) => ({ text: part }));
    for (const file of files) bodies.push({ text: "", file });
    const last = texts.length - 1;
    return bodies.map((body, index) => {
      const partId = `${deliveryId}/${index}`;
      return {
        partId,
        nonce: nonceOf(partId),
        kind,
        peer,
        ...body,
        ...(index === 0 && replyToId !== undefined ? { replyToId } : {}),
        ...(index === last && actions.length > 0 && capabilities.buttons ? { actions } : {}),
      };
    });
  }
  waiting(): number {
    return this.#ports.db.query<{ n: number }>("SELECT count(*) AS n FROM outbox")[0]?.n ?? 0;
  }
  /** Deliveries of the last seven days that failed or whose outcome is unknown. */
  undelivered(): number {
    return (
      this.#ports.db.query<{ n: number }>(
        "SELECT count(*) AS n FROM deliveries WHERE at > ? AND state IN ('failed', 'unknown')",
        this.#ports.now() - UNDELIVERED_MS,
      )[0]?.n ?? 0
    );
  }

  // ---------------------------------------------------------------- sending

  #rows(statement: string, ...params: (string | number)[]): Row[] {
    return this.#ports.db.query<Row>(statement, ...params);
  }
  /** The first message of each conversation that may be looked at: while agents' messages are held, the others pass them. */
  #heads(): readonly { readonly peer: string; readonly next_at: number }[] {
    const { db, now } = this.#ports;
    return db
      .query<{ readonly peer: string; readonly next_at: number }>(
        `SELECT peer, next_at FROM outbox WHERE id IN (SELECT min(id) FROM outbox ${this.#visible("WHERE")} GROUP BY peer) ORDER BY next_at LIMIT ?`,
        KIT.headRows,
      )
      .map(({ peer, next_at }) => ({ peer, next_at: dueAt(next_at, now()) }));
  }
  #visible(word: "AND" | "WHERE"): string {
    return this.#permission.isBlocked ? `${word} ask_from = 0` : "";
  }
  /** Messages of agents wait here. */
  #hasAgents(): boolean {
    return this.#ports.db.query("SELECT 1 FROM outbox WHERE ask_from > 0 LIMIT 1").length > 0;
  }
  /** Without a connection, the only deadline is the one at which the oldest delivery fails. */
  #oldest(): readonly { readonly next_at: number }[] {
    return (
      this.#ports.db
        .query<{ at: number | null }>(`SELECT min(d.at) AS at FROM outbox o JOIN deliveries d ON d.id = o.delivery WHERE ${this.#aging()}`)
        // What is under way does not fail before it has ended.
        .flatMap(({ at }) => (at === null || this.#busy.size > 0 ? [] : { next_at: at + KIT.sendMaxMs + 1 }))
    );
  }
  /** The time of a stop does not count for the deadline of what it holds. */
  #aging(): string {
    return this.#permission.isHeld ? "o.ask_from = 0" : "TRUE";
  }
  /** Epoch ms of the next thing to do; undefined when nothing is due. A lost connection is not waited for here. */
  nextAt(): number | undefined {
    const { isOpen } = this.#ports;
    const again = this.#ports.now() + KIT.leaseMs;
    const isFull = this.#busy.size >= KIT.peersAtOnce;
    const heads = isOpen() ? this.#heads().filter(({ peer }) => !isFull && !this.#busy.has(peer)) : this.#oldest();
    const report = this.#reports.nextAt();
    const times = [
      ...heads.map(({ next_at }) => next_at),
      ...(report === undefined ? [] : [report]),
      ...this.#asksAt(),
      ...(this.#unwritten.size > 0 ? [this.#ports.now()] : []),
      // The lease of what is under way: this instance may die before it ends.
      ...(this.#busy.size > 0 ? [again] : []),
    ];
    return times.toSorted((left, right) => left - right)[0];
  }
  #asksAt(): readonly number[] {
    const at = this.#permission.nextAt();
    return at === undefined || !this.#hasAgents() ? [] : [at];
  }
  /** Asks the gateway again whether what waits may leave, and sends it. */
  async #askAgain(): Promise<void> {
    const now = this.#ports.now();
    if (!this.#asksAt().some((at) => at <= now)) return;
    if (await this.#permission.ask()) await this.pump();
  }
  /** Earlier send permits are no longer valid. */
  recheck(): void {
    this.#permission.recheck();
  }
  /** The stop is over: what it held has its whole time again. An attempt with an unknown outcome keeps its tries and its deadline. */
  #released(): void {
    const { db, now } = this.#ports;
    const at = now();
    db.query("UPDATE deliveries SET at = ? WHERE id IN (SELECT delivery FROM outbox WHERE ask_from > 0)", at);
    db.query("UPDATE outbox SET attempts = 0, first_at = 0, next_at = ? WHERE ask_from > 0 AND unsure = 0 AND state = 'waiting'", at);
  }
  /** Sends what is due and reports what ended. Rejects when the rows cannot be read. May be called at any time. */
  async pump(): Promise<void> {
    this.#writeAgain();
    this.#failOld();
    const now = this.#ports.now();
    const blocked = new Set([...this.#unwritten.values()].map(({ row }) => row.peer));
    const due = this.#ports.isOpen()
      ? this.#heads()
          .filter(({ peer, next_at }) => next_at <= now && !this.#busy.has(peer) && !blocked.has(peer))
          .slice(0, Math.max(0, KIT.peersAtOnce - this.#busy.size))
      : [];
    const serve = async (peer: string): Promise<void> => {
      // A free slot: start conversations that waited for one.
      if (await this.#serve(peer)) await this.pump();
    };
    await Promise.all([...due.map(({ peer }) => serve(peer)), this.#reports.send(), this.#askAgain()]);
  }
  /** False: an unexpected error; the alarm tries again. */
  async #serve(peer: string): Promise<boolean> {
    let isFine = true;
    this.#busy.add(peer);
    try {
      for (;;) {
        const row = this.#rows(`SELECT * FROM outbox WHERE peer = ? ${this.#visible("AND")} ORDER BY id LIMIT 1`, peer)[0];
        if (!row || dueAt(row.next_at, this.#ports.now()) > this.#ports.now() || !this.#ports.isOpen()) break;
        await this.#attempt(row);
      }
    } catch (error) {
      this.#ports.failed("outbox", error);
      isFine = false;
    } finally {
      this.#busy.delete(peer);
    }
    await this.#reports.send();
    return isFine;
  }
  async #attempt(row: Row): Promise<void> {
    const { db, now, after, platform } = this.#ports;
    // This instance is not sending it, so its outcome was not written.
    if (row.state === "trying") {
      this.#ended(row, INTERRUPTED);
      return this.#freed(row.peer);
    }
    const body: StoredPart = JSON.parse(row.body);
    // A live text that arrives after this point would stand beside the answer.
    await this.#live.settled(row.delivery);
    if (!(await this.#mayLeave(row))) return;
    if (row.unsure === 1 && now() - row.first_at >= (platform().recognisesNonceMs * 3) / 4) return this.#forgotten(row);
    const firstTriedAt = row.first_at === 0 ? now() : row.first_at;
    const attempt = row.attempts + 1;
    // Written before the attempt, so that the next instance knows of it.
    db.query("UPDATE outbox SET state = 'trying', attempts = ?, first_at = ? WHERE id = ?", attempt, firstTriedAt, row.id);
    const send = async (shown: string | undefined): Promise<Attempt> => {
      if (!(await this.#mayLeave(row))) return { kind: "held" };
      const part: OutboundPart = { ...body, attempt, firstTriedAt, ...(shown === undefined ? {} : { replaces: shown }) };
      return withinOrThrow(KIT.sendMs, "sending", after, platform().send(part)).catch(unsure);
    };
    const outcome =
      row.part === 0 && body.file === undefined
        ? // Without its live text the answer would appear beside it. The search is repeated only while the platform knows the nonce.
          await this.#live.messageId(row.delivery, body).then(send, notFound)
        : await send(undefined);
    this.#write({ ...row, attempts: attempt, first_at: firstTriedAt }, outcome);
    this.#freed(row.peer);
  }
  /** An outcome that cannot be written is kept: the message may be on the platform, and must not be sent again. */
  #write(row: Row, outcome: Attempt): void {
    if (this.#unwritten.size < KIT.unwrittenOutcomes) this.#unwritten.set(row.id, { row, outcome });
    this.#ended(row, outcome);
    this.#unwritten.delete(row.id);
  }
  #writeAgain(): void {
    for (const { row, outcome } of [...this.#unwritten.values()])
      try {
        this.#write(row, outcome);
        this.#freed(row.peer);
      } catch (error) {
        this.#ports.failed("outbox", error);
      }
  }
  async #mayLeave({ ask_from, delivery }: Row): Promise<boolean> {
    const from = ask_from > 0 && !this.#handedOver.has(delivery) ? 1 : ask_from;
    return this.#permission.covers(from) || (await this.#permission.ask());
  }
  /** The platform no longer recognises a repetition: the account was away, or everything was stopped, for too long. */
  #forgotten(row: Row): void {
    this.#ports.log("send_unknown", { attempts: row.attempts, error: "too late to try again" });
    const why = "it is not known whether an earlier attempt arrived, and it is too late to try again";
    this.#ports.db.transaction(() => this.#close(row, "unknown", undefined, why));
    this.#freed(row.peer);
  }
  #freed(peer: string): void {
    if (this.#rows("SELECT * FROM outbox WHERE peer = ? LIMIT 1", peer).length === 0) this.#live.freed(peer);
  }
  #ended(row: Row, outcome: Attempt): void {
    const { db, now, random, platform, log } = this.#ports;
    const at = now();
    const later = (waitMs: number, error: string, isUnsure: 0 | 1): void => {
      db.query(
        "UPDATE outbox SET state = 'waiting', next_at = ?, last_error = ?, unsure = ? WHERE id = ?",
        at + waitMs,
        error,
        isUnsure,
        row.id,
      );
    };
    const spent = row.attempts >= KIT.sendTries || at - row.first_at > KIT.sendMaxMs;
    switch (outcome.kind) {
      case "held": {
        const attempts = row.attempts - 1;
        const firstAt = attempts === 0 ? 0 : row.first_at;
        return void db.query("UPDATE outbox SET state = 'waiting', attempts = ?, first_at = ? WHERE id = ?", attempts, firstAt, row.id);
      }
      case "sent":
        return db.transaction(() => this.#close(row, "sent", outcome.messageId));
      case "failed":
        log("send_failed", { attempts: row.attempts, error: outcome.error });
        return this.#fail(row, outcome.error);
      case "retry":
        if (!spent) return later(Math.min(KIT.retryMaxMs, outcome.afterMs ?? retryWait(row.attempts, random())), outcome.error, row.unsure);
        log("send_failed_for_good", { attempts: row.attempts, error: outcome.error });
        return this.#fail(row, outcome.error);
      case "unsure": {
        const wait = retryWait(row.attempts, random());
        // With a margin: the retry must arrive while the platform still remembers the first attempt.
        if (!spent && at + wait - row.first_at < platform().recognisesNonceMs / 2) return later(wait, outcome.error, 1);
        log("send_unknown", { attempts: row.attempts, error: outcome.error });
        return db.transaction(() => this.#close(row, "unknown", undefined, outcome.error));
      }
    }
  }
  /** Ends the part and the later ones without success. Not as failed when an attempt has an unknown outcome: people would send it again. */
  #fail(row: Row, why: string): void {
    const { db } = this.#ports;
    const isUnsure = row.unsure === 1 || row.state === "trying";
    db.transaction(() => {
      db.query("DELETE FROM outbox WHERE delivery = ?", row.delivery);
      if (isUnsure) this.#close(row, "unknown", undefined, `${why}; the outcome of an earlier attempt is unknown`);
      else this.#close(row, "failed", undefined, why);
    });
  }
  /** Ends the part, and with the last part the delivery. */
  #close(row: Row, state: DeliveryState, messageId: string | undefined, error?: string): void {
    const { db, now } = this.#ports;
    const delivery = db.query<DeliveryRow>("SELECT state, messages, error FROM deliveries WHERE id = ?", row.delivery)[0];
    const known: string[] = JSON.parse(delivery?.messages ?? "[]");
    const messages = JSON.stringify(messageId === undefined ? known : [...known, messageId].slice(0, 64));
    db.query("DELETE FROM outbox WHERE id = ?", row.id);
    const over = db.query("SELECT 1 FROM outbox WHERE delivery = ? LIMIT 1", row.delivery).length === 0;
    const before = delivery?.state ?? "queued";
    const worst = before === "queued" ? state : before;
    // A successful delivery stays `queued` until its last part; a bad one keeps the state of its first bad part.
    const next = worst === "sent" && !over ? "queued" : worst;
    const why = error ?? delivery?.error ?? null;
    if (over) {
      db.query(
        "UPDATE deliveries SET state = ?, messages = ?, error = ?, reported = 0, report_at = ? WHERE id = ?",
        next,
        messages,
        why,
        now(),
        row.delivery,
      );
      this.#live.end(row.delivery);
      this.#handedOver.delete(row.delivery);
    } else db.query("UPDATE deliveries SET state = ?, messages = ?, error = ? WHERE id = ?", next, messages, why, row.delivery);
  }
  /** Ends deliveries that could not be attempted for a day. */
  #failOld(): void {
    const { now } = this.#ports;
    for (const row of this.#rows(
      `SELECT o.* FROM outbox o JOIN deliveries d ON d.id = o.delivery
       WHERE d.at < ? AND o.part = (SELECT min(part) FROM outbox WHERE delivery = o.delivery) AND ${this.#aging()} ORDER BY o.id LIMIT 100`,
      now() - KIT.sendMaxMs,
    )) {
      if (this.#busy.has(row.peer) || this.#unwritten.has(row.id)) continue;
      const away = row.ask_from > 0 && this.#permission.isBlocked ? NOT_ASKED : "the platform could not be reached for a day";
      this.#fail(row, away);
      this.#freed(row.peer);
    }
  }

  /** Shows a text while the answer is generated. */
  show(text: LiveText): void {
    this.#live.show(text);
  }

  /** One bounded step of pruning. */
  prune(): void {
    const { db, now } = this.#ports;
    const before = now() - KIT.rememberMs;
    db.query(
      "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE at < ? AND state <> 'queued' AND reported = 1 ORDER BY at LIMIT ?)",
      before,
      KIT.pruneRows,
    );
    this.#live.prune();
  }
}

const unsure = (error: unknown): SendOutcome => ({ kind: "unsure", error: errorText(error) });
const notFound = (error: unknown): SendOutcome => ({ kind: "retry", error: `its live text was not found: ${errorText(error)}` });
function toFile({ type, mimeType, r2Key, filename }: Media): OutboundFile | undefined {
  if (r2Key === undefined) return undefined;
  return {
    kind: type,
    mimeType,
    r2Key,
    voice: type === "audio" && /^audio\/(?:ogg|opus)/.test(mimeType),
    ...(filename === undefined ? {} : { filename }),
  };
}
