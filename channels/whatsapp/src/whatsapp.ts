/**
 * WhatsApp as a platform of the kit: connects the connection's machine, its one socket, the login and the mapping of messages. Queues,
 * retries and order are the kit's. Never logs a text, an id of a person or a key.
 */
import { generateWAMessage, proto, type WASocket } from "@whiskeysockets/baileys";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { ChannelLogin, Peer } from "../../../protocol/gen/types.ts";
import type { InboundFile, OutboundPart, Platform, PlatformHost, SendOutcome } from "../../kit/src/platform.ts";
import { toWhatsApp } from "../../kit/src/marks.ts";
import { AuthStore, clearAuth, pairedAs } from "./auth-store.ts";
import { type Effect, type Event, type State, step } from "./connection.ts";
import { own } from "./content.ts";
import { Groups } from "./groups.ts";
import { parseJid, phoneOf, selfOf } from "./jid.ts";
import { openLink } from "./link.ts";
import { Login } from "./login.ts";
import { mapInbound, type Receipt } from "./map-inbound.ts";
import { mapOutbound, MAX_FILE_BYTES, peerJid } from "./map-outbound.ts";
import { fetchMedia, readReference } from "./media.ts";
import { MessageStore } from "./message-store.ts";
import { Receipts } from "./receipts.ts";
import { messageIdOf } from "./message-id.ts";
import { OfflineGap } from "./offline-gap.ts";
import { isLoopback, pinNoiseRoot } from "./platform/trust.ts";
import { silent } from "./platform/pino.ts";

const WHATSAPP_URL = "wss://web.whatsapp.com/ws/chat";
const WAIT_FOR_CODE_MS = 20_000;
const WAIT_FOR_ACK_MS = 20_000;
const PING_MS = 10_000;
/** A timer may fire slightly early. */
const TIMER_GRACE_MS = 20;
const MAX_CAUGHT_UP_MS = 7 * 86_400_000;
const DAY_MS = 86_400_000;
const STOPPED = "stopped";
const UNENCRYPTED_AT = "unencryptedAt";
const WARN_MS = 7 * DAY_MS;

export interface WhatsAppSettings {
  /** Another server and its root key; used only for a server on this machine (tests). */
  readonly url?: string | undefined;
  readonly noiseRoot?: string | undefined;
  /** Messages in the owner's chat with their own number are answered. */
  readonly selfChat: boolean;
  readonly random: () => number;
}
interface Link {
  readonly sock: WASocket;
  readonly store: AuthStore;
}

export class WhatsApp implements Platform {
  readonly capabilities: Platform["capabilities"] = {
    peerKinds: ["dm", "group"],
    media: true,
    reactions: true,
    typing: true,
    replies: true,
    edits: false,
    buttons: false,
    login: true,
    maxTextChars: 4_000,
  };
  /** Receivers show a message id once while they keep the conversation. */
  readonly recognisesNonceMs = DAY_MS;
  readonly #host: PlatformHost;
  readonly #settings: WhatsAppSettings;
  readonly #url: string;
  readonly #messages: MessageStore;
  readonly #gap: OfflineGap;
  readonly #groups: Groups;
  readonly #receipts: Receipts;
  readonly #login: Login;
  #state: State = { kind: "idle" };
  #link: Link | undefined;
  /** Serialises opening and closing sockets. */
  #tail: Promise<void> = Promise.resolve();
  #lastStanzaAt: number | undefined;
  #lastActivity: number | undefined;
  #roundTripMs: number | undefined;

  constructor(host: PlatformHost, settings: WhatsAppSettings) {
    this.#host = host;
    this.#settings = settings;
    this.#url = settings.url !== undefined && isLoopback(settings.url) ? settings.url : WHATSAPP_URL;
    this.#messages = new MessageStore(host);
    this.#gap = new OfflineGap(host);
    this.#groups = new Groups(host);
    this.#receipts = new Receipts(
      host,
      () => this.isConnected(),
      (keys) => this.#sendReceipt(keys),
    );
    this.#login = new Login((ms, work) => host.after(ms, work));
    // A new instance does not retry what only a person can fix.
    const note = host.kv.get<string>(STOPPED);
    if (note !== undefined) this.#state = { kind: "stopped", note };
  }

  mark(markdown: string): string {
    return toWhatsApp(markdown);
  }

  // ---------------------------------------------------------------- connection

  async ensureConnected(asked = false): Promise<void> {
    this.#messages.takeOverflow();
    const paired = this.#paired() !== undefined;
    this.#dispatch({ type: "wanted", now: this.#host.now(), paired, lastStanzaAt: this.#lastStanzaAt, asked });
    await this.#tail;
    if (this.isConnected()) {
      this.#gap.alive();
      this.#background("ping", () => this.#ping());
      this.#receipts.soon();
    }
  }
  async disconnect(): Promise<void> {
    this.#dispatch({ type: "disconnect" });
    await this.#tail;
  }
  isConnected(): boolean {
    return this.#state.kind === "open" && this.#link !== undefined;
  }
  isAtRest(): boolean {
    return this.#state.kind === "stopped" || (this.#state.kind === "idle" && this.#paired() === undefined);
  }
  status(): ReturnType<Platform["status"]> {
    const me = this.#paired();
    const state = this.#state;
    const phone = phoneOf(parseJid(me?.id));
    const lid = selfOf(me).lid;
    const gap = this.#gap.shown();
    const overflow = this.#messages.overflow();
    const unread = this.#receipts.waiting();
    const note = state.kind === "waiting" || state.kind === "stopped" || state.kind === "idle" ? state.note : undefined;
    const error = note ?? this.#warning();
    return {
      connected: this.isConnected(),
      authenticated: me !== undefined,
      mode: state.kind,
      ...(this.#lastActivity === undefined ? {} : { lastActivity: this.#lastActivity }),
      ...(error === undefined ? {} : { error }),
      ...(this.isConnected() && this.#lastStanzaAt !== undefined ? { silentMs: Math.max(0, this.#host.now() - this.#lastStanzaAt) } : {}),
      ...(this.isConnected() && this.#roundTripMs !== undefined ? { roundTripMs: this.#roundTripMs } : {}),
      ...(gap === undefined ? {} : { gap }),
      extra: {
        ...(phone === undefined ? {} : { phone }),
        ...(lid === undefined ? {} : { lid }),
        ...(me?.name === undefined ? {} : { name: me.name }),
        selfChat: this.#settings.selfChat,
        ignored: this.#host.kv.get("counts") ?? {},
        ...(overflow === 0 ? {} : { waitingForInbox: overflow }),
        ...(unread === 0 ? {} : { receiptsWaiting: unread }),
      },
    };
  }

  #paired(): ReturnType<typeof pairedAs> {
    return pairedAs(this.#host.kv);
  }
  #dispatch(event: Event): void {
    const before = this.#state;
    const { state, effects } = step(before, event);
    this.#state = state;
    for (const effect of effects) this.#run(effect);
    if (state.kind !== before.kind) {
      this.#host.log("connection", { from: before.kind, to: state.kind, ...(event.type === "closed" ? { reason: event.reason } : {}) });
      if (state.kind !== "pairing") this.#login.reset();
      if (state.kind === "stopped") this.#host.kv.put(STOPPED, state.note);
      else if (before.kind === "stopped") this.#host.kv.delete(STOPPED);
      this.#host.changed();
    }
    this.#login.changed();
  }
  #run(effect: Effect): void {
    switch (effect.type) {
      case "OpenSocket":
        this.#next(async () => this.#open());
        return;
      case "CloseSocket":
        this.#next(() => this.#close());
        return;
      case "ClearKeys":
        this.#next(async () => {
          this.#link?.store.end();
          clearAuth(this.#host);
          this.#host.changed();
        });
        return;
      case "WakeAfter":
        this.#host.after(effect.ms + TIMER_GRACE_MS, () => {
          // Skipped when the account was stopped or its platform was replaced meanwhile.
          if (this.#state.kind === "waiting" || this.#state.kind === "pairing") this.#background("connect", () => this.ensureConnected());
        });
        return;
      case "MarkGap":
        this.#gap.mark(effect.why);
        this.#host.log("gap", { why: effect.why });
    }
  }
  #next(work: () => Promise<void>): void {
    this.#tail = this.#tail.then(work).catch((error: unknown) => this.#failed("connection", error));
  }
  #open(): void {
    const { kind } = this.#state;
    if (this.#link || (kind !== "connecting" && kind !== "pairing")) return;
    const store = new AuthStore(this.#host);
    store.saveCreds();
    pinNoiseRoot(this.#url, this.#settings.noiseRoot);
    this.#login.reset();
    this.#roundTripMs = undefined;
    this.#lastStanzaAt = undefined;
    const byPhone = this.#state.kind === "pairing" && this.#state.phone !== undefined;
    const mine = (work: () => void) => (): void => {
      if (this.#link === link) work();
    };
    const sock = openLink(
      { url: this.#url, store, byPhone, groupMetadata: (jid) => this.#groups.metadata(jid) },
      {
        opened: () => mine(() => this.#opened())(),
        closed: (reason) =>
          mine(() => {
            this.#link = undefined;
            this.#dispatch({ type: "closed", now: this.#host.now(), reason, paired: store.paired, random: this.#settings.random() });
          })(),
        code: (qr) => mine(() => this.#show(qr, sock))(),
        frame: () => {
          this.#lastStanzaAt = this.#host.now();
        },
        unencrypted: () => this.#droppedUnencrypted(),
        message: (message, type) => this.#received(message, type === "append", store),
        groupChanged: (id, subject) => this.#groups.changed(id, subject),
        sent: (id) => this.#messages.sentBytes(id),
      },
    );
    const link: Link = { sock, store };
    this.#link = link;
  }
  async #close(): Promise<void> {
    const link = this.#link;
    this.#link = undefined;
    await link?.sock.end(undefined);
  }
  #opened(): void {
    const away = this.#gap.awayMs();
    if (away > MAX_CAUGHT_UP_MS) this.#gap.mark("the account was offline for more than a week");
    this.#gap.alive();
    this.#dispatch({ type: "opened", now: this.#host.now() });
    this.#receipts.soon();
    this.#background("ping", () => this.#ping());
  }
  async #ping(): Promise<void> {
    const link = this.#link;
    if (!link || !this.isConnected()) return;
    const began = this.#host.now();
    const answer = await link.sock.query(
      {
        tag: "iq",
        attrs: { to: "s.whatsapp.net", type: "get", xmlns: "w:p", id: link.sock.generateMessageTag() },
        content: [{ tag: "ping", attrs: {} }],
      },
      PING_MS,
    );
    if (answer && this.#link === link) this.#roundTripMs = this.#host.now() - began;
  }
  #background(what: string, work: () => Promise<unknown>): void {
    work().catch((error: unknown) => this.#failed(what, error));
  }
  #failed(what: string, error: unknown): void {
    // The libraries' errors quote messages and keys, so only their kind is logged.
    this.#host.log(`${what}_failed`, { kind: error instanceof Error ? error.name : typeof error });
  }

  // ---------------------------------------------------------------- login

  async login({ force, phone }: { readonly force: boolean; readonly phone?: string }): Promise<ChannelLogin> {
    const digits = phone?.replace(/[\s()-]/g, "");
    if (digits !== undefined && !/^\+?\d{8,15}$/.test(digits))
      return { state: "failed", message: "This is not a phone number. Write it with its country code, for example +31612345678." };
    // Otherwise the phone's list of linked devices keeps a device whose keys are gone.
    if (force && this.isConnected()) await this.logout();
    this.#dispatch({
      type: "login",
      now: this.#host.now(),
      paired: this.#paired() !== undefined,
      force,
      ...(digits === undefined ? {} : { phone: digits.replace("+", "") }),
    });
    await this.#login.settled(() => this.#state.kind !== "pairing" && this.#state.kind !== "connecting", WAIT_FOR_CODE_MS);
    return this.#login.answer(this.#state);
  }
  #show(qr: string, sock: WASocket): void {
    if (this.#state.kind !== "pairing") return;
    const { phone } = this.#state;
    if (phone === undefined) return this.#login.show({ qr });
    if (!this.#login.mayAskForCode()) return;
    this.#background("pairing_code", async () => {
      const code = await sock.requestPairingCode(phone);
      if (this.#link?.sock === sock && this.#state.kind === "pairing") this.#login.show({ code: `${code.slice(0, 4)}-${code.slice(4)}` });
    });
  }
  async logout(): Promise<void> {
    const link = this.#link;
    if (link && this.isConnected()) {
      // Removes this device from the phone's list; without a connection only the phone can remove it.
      this.#link = undefined;
      await link.sock.logout().catch((error: unknown) => this.#failed("logout", error));
      link.store.end();
    }
    this.#dispatch({ type: "loggedOut" });
    await this.#tail;
    this.#host.transaction(() => {
      for (const part of [this.#messages, this.#groups, this.#gap, this.#receipts]) part.clear();
    });
  }

  // ---------------------------------------------------------------- inbound

  /** Synchronous up to the inbox's row, so that a message and its keys become durable together. */
  #received(message: unknown, backlog: boolean, store: AuthStore): void {
    try {
      const chat = own(own(message, "key"), "remoteJid");
      const mapped = mapInbound(message, {
        self: selfOf(store.creds.me),
        selfChat: this.#settings.selfChat,
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
      this.#lastActivity = this.#host.now();
      this.#messages.take(mapped.item);
    } catch (error) {
      this.#count("failed");
      this.#failed("message", error);
    }
  }
  #droppedUnencrypted(): void {
    this.#count("unencrypted");
    this.#host.kv.put(UNENCRYPTED_AT, this.#host.now());
    this.#host.log("unencrypted_message_dropped");
    this.#host.changed();
  }
  /** For a week after the last one. */
  #warning(): string | undefined {
    const at = this.#host.kv.get<number>(UNENCRYPTED_AT);
    if (at === undefined || this.#host.now() - at > WARN_MS) return undefined;
    const count = this.#host.kv.get<Record<string, number>>("counts")?.["unencrypted"] ?? 1;
    return `${count === 1 ? "A message" : `${count} messages`} came without encryption and ${count === 1 ? "was" : "were"} dropped: such a message can be in any name.`;
  }
  #groupName(chat: unknown): { readonly groupName?: string } {
    const jid = parseJid(chat);
    if (jid?.kind !== "group") return {};
    const fetch = (): void =>
      this.#background("group", async () => {
        const sock = this.#link?.sock;
        if (sock) this.#groups.keep(await sock.groupMetadata(jid.id));
      });
    const groupName = this.#groups.name(jid.id, fetch);
    return groupName === undefined ? {} : { groupName };
  }
  /** Counts ignored messages by cause, for the status. */
  #count(why: string): void {
    const counts = this.#host.kv.get<Record<string, number>>("counts") ?? {};
    this.#host.kv.put("counts", { ...counts, [why]: (counts[why] ?? 0) + 1 });
  }
  async fetchFile(file: InboundFile): Promise<{ readonly body: ReadableStream<Uint8Array>; readonly sizeBytes: number }> {
    const bytes = await fetchMedia(readReference(file.reference), this.#url, LIMITS.mediaBytes);
    return { body: new Blob([bytes]).stream(), sizeBytes: bytes.length };
  }
  settled({ receipt }: { readonly receipt: unknown }): void {
    this.#receipts.add(receipt as Receipt);
  }
  async acknowledged(): Promise<void> {
    this.#receipts.soon();
  }
  /** All keys are of one chat and sender, so that this is one receipt. */
  async #sendReceipt(keys: readonly Receipt[]): Promise<boolean> {
    const link = this.#link;
    const first = keys[0];
    if (!link || !first || !this.isConnected()) return false;
    const answered = link.sock.waitForMessage<unknown>(first.id, WAIT_FOR_ACK_MS).catch(() => undefined);
    await link.sock.readMessages(keys.map((key) => ({ ...key, fromMe: false })));
    // A receipt without an answer has arrived if its connection still holds.
    return (await answered) !== undefined || (this.#link === link && this.isConnected());
  }

  // ---------------------------------------------------------------- outbound

  async send(part: OutboundPart): Promise<SendOutcome> {
    const sock = this.#link?.sock;
    if (!sock || !this.isConnected()) return { kind: "retry", error: "WhatsApp is not connected" };
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
      this.#failed("send_prepare", error);
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
      this.#lastActivity = this.#host.now();
      return { kind: "sent", messageId: id };
    } catch (error) {
      this.#failed("send", error);
      return { kind: "unsure", error: "the connection to WhatsApp broke during the send" };
    }
  }
  /** The number stays offline, so that the phone still rings. */
  async typing(peer: Peer, active: boolean): Promise<void> {
    const jid = peerJid(peer);
    if (jid !== undefined && this.isConnected()) await this.#link?.sock.sendPresenceUpdate(active ? "composing" : "paused", jid);
  }
  async react(peer: Peer, messageId: string, senderId: string | undefined, emoji: string): Promise<void> {
    const jid = peerJid(peer);
    if (jid === undefined || !this.isConnected()) return;
    const participant = peer.kind === "group" && senderId !== undefined ? { participant: senderId } : {};
    await this.#link?.sock.sendMessage(jid, {
      react: { text: emoji, key: { remoteJid: jid, id: messageId, fromMe: false, ...participant } },
    });
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
