/**
 * One connection: Baileys with our settings, its events as plain calls. Decides nothing; the machine in connection.ts does. A message
 * reaches `message` in the same turn in which its keys are written, before Baileys buffers it: a message can be decrypted only once, so
 * both must become durable together.
 */
import { type BinaryNode, Browsers, isJidNewsletter, makeWASocket, proto, type WAMessageKey, type WASocket } from "@whiskeysockets/baileys";
import type { AuthStore } from "./auth-store.ts";
import { own } from "./content.ts";
import { silent } from "./platform/pino.ts";

export interface LinkEvents {
  readonly opened: () => void;
  readonly closed: (reason: number | undefined) => void;
  readonly code: (qr: string) => void;
  readonly frame: () => void;
  /** An unencrypted message was dropped. */
  readonly unencrypted: () => void;
  readonly message: (message: unknown, kind: "append" | "notify") => void;
  readonly groupChanged: (id: string, subject: string | undefined) => void;
  /** The bytes of a sent message, for a receiver who could not decrypt it. */
  readonly sent: (id: string) => Uint8Array | undefined;
}
export interface LinkOptions {
  readonly url: string;
  readonly store: AuthStore;
  /** Login by a pairing code: WhatsApp accepts it only from browsers that it knows. */
  readonly byPhone: boolean;
  readonly groupMetadata: (jid: string) => Awaited<ReturnType<WASocket["groupMetadata"]>> | undefined;
}

export function openLink({ url, store, byPhone, groupMetadata }: LinkOptions, events: LinkEvents): WASocket {
  const sock = makeWASocket({
    auth: { creds: store.creds, keys: store.keys },
    waWebSocketUrl: url,
    logger: silent,
    browser: byPhone ? Browsers.macOS("Chrome") : ["GSV", "Desktop", "1.0.0"],
    markOnlineOnConnect: false,
    syncFullHistory: false,
    emitOwnEvents: false,
    generateHighQualityLinkPreview: false,
    keepAliveIntervalMs: 25_000,
    connectTimeoutMs: 20_000,
    defaultQueryTimeoutMs: 30_000,
    transactionOpts: { maxCommitRetries: 2, delayBetweenTriesMs: 100 },
    shouldIgnoreJid: (jid) => jid.endsWith("@broadcast") || jid.endsWith("@newsletter"),
    shouldSyncHistoryMessage: ({ syncType }) => syncType !== proto.HistorySync.HistorySyncType.FULL,
    cachedGroupMetadata: async (jid) => groupMetadata(jid),
    getMessage: async ({ id }: WAMessageKey) => {
      const bytes = id ? events.sent(id) : undefined;
      return bytes && proto.Message.decode(bytes);
    },
  });
  const emit = sock.ev.emit;
  sock.ev.emit = (event, data) => {
    if (event === "messages.upsert") {
      const messages = own(data, "messages");
      const kind = own(data, "type") === "append" ? "append" : "notify";
      if (Array.isArray(messages)) for (const message of messages) events.message(message, kind);
    }
    return emit(event, data);
  };
  sock.ws.on("frame", (frame: unknown) => {
    events.frame();
    const dropped = takeUnencrypted(frame);
    if (dropped === undefined) return;
    events.unencrypted();
    // Otherwise WhatsApp sends it again at each connection.
    sock.sendMessageAck(dropped).catch(() => {});
  });
  sock.ev.on("creds.update", () => store.saveCreds());
  sock.ev.on("connection.update", ({ connection, lastDisconnect, qr }) => {
    if (qr !== undefined && qr !== "") events.code(qr);
    if (connection === "open") events.opened();
    if (connection === "close") events.closed(reasonOf(lastDisconnect?.error));
  });
  sock.ev.on("groups.update", (groups) => {
    for (const { id, subject } of groups) if (id !== undefined) events.groupChanged(id, subject);
  });
  sock.ev.on("group-participants.update", ({ id }) => events.groupChanged(id, undefined));
  return sock;
}

/**
 * Baileys takes `<plaintext>` from any chat and for any author, but only newsletters have a reason to send it. Runs before Baileys handles
 * the stanza and leaves an empty one; returns what to acknowledge.
 */
export function takeUnencrypted(frame: unknown): BinaryNode | undefined {
  if (!isNode(frame) || frame.tag !== "message" || !Array.isArray(frame.content)) return undefined;
  if (!frame.content.some(({ tag }) => tag === "plaintext") || isJidNewsletter(frame.attrs["from"])) return undefined;
  const stanza: BinaryNode = { tag: frame.tag, attrs: frame.attrs };
  frame.tag = "dropped";
  frame.attrs = {};
  delete frame.content;
  return stanza;
}
const isNode = (frame: unknown): frame is BinaryNode =>
  typeof own(frame, "tag") === "string" && typeof own(frame, "attrs") === "object" && own(frame, "attrs") !== null;

/** WhatsApp's status code for the end; undefined for a network failure, which Baileys reports as 500 like a bad session. */
export function reasonOf(error: unknown): number | undefined {
  if (own(error, "data") instanceof Error) return undefined;
  const reason = own(own(error, "output"), "statusCode");
  return typeof reason === "number" && Number.isInteger(reason) ? reason : undefined;
}
