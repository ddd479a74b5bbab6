/**
 * WhatsApp as a platform of the kit: connects the connection's machine, its one socket, the login, and the messages that arrive
 * (`inbound`) and leave (`outbound`). Queues, retries and order are the kit's. Never logs a text, an id of a person or a key.
 */
import type { WASocket } from "@whiskeysockets/baileys";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { ChannelLogin, Peer } from "../../../protocol/gen/types.ts";
import { DAY_MS } from "../../../protocol/runtime/day.ts";
import { within } from "../../../protocol/runtime/within.ts";
import { KIT } from "../../kit/src/limits.ts";
import type { InboundFile, LogoutOutcome, OutboundPart, Platform, PlatformHost, SendOutcome } from "../../kit/src/platform.ts";
import { toWhatsApp } from "../../kit/src/marks.ts";
import { AuthStore, clearAuth, pairedAs } from "./auth-store.ts";
import { type Effect, type Event, type State, step } from "./connection.ts";
import { Groups } from "./groups.ts";
import { parseJid, phoneOf, selfOf } from "./jid.ts";
import { Inbound } from "./inbound.ts";
import { openLink } from "./link.ts";
import { Login } from "./login.ts";
import type { Receipt } from "./map-inbound.ts";
import { peerJid } from "./map-outbound.ts";
import { fetchMedia, readReference } from "./media.ts";
import { MessageStore } from "./message-store.ts";
import { Receipts } from "./receipts.ts";
import { OfflineGap } from "./offline-gap.ts";
import { Outbound, WAIT_FOR_ACK_MS } from "./outbound.ts";
import { isLoopback, pinNoiseRoot } from "./platform/trust.ts";

const WHATSAPP_URL = "wss://web.whatsapp.com/ws/chat";
const WAIT_FOR_CODE_MS = 20_000;
/** The kit gives a logout up after its own limit; the keys are deleted before that. */
const WAIT_FOR_LOGOUT_MS = KIT.logoutMs - 2_000;
const PING_MS = 10_000;
/** A timer may fire slightly early. */
const TIMER_GRACE_MS = 20;
const MAX_CAUGHT_UP_MS = 7 * DAY_MS;
const STOPPED = "stopped";

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
  readonly #inbound: Inbound;
  readonly #outbound: Outbound;
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
    const active = (): void => {
      this.#lastActivity = host.now();
    };
    const failed = (what: string, error: unknown): void => this.#failed(what, error);
    const parts = { messages: this.#messages, groups: this.#groups, selfChat: settings.selfChat };
    this.#inbound = new Inbound(host, parts, { active, failed, fetchGroup: (jid) => this.#fetchGroup(jid) });
    const open = (): WASocket | undefined => (this.isConnected() ? this.#link?.sock : undefined);
    this.#outbound = new Outbound(host, this.#messages, { active, failed, open });
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
    const error = note ?? this.#inbound.warning();
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
        ignored: this.#inbound.ignored(),
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
        unencrypted: () => this.#inbound.droppedUnencrypted(),
        message: (message, type) => this.#inbound.received(message, type === "append", store.creds.me),
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
  #fetchGroup(jid: string): void {
    this.#background("group", async () => {
      const sock = this.#link?.sock;
      if (sock) this.#groups.keep(await sock.groupMetadata(jid));
    });
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
  async logout(): Promise<LogoutOutcome> {
    const outcome = this.#paired() === undefined ? "confirmed" : await this.#unlink();
    this.#dispatch({ type: "loggedOut" });
    await this.#tail;
    this.#host.transaction(() => {
      for (const part of [this.#messages, this.#groups, this.#gap, this.#receipts]) part.clear();
    });
    return outcome;
  }
  /** Removes this device from the phone's list; without a connection only the phone can remove it. */
  async #unlink(): Promise<LogoutOutcome> {
    const link = this.#link;
    if (!link || !this.isConnected()) return "unconfirmed";
    this.#link = undefined;
    try {
      // Bounded, so that the keys are deleted also when WhatsApp does not answer.
      return await within<LogoutOutcome>(
        this.#host.after,
        WAIT_FOR_LOGOUT_MS,
        link.sock.logout().then(() => "confirmed"),
        () => "unconfirmed",
      );
    } catch (error) {
      this.#failed("logout", error);
      return "unconfirmed";
    } finally {
      link.store.end();
    }
  }

  // ---------------------------------------------------------------- messages

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
  async send(part: OutboundPart): Promise<SendOutcome> {
    return this.#outbound.send(part);
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
