/**
 * Messages that arrive: maps each one and hands it to the inbox, or counts why it was ignored. Warns of messages that came without
 * encryption, which are dropped. Never logs a text or an id of a person.
 */
import type { PlatformHost } from "../../kit/src/platform.ts";
import { own } from "./content.ts";
import type { Groups } from "./groups.ts";
import { parseJid, selfOf } from "./jid.ts";
import { mapInbound } from "./map-inbound.ts";
import type { MessageStore } from "./message-store.ts";

const COUNTS = "counts";
const UNENCRYPTED_AT = "unencryptedAt";
const WARN_MS = 7 * 86_400_000;

/** What this needs of the connection. */
export interface InboundLink {
  /** A message was taken. */
  active(): void;
  fetchGroup(jid: string): void;
  failed(what: string, error: unknown): void;
}

export class Inbound {
  readonly #host: Pick<PlatformHost, "kv" | "now" | "log" | "changed">;
  readonly #messages: MessageStore;
  readonly #groups: Groups;
  readonly #selfChat: boolean;
  readonly #link: InboundLink;

  constructor(
    host: Pick<PlatformHost, "kv" | "now" | "log" | "changed">,
    parts: { readonly messages: MessageStore; readonly groups: Groups; readonly selfChat: boolean },
    link: InboundLink,
  ) {
    this.#host = host;
    this.#messages = parts.messages;
    this.#groups = parts.groups;
    this.#selfChat = parts.selfChat;
    this.#link = link;
  }

  /** Synchronous up to the inbox's row, so that a message and its keys become durable together. */
  received(message: unknown, backlog: boolean, me: Parameters<typeof selfOf>[0]): void {
    try {
      const chat = own(own(message, "key"), "remoteJid");
      const mapped = mapInbound(message, {
        self: selfOf(me),
        selfChat: this.#selfChat,
        receivedAt: this.#host.now(),
        backlog,
        ...this.#groupName(chat),
        isOwnMessage: (id) => this.#messages.wasSent(id),
      });
      if (mapped.kind === "ignored") {
        this.#count(mapped.why);
        return;
      }
      if (mapped.unknown !== undefined) {
        this.#count("unknownKind");
        this.#host.log("unknown_message_kind", { kind: mapped.unknown });
      }
      if (this.#messages.isForgedEdit(mapped.item)) {
        this.#count("forgedEdit");
        return;
      }
      this.#link.active();
      this.#messages.take(mapped.item);
    } catch (error) {
      this.#count("failed");
      this.#link.failed("message", error);
    }
  }
  droppedUnencrypted(): void {
    this.#count("unencrypted");
    this.#host.kv.put(UNENCRYPTED_AT, this.#host.now());
    this.#host.log("unencrypted_message_dropped");
    this.#host.changed();
  }
  /** For a week after the last one. */
  warning(): string | undefined {
    const at = this.#host.kv.get<number>(UNENCRYPTED_AT);
    if (at === undefined || this.#host.now() - at > WARN_MS) return undefined;
    const count = this.ignored()["unencrypted"] ?? 1;
    return `${count === 1 ? "A message" : `${count} messages`} came without encryption and ${count === 1 ? "was" : "were"} dropped: such a message can be in any name.`;
  }
  #groupName(chat: unknown): { readonly groupName?: string } {
    const jid = parseJid(chat);
    if (jid?.kind !== "group") return {};
    const groupName = this.#groups.name(jid.id, () => this.#link.fetchGroup(jid.id));
    return groupName === undefined ? {} : { groupName };
  }
  /** Counts ignored messages by cause, for the status. */
  #count(why: string): void {
    const counts = this.ignored();
    this.#host.kv.put(COUNTS, { ...counts, [why]: (counts[why] ?? 0) + 1 });
  }
  /** Ignored messages by cause. */
  ignored(): Readonly<Record<string, number>> {
    return this.#host.kv.get<Record<string, number>>(COUNTS) ?? {};
  }
}
