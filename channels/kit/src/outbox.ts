/**
 * The durable outbox of an account (promises P9, P3). A delivery is a row before its sender is told that it was taken, and each try
 * is noted before it is made. Per conversation in order, one message at a time. What may have arrived is tried again only while the
 * platform recognises the second try; else it is marked `unknown` and shown, never sent blindly. Knows no platform.
 */
import type { DeliveryReport, DeliveryState, LiveText, Media, OutboundMessage } from "../../../protocol/gen/types.ts";
import type { Database } from "./database.ts";
import { dueAt, errorText, KIT, peerName, retryWait, within } from "./limits.ts";
import type { OutboundFile, OutboundPart, Platform, SendOutcome } from "./platform.ts";
import { splitText } from "./split-text.ts";

export interface OutboxPorts {
  readonly db: Database;
  readonly now: () => number;
  readonly random: () => number;
  readonly after: (ms: number, work: () => void) => () => void;
  readonly platform: () => Pick<Platform, "capabilities" | "recognisesNonceMs" | "mark" | "send" | "showLive">;
  /** The account is started, and its platform is there. */
  readonly isOpen: () => boolean;
  /** Tells the gateway how a delivery ended; throws when it has to be told again. */
  readonly report: (report: DeliveryReport) => Promise<void>;
  readonly log: (event: string, fields?: Readonly<Record<string, string | number | boolean | undefined>>) => void;
}
export class OutboxFull extends Error {
  override readonly name = "OutboxFull";
}
/** A part as it is kept; the rest of OutboundPart is in the row's columns. */
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
}
interface DeliveryRow {
  readonly id: string;
  readonly state: "queued" | DeliveryState;
  readonly messages: string;
  readonly error: string | null;
  readonly report_attempts: number;
}
/** Failures older than this are no news. */
const UNDELIVERED_MS = 7 * 86_400_000;
const NONCE_CHARS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 24 characters that depend on every one of the name's. */
export function nonceOf(partId: string): string {
  let out = "";
  for (let round = 0; round < 4; round++) {
    let a = 0x811c9dc5 ^ round;
    let b = 0x9e3779b9 + round;
    for (let at = 0; at < partId.length; at++) {
      a = Math.imul(a ^ partId.charCodeAt(at), 0x01000193) >>> 0;
      b = (Math.imul(b ^ partId.charCodeAt(at), 0x85ebca6b) ^ (b >>> 13) ^ a) >>> 0;
    }
    let mixed = BigInt(a) * 0x100000000n + BigInt(b);
    for (let n = 0; n < 6; n++, mixed /= 62n) out += NONCE_CHARS[Number(mixed % 62n)] ?? "0";
  }
  return out;
}

export class Outbox {
  readonly #ports: OutboxPorts;
  readonly #busy = new Set<string>();
  #reporting = false;
  /** Newest text by delivery, and when it was last shown. Memory only: the answer itself comes by the queue. */
  readonly #live = new Map<string, { readonly shownAt: number; readonly busy: boolean; readonly next?: LiveText }>();

  readonly #showing = new Map<string, Promise<void>>();

  constructor(ports: OutboxPorts) {
    this.#ports = ports;
  }

  /** What was being tried when the last life ended may have arrived. Once, at the beginning of a life. */
  recover(): void {
    for (const row of this.#rows("SELECT * FROM outbox WHERE state = 'trying' ORDER BY id"))
      this.#ended(row, { kind: "unsure", error: "the channel was interrupted while it sent this" });
  }

  /** Durable when it returns. False: the delivery had been taken before. Throws `OutboxFull`. */
  take(message: OutboundMessage): boolean {
    const { db, now } = this.#ports;
    return db.transaction(() => {
      if (db.query("SELECT 1 FROM deliveries WHERE id = ?", message.deliveryId).length > 0) return false;
      const parts = this.#partsOf(message);
      if (this.waiting() + parts.length > KIT.outboxRows) throw new OutboxFull("too many messages wait for the platform");
      const at = now();
      const empty = parts.length === 0;
      db.query(
        "INSERT INTO deliveries VALUES(?, ?, ?, '[]', ?, ?, 0, ?)",
        message.deliveryId,
        at,
        empty ? "failed" : "queued",
        empty ? "there was nothing to send" : null,
        empty ? 0 : 1,
        at,
      );
      for (const [index, part] of parts.entries())
        db.query(
          "INSERT INTO outbox(delivery, part, peer, body, state, attempts, first_at, next_at) VALUES(?, ?, ?, ?, 'waiting', 0, 0, ?)",
          message.deliveryId,
          index,
          peerName(message.peer),
          JSON.stringify(part),
          at,
        );
      return true;
    });
  }
  #partsOf({ deliveryId, peer, text, media = [], actions = [], replyToId }: OutboundMessage): StoredPart[] {
    const platform = this.#ports.platform();
    const { capabilities } = platform;
    const spoken = actions.length > 0 && !capabilities.buttons ? `${text}\n\n${actions.map(({ label }) => `- ${label}`).join("\n")}` : text;
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
  /** Deliveries of the last days that failed or of which nobody knows. */
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
  #heads(): readonly { readonly peer: string; readonly next_at: number }[] {
    const { db, now } = this.#ports;
    return db
      .query<{ readonly peer: string; readonly next_at: number }>(
        "SELECT peer, next_at FROM outbox WHERE id IN (SELECT min(id) FROM outbox GROUP BY peer) ORDER BY next_at LIMIT 100",
      )
      .map(({ peer, next_at }) => ({ peer, next_at: dueAt(next_at, now()) }));
  }
  /** Without a connection there is one thing left to do: to say so after a day. */
  #oldest(): readonly { readonly next_at: number }[] {
    return this.#ports.db
      .query<{ at: number | null }>("SELECT min(d.at) AS at FROM outbox o JOIN deliveries d ON d.id = o.delivery WHERE o.state = 'waiting'")
      .flatMap(({ at }) => (at === null ? [] : { next_at: at + KIT.sendMaxMs + 1 }));
  }
  /** When something can be done next; undefined: nothing waits for time. A lost connection is waited for by its own means. */
  nextAt(): number | undefined {
    const { db, isOpen } = this.#ports;
    const again = this.#ports.now() + KIT.leaseMs;
    const isFull = this.#busy.size >= KIT.peersAtOnce;
    const heads = isOpen() ? this.#heads().filter(({ peer }) => !isFull && !this.#busy.has(peer)) : this.#oldest();
    const reports = db.query<{ at: number }>("SELECT report_at AS at FROM deliveries WHERE reported = 0 ORDER BY report_at LIMIT 1");
    const times = [
      ...heads.map(({ next_at }) => next_at),
      ...reports.map(({ at }) => (this.#reporting ? Math.max(at, again) : dueAt(at, this.#ports.now()))),
      // This life may end in the middle of it.
      ...(this.#busy.size > 0 ? [again] : []),
    ];
    return times.toSorted((left, right) => left - right)[0];
  }
  /** Sends what is due and reports what ended. Never throws; safe to call at any time. */
  async pump(): Promise<void> {
    this.#giveUpOld();
    const now = this.#ports.now();
    const due = this.#ports.isOpen()
      ? this.#heads()
          .filter(({ peer, next_at }) => next_at <= now && !this.#busy.has(peer))
          .slice(0, Math.max(0, KIT.peersAtOnce - this.#busy.size))
      : [];
    const serve = async (peer: string): Promise<void> => {
      // What waited only because all places were taken.
      if (await this.#serve(peer)) await this.pump();
    };
    await Promise.all([...due.map(({ peer }) => serve(peer)), this.#report()]);
  }
  /** False: something went wrong that nothing is known of, and the alarm tries again. */
  async #serve(peer: string): Promise<boolean> {
    let isFine = true;
    this.#busy.add(peer);
    try {
      for (;;) {
        const row = this.#rows("SELECT * FROM outbox WHERE peer = ? ORDER BY id LIMIT 1", peer)[0];
        if (!row || dueAt(row.next_at, this.#ports.now()) > this.#ports.now() || !this.#ports.isOpen()) break;
        await this.#one(row);
      }
    } catch (error) {
      this.#ports.log("outbox_failed", { error: errorText(error) });
      isFine = false;
    } finally {
      this.#busy.delete(peer);
    }
    await this.#report();
    return isFine;
  }
  async #one(row: Row): Promise<void> {
    const { db, now, after, platform } = this.#ports;
    const firstTriedAt = row.first_at === 0 ? now() : row.first_at;
    const attempt = row.attempts + 1;
    // Before the try: when this life ends in the middle of it, the next one knows.
    db.query("UPDATE outbox SET state = 'trying', attempts = ?, first_at = ? WHERE id = ?", attempt, firstTriedAt, row.id);
    const body: StoredPart = JSON.parse(row.body);
    // A message that is just being shown would stay beside the answer.
    await this.#showing.get(row.delivery);
    const shown = row.part === 0 && body.file === undefined ? await this.#shownOrFound(row.delivery, body) : undefined;
    const part: OutboundPart = { ...body, attempt, firstTriedAt, ...(shown === undefined ? {} : { replaces: shown }) };
    const outcome = await within(KIT.sendMs, "sending", after, platform().send(part)).catch(
      (error: unknown): SendOutcome => ({ kind: "unsure", error: errorText(error) }),
    );
    this.#ended({ ...row, attempts: attempt, first_at: firstTriedAt }, outcome);
  }
  #shown(delivery: string): string | undefined {
    const [row] = this.#ports.db.query<{ message: string }>("SELECT message FROM live WHERE delivery = ?", delivery);
    return row && (row.message || undefined);
  }
  /** A life that ended while it showed the first words did not learn their name: by the same nonce it is found. */
  async #shownOrFound(delivery: string, { peer, text, replyToId }: StoredPart): Promise<string | undefined> {
    const { db, now, after, log } = this.#ports;
    const platform = this.#ports.platform();
    const [row] = db.query<{ message: string; at: number }>("SELECT message, at FROM live WHERE delivery = ?", delivery);
    if (row?.message !== "") return row?.message;
    if (platform.showLive === undefined || now() - row.at > platform.recognisesNonceMs / 2) return undefined;
    try {
      const found = await within(
        KIT.sendMs,
        "finding an answer",
        after,
        platform.showLive(peer, text, undefined, replyToId, liveNonce(delivery)),
      );
      if (found !== undefined) db.query("UPDATE live SET message = ? WHERE delivery = ?", found, delivery);
      return found;
    } catch (error) {
      log("live_not_found", { error: errorText(error) });
      return undefined;
    }
  }
  #ended(row: Row, outcome: SendOutcome): void {
    const { db, now, random, platform, log } = this.#ports;
    const at = now();
    const later = (waitMs: number, error: string): void => {
      db.query("UPDATE outbox SET state = 'waiting', next_at = ?, last_error = ? WHERE id = ?", at + waitMs, error, row.id);
    };
    const spent = row.attempts >= KIT.sendTries || at - row.first_at > KIT.sendMaxMs;
    switch (outcome.kind) {
      case "sent":
        return db.transaction(() => this.#close(row, "sent", outcome.messageId));
      case "failed":
        log("send_failed", { attempts: row.attempts, error: outcome.error });
        return db.transaction(() => this.#close(row, "failed", undefined, outcome.error));
      case "retry":
        if (!spent) return later(Math.min(KIT.retryMaxMs, outcome.afterMs ?? retryWait(row.attempts, random())), outcome.error);
        log("send_given_up", { attempts: row.attempts, error: outcome.error });
        return db.transaction(() => this.#close(row, "failed", undefined, outcome.error));
      case "unsure": {
        const wait = retryWait(row.attempts, random());
        // With room to spare: the second try has to arrive while the first one is remembered.
        if (!spent && at + wait - row.first_at < platform().recognisesNonceMs / 2) return later(wait, outcome.error);
        log("send_unknown", { attempts: row.attempts, error: outcome.error });
        return db.transaction(() => this.#close(row, "unknown", undefined, outcome.error));
      }
    }
  }
  /** The part is over; with the last one the delivery is. After a failed part its later ones make no sense. */
  #close(row: Row, state: DeliveryState, messageId: string | undefined, error?: string): void {
    const { db, now } = this.#ports;
    const delivery = db.query<DeliveryRow>(
      "SELECT id, state, messages, error, report_attempts FROM deliveries WHERE id = ?",
      row.delivery,
    )[0];
    const known: string[] = JSON.parse(delivery?.messages ?? "[]");
    const messages = JSON.stringify(messageId === undefined ? known : [...known, messageId].slice(0, 64));
    db.query("DELETE FROM outbox WHERE id = ?", row.id);
    if (state === "failed") db.query("DELETE FROM outbox WHERE delivery = ?", row.delivery);
    const over = db.query("SELECT 1 FROM outbox WHERE delivery = ? LIMIT 1", row.delivery).length === 0;
    const before = delivery?.state ?? "queued";
    const worst = state === "sent" && before !== "queued" ? before : state;
    // Until its last part a delivery that goes well is still queued; one that does not says so from the first bad part on.
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
      db.query("DELETE FROM live WHERE delivery = ?", row.delivery);
      this.#live.delete(row.delivery);
    } else db.query("UPDATE deliveries SET state = ?, messages = ?, error = ? WHERE id = ?", next, messages, why, row.delivery);
  }
  /** What could not even be tried for a day. */
  #giveUpOld(): void {
    const { db, now } = this.#ports;
    for (const row of this.#rows(
      "SELECT o.* FROM outbox o JOIN deliveries d ON d.id = o.delivery WHERE d.at < ? AND o.state = 'waiting' ORDER BY o.id LIMIT 100",
      now() - KIT.sendMaxMs,
    )) {
      if (this.#busy.has(row.peer)) continue;
      db.transaction(() => this.#close(row, "failed", undefined, "the platform could not be reached for a day"));
    }
  }

  // ---------------------------------------------------------------- reports

  async #report(): Promise<void> {
    if (this.#reporting) return;
    this.#reporting = true;
    const { db, now, random, after, report } = this.#ports;
    try {
      for (;;) {
        const row = db.query<DeliveryRow>(
          "SELECT id, state, messages, error, report_attempts FROM deliveries WHERE reported = 0 AND (report_at <= ? OR report_at > ?) ORDER BY report_at LIMIT 1",
          now(),
          now() + 2 * KIT.retryMaxMs,
        )[0];
        if (!row || row.state === "queued") return;
        try {
          const messageIds: string[] = JSON.parse(row.messages);
          const { id: deliveryId, state, error } = row;
          await within(KIT.handOverMs, "reporting", after, report({ deliveryId, state, messageIds, ...(error === null ? {} : { error }) }));
          db.query("UPDATE deliveries SET reported = 1 WHERE id = ?", row.id);
        } catch {
          const attempts = row.report_attempts + 1;
          db.query(
            "UPDATE deliveries SET report_attempts = ?, report_at = ? WHERE id = ?",
            attempts,
            now() + retryWait(attempts, random()),
            row.id,
          );
        }
      }
    } finally {
      this.#reporting = false;
    }
  }

  // ---------------------------------------------------------------- answers in the making

  /** Shows the newest text, at most so often; never throws, never waits in line, never comes after the answer itself. */
  show(text: LiveText): void {
    const entry = this.#live.get(text.deliveryId) ?? { shownAt: 0, busy: false };
    this.#live.set(text.deliveryId, { ...entry, next: text });
    if (!entry.busy) void this.#showNext(text.deliveryId);
  }
  async #showNext(id: string): Promise<void> {
    const { db, now, after } = this.#ports;
    const entry = this.#live.get(id);
    if (!entry?.next || entry.busy) return;
    // The answer is in the queue: nothing may overtake it.
    if (this.#ports.platform().showLive === undefined || db.query("SELECT 1 FROM deliveries WHERE id = ?", id).length > 0)
      return void this.#live.delete(id);
    const wait = entry.shownAt + KIT.liveEveryMs - now();
    if (wait > 0) {
      this.#live.set(id, { ...entry, busy: true });
      after(wait, () => {
        const present = this.#live.get(id);
        if (!present) return;
        this.#live.set(id, { ...present, busy: false });
        void this.#showNext(id);
      });
      return;
    }
    this.#live.set(id, { shownAt: now(), busy: true });
    const showing = this.#showNow(entry.next).catch((error: unknown) => this.#ports.log("live_failed", { error: errorText(error) }));
    this.#showing.set(id, showing);
    await showing;
    this.#showing.delete(id);
    const present = this.#live.get(id);
    if (!present) return;
    this.#live.set(id, { ...present, busy: false });
    if (present.next) void this.#showNext(id);
  }
  async #showNow({ deliveryId, peer, text, replyToId }: LiveText): Promise<void> {
    const { db, now, after } = this.#ports;
    const platform = this.#ports.platform();
    const [first = "", ...more] = splitText(platform.mark(text), platform.capabilities.maxTextChars);
    if (first === "" || platform.showLive === undefined || !this.#ports.isOpen()) return;
    const shown = this.#shown(deliveryId);
    const visible = more.length > 0 ? `${first.slice(0, -1)}…` : first;
    // Before it is shown: when this life ends in the middle of it, the next one looks for it.
    if (shown === undefined) db.query("INSERT INTO live VALUES(?, '', ?) ON CONFLICT(delivery) DO NOTHING", deliveryId, now());
    const showing = platform.showLive(peer, visible, shown, replyToId, liveNonce(deliveryId));
    const messageId = await within(KIT.sendMs, "showing an answer", after, showing);
    if (messageId === undefined || shown !== undefined) return;
    db.query(
      "INSERT INTO live VALUES(?, ?, ?) ON CONFLICT(delivery) DO UPDATE SET message = excluded.message",
      deliveryId,
      messageId,
      now(),
    );
  }

  /** A bounded step of forgetting. */
  forget(): void {
    const { db, now } = this.#ports;
    const before = now() - KIT.rememberMs;
    db.query(
      "DELETE FROM deliveries WHERE id IN (SELECT id FROM deliveries WHERE at < ? AND state <> 'queued' AND reported = 1 ORDER BY at LIMIT ?)",
      before,
      KIT.forgetStep,
    );
    db.query("DELETE FROM live WHERE delivery IN (SELECT delivery FROM live WHERE at < ? LIMIT ?)", now() - KIT.liveMaxMs, KIT.forgetStep);
  }
}

const liveNonce = (deliveryId: string): string => nonceOf(`live:${deliveryId}`);

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
