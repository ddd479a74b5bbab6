/**
 * The account's small memory beside the keys: what can be quoted, what was sent, names of groups, counters, the last time of being
 * connected. Everything in it is bounded, and nothing depends on it but comfort; the queues are the kit's.
 */
import type { InboundItem, PlatformHost } from "../../kit/src/platform.ts";
import type { Quotable } from "./map-outbound.ts";

const QUOTES_PER_CHAT = 20;
const QUOTE_CHARS = 500;
const SENT_KEPT = 200;
/** Looked at now and then, because looking means listing. */
const SENT_CHECKED_EVERY = 50;
const LATE_AT_ONCE = 200;
const GAP_SHOWN_MS = 7 * 86_400_000;

interface Remembered extends Quotable {
  readonly id: string;
}
interface Sent {
  readonly at: number;
  readonly message: string;
}
interface Gap {
  readonly from: number;
  readonly until: number;
  readonly why: string;
}

export class Memory {
  readonly #host: PlatformHost;
  #sentSinceCheck = SENT_CHECKED_EVERY;
  readonly #justSent = new Set<string>();

  constructor(host: PlatformHost) {
    this.#host = host;
  }

  /** Into the inbox. When the inbox takes no more, it waits here: WhatsApp will not bring it again. */
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
  /** What waited, the oldest first. */
  takeLate(): void {
    const { kv, transaction } = this.#host;
    for (const name of kv.keys("late.").slice(0, LATE_AT_ONCE)) {
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

  /** Nobody may change what somebody else wrote; who manages a group may only take it away. */
  isForgedEdit({ inbound: { peer, sender, senderIds, message } }: InboundItem): boolean {
    const target = message.editOf === undefined || message.deleted === true ? undefined : this.quotable(peer.id, message.editOf);
    if (!target) return false;
    const phone = senderIds?.phone === undefined ? undefined : `${senderIds.phone.slice(1)}@s.whatsapp.net`;
    const author = target.participant;
    return target.fromMe || (author !== undefined && author !== sender?.id && author !== senderIds?.lid && author !== phone);
  }

  /** Before it goes out: a receiver may ask for it again, and a second try sends the same. */
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
    if (this.#justSent.size > 1_000) this.#justSent.clear();
  }
  sentBytes(id: string): Uint8Array | undefined {
    const kept = this.#host.kv.get<Sent>(`sent.${id}`);
    return kept && Buffer.from(kept.message, "base64");
  }
  wasSent(id: string): boolean {
    return this.#justSent.has(id) || this.#host.kv.get(`sent.${id}`) !== undefined;
  }

  groupName(jid: string): string | undefined {
    return this.#host.kv.get<string>(`group.${jid}`);
  }
  nameGroup(jid: string, subject: string): void {
    const name = subject.slice(0, 256);
    if (this.groupName(jid) !== name) this.#host.kv.put(`group.${jid}`, name);
  }

  count(what: string): void {
    const counts = this.#host.kv.get<Record<string, number>>("counts") ?? {};
    this.#host.kv.put("counts", { ...counts, [what]: (counts[what] ?? 0) + 1 });
  }
  /** A time of the last days of which messages may be missing. */
  gap(): Gap | undefined {
    const { kv, now } = this.#host;
    const gap = kv.get<Gap>("gap");
    return gap && now() - gap.until < GAP_SHOWN_MS ? gap : undefined;
  }
  /** For `status`: what was left out, what waits. */
  counts(): Readonly<Record<string, unknown>> {
    const { kv } = this.#host;
    const late = kv.keys("late.").length;
    return {
      ignored: kv.get("counts") ?? {},
      ...(late === 0 ? {} : { waitingForInbox: late }),
    };
  }

  alive(): void {
    this.#host.kv.put("aliveAt", this.#host.now());
  }
  /** 0 for an account that was never connected. */
  awayMs(): number {
    const at = this.#host.kv.get<number>("aliveAt");
    return at === undefined ? 0 : Math.max(0, this.#host.now() - at);
  }
  markGap(why: string): void {
    const until = this.#host.now();
    this.#host.kv.put("gap", { from: until - this.awayMs(), until, why } satisfies Gap);
  }
  /** After a logout: nothing of the number is left. */
  clear(): void {
    const { kv, transaction } = this.#host;
    transaction(() => {
      for (const prefix of ["recent.", "sent.", "group."]) for (const name of kv.keys(prefix)) kv.delete(name);
      for (const name of ["aliveAt", "gap"]) kv.delete(name);
    });
  }
}
