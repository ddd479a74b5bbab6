/**
 * Messages that the account must remember: recent ones for quotes and edits, sent ones for retries and for receivers who could not
 * decrypt them, and decrypted ones that a full inbox did not take. Durable and bounded. The kit's queues are not here.
 */
import type { InboundItem, PlatformHost } from "../../kit/src/platform.ts";
import type { Quotable } from "./map-outbound.ts";

const QUOTES_PER_CHAT = 20;
const QUOTE_CHARS = 500;
const SENT_KEPT = 200;
/** Pruning lists all names, so it runs only after this many messages. */
const SENT_CHECKED_EVERY = 50;
const OVERFLOW_AT_ONCE = 200;
const MAX_JUST_SENT = 1_000;

interface Remembered extends Quotable {
  readonly id: string;
}
interface Sent {
  readonly at: number;
  readonly message: string;
}

export class MessageStore {
  readonly #host: Pick<PlatformHost, "kv" | "now" | "transaction" | "take" | "log">;
  #sentSinceCheck = SENT_CHECKED_EVERY;
  readonly #justSent = new Set<string>();

  constructor(host: Pick<PlatformHost, "kv" | "now" | "transaction" | "take" | "log">) {
    this.#host = host;
  }

  /** Puts the message into the inbox. When the inbox is full, keeps it here: WhatsApp will not deliver it again. */
  take(item: InboundItem): void {
    const { kv, transaction } = this.#host;
    try {
      transaction(() => {
        if (this.#host.take(item)) this.#remember(item);
      });
    } catch {
      kv.put(`late.${item.inbound.receivedAt}.${item.key}`, item);
      this.#host.log("inbox_full");
    }
  }
  /** Moves kept messages into the inbox, the oldest first. */
  takeOverflow(): void {
    const { kv, transaction } = this.#host;
    for (const name of kv.keys("late.").slice(0, OVERFLOW_AT_ONCE)) {
      const item = kv.get<InboundItem>(name);
      try {
        transaction(() => {
          if (item) this.#host.take(item);
          kv.delete(name);
        });
      } catch {
        return;
      }
    }
  }
  /** Messages that wait for space in the inbox. */
  overflow(): number {
    return this.#host.kv.keys("late.").length;
  }
  #remember({ key, inbound: { peer, sender, message, fromOwner } }: InboundItem): void {
    const participant = peer.kind === "group" && sender ? { participant: sender.id } : {};
    this.#keep(peer.id, { id: key, text: message.text.slice(0, QUOTE_CHARS), fromMe: fromOwner === true, ...participant });
  }
  #keep(chat: string, entry: Remembered): void {
    const { kv } = this.#host;
    const before = kv.get<Remembered[]>(`recent.${chat}`) ?? [];
    kv.put(`recent.${chat}`, [...before.filter(({ id }) => id !== entry.id), entry].slice(-QUOTES_PER_CHAT));
  }
  quotable(chat: string, id: string): Quotable | undefined {
    return this.#host.kv.get<Remembered[]>(`recent.${chat}`)?.find((entry) => entry.id === id);
  }
  /** True for an edit of another person's message. Deletions pass: an admin may delete others' messages. */
  isForgedEdit({ inbound: { peer, sender, senderIds, message } }: InboundItem): boolean {
    const target = message.editOf === undefined || message.deleted === true ? undefined : this.quotable(peer.id, message.editOf);
    if (!target) return false;
    const phone = senderIds?.phone === undefined ? undefined : `${senderIds.phone.slice(1)}@s.whatsapp.net`;
    const author = target.participant;
    return target.fromMe || (author !== undefined && author !== sender?.id && author !== senderIds?.lid && author !== phone);
  }

  /** Call before the send: a receiver may ask for the message again, and a retry sends the same bytes. */
  sent(id: string, chat: string, bytes: Uint8Array, text: string): void {
    const { kv, now, transaction } = this.#host;
    this.#justSent.add(id);
    transaction(() => {
      kv.put(`sent.${id}`, { at: now(), message: Buffer.from(bytes).toString("base64") } satisfies Sent);
      this.#keep(chat, { id, text: text.slice(0, QUOTE_CHARS), fromMe: true });
    });
    if (++this.#sentSinceCheck < SENT_CHECKED_EVERY) return;
    this.#sentSinceCheck = 0;
    const all = kv.keys("sent.").map((name) => ({ name, at: kv.get<Sent>(name)?.at ?? 0 }));
    for (const { name } of all.toSorted((left, right) => right.at - left.at).slice(SENT_KEPT)) kv.delete(name);
    if (this.#justSent.size > MAX_JUST_SENT) this.#justSent.clear();
  }
  sentBytes(id: string): Uint8Array | undefined {
    const kept = this.#host.kv.get<Sent>(`sent.${id}`);
    return kept && Buffer.from(kept.message, "base64");
  }
  wasSent(id: string): boolean {
    return this.#justSent.has(id) || this.#host.kv.get(`sent.${id}`) !== undefined;
  }

  clear(): void {
    const { kv } = this.#host;
    for (const prefix of ["recent.", "sent."]) for (const name of kv.keys(prefix)) kv.delete(name);
  }
}
