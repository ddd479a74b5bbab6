/**
 * Messages that leave: prepares each one once, keeps its bytes, so that a retry sends the same ones, and relays it. An answer that is
 * missing is an unknown outcome, never a success.
 */
import { generateWAMessage, proto, type WASocket } from "@whiskeysockets/baileys";
import type { OutboundPart, PlatformHost, SendOutcome } from "../../kit/src/platform.ts";
import { mapOutbound, MAX_FILE_BYTES, peerJid } from "./map-outbound.ts";
import { messageIdOf } from "./message-id.ts";
import type { MessageStore } from "./message-store.ts";
import { silent } from "./platform/pino.ts";

export const WAIT_FOR_ACK_MS = 20_000;

/** What this needs of the connection. */
export interface OutboundLink {
  /** The socket while it is open. */
  open(): WASocket | undefined;
  /** A message was sent. */
  active(): void;
  failed(what: string, error: unknown): void;
}

export class Outbound {
  readonly #host: Pick<PlatformHost, "readFile">;
  readonly #messages: MessageStore;
  readonly #link: OutboundLink;

  constructor(host: Pick<PlatformHost, "readFile">, messages: MessageStore, link: OutboundLink) {
    this.#host = host;
    this.#messages = messages;
    this.#link = link;
  }

  async send(part: OutboundPart): Promise<SendOutcome> {
    const sock = this.#link.open();
    if (!sock) return { kind: "retry", error: "WhatsApp is not connected" };
    const jid = peerJid(part.peer);
    if (jid === undefined) return { kind: "failed", error: `${JSON.stringify(part.peer.id)} is not a ${part.peer.kind} on WhatsApp` };
    const id = messageIdOf(part.nonce);
    let message: proto.IMessage;
    try {
      // A retry sends the same bytes and uploads nothing again.
      const kept = this.#messages.sentBytes(id);
      const made = kept ? proto.Message.decode(kept) : await this.#prepare(sock, id, part);
      if ("kind" in made) return made;
      message = made;
    } catch (error) {
      this.#link.failed("send_prepare", error);
      return { kind: "retry", error: "the message could not be prepared for WhatsApp" };
    }
    this.#messages.sent(id, jid, proto.Message.encode(proto.Message.fromObject(message)).finish(), part.text);
    return this.#relay(sock, jid, id, message, part.replaces !== undefined);
  }
  async #prepare(sock: WASocket, id: string, part: OutboundPart): Promise<proto.IMessage | SendOutcome> {
    const stored = part.file ? await this.#host.readFile(part, MAX_FILE_BYTES) : null;
    // Baileys tells bytes from a path only by the class Buffer.
    const bytes = stored?.bytes && Buffer.from(stored.bytes);
    if (stored && bytes === undefined)
      return { kind: "failed", error: `WhatsApp accepts files of up to ${MAX_FILE_BYTES / 1024 / 1024} MiB here` };
    const quotable = part.replyToId === undefined ? undefined : this.#messages.quotable(part.peer.id, part.replyToId);
    const mapped = mapOutbound(part, { ...(bytes ? { bytes } : {}), ...(quotable ? { quotable } : {}) });
    if (mapped.kind === "refused") return { kind: "failed", error: mapped.error };
    if (mapped.before !== undefined) {
      const first = await this.send({ ...withoutFile(part), nonce: `${part.nonce}t` });
      if (first.kind !== "sent") return first;
    }
    return this.#make(sock, id, mapped);
  }
  async #make(sock: WASocket, id: string, { jid, content, quoted }: Extract<ReturnType<typeof mapOutbound>, { kind: "send" }>) {
    const { message } = await generateWAMessage(jid, content as Parameters<typeof generateWAMessage>[1], {
      logger: silent,
      userJid: sock.user?.id ?? "",
      upload: sock.waUploadToServer,
      messageId: id,
      ...(quoted ? { quoted } : {}),
    });
    if (!message) throw new Error("Baileys returned no message");
    return message;
  }
  /** Resolves when WhatsApp has acknowledged the message, or with an unknown outcome. */
  async #relay(sock: WASocket, jid: string, id: string, message: proto.IMessage, edit: boolean): Promise<SendOutcome> {
    const answered = sock.waitForMessage<{ readonly tag?: string; readonly attrs?: Readonly<Record<string, string>> }>(id, WAIT_FOR_ACK_MS);
    // Handled early: it may reject before it is awaited.
    answered.catch(() => {});
    try {
      await sock.relayMessage(jid, message, { messageId: id, ...(edit ? { additionalAttributes: { edit: "1" } } : {}) });
      const answer = await answered;
      if (!answer) return { kind: "unsure", error: "WhatsApp did not answer" };
      const refusal = answer.tag === "ack" ? answer.attrs?.["error"] : undefined;
      if (refusal !== undefined) return refused(refusal);
      this.#link.active();
      return { kind: "sent", messageId: id };
    } catch (error) {
      this.#link.failed("send", error);
      return { kind: "unsure", error: "the connection to WhatsApp broke during the send" };
    }
  }
}

const withoutFile = ({ file: _, ...part }: OutboundPart): OutboundPart => part;
/** The outcome for a message that WhatsApp refuses. */
function refused(number: string): SendOutcome {
  if (number === "429" || number.startsWith("5")) return { kind: "retry", afterMs: 60_000, error: `WhatsApp asked to wait (${number})` };
  const why =
    number === "463"
      ? "WhatsApp does not let this number start conversations now (463); the other person must write first"
      : `WhatsApp refused the message (${number})`;
  return { kind: "failed", error: why };
}
