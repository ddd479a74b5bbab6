/**
 * Channels, as the gateway serves them: takes in what platforms bring, once and for the right conversation, and hands out what
 * sessions answer. Who may talk is decided in `channels/access.ts`; what is durable is in the registries. Keeps nothing in memory
 * that matters: a call that is made again ends in the same answer (promises P2, P3, S6-S8).
 */
import { sentence } from "../../ports/result.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type {
  Attachment,
  ChannelAccount,
  ChannelConfig,
  ChannelInbound,
  ChannelInboundOutcome,
  DeliveryReport,
  OutboundMessage,
  PairRole,
  Unanswered,
} from "../../../../protocol/gen/types.ts";
import { type Access, accessOf, senderIdOf } from "./access.ts";
import { unansweredWhy } from "./attention.ts";
import { cleanName, envelope, hasHead } from "./envelope.ts";
import { gapText, noticeDelivery } from "./undelivered.ts";
import { isOwnKey, keyFor } from "../../storage/media-names.ts";
import type { Logger } from "../../platform/log.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import type { ChannelOrigin } from "../../ports/origin.ts";
import type { ReplyRoute, SessionSend } from "../../ports/session.ts";
import type { Audit } from "../../kernel/audit-store.ts";
import { Deliverer } from "./deliverer.ts";
import { Outgoing } from "./outgoing.ts";
import { type Place, Places } from "./router.ts";
import type { Channels } from "./account-store.ts";
import type { Deliveries } from "./delivery-store.ts";
import type { Config } from "../../kernel/config/store.ts";
import type { Pairings } from "./pairing-store.ts";
import type { Peers } from "./peer-store.ts";
import type { AskSession, SessionDirectory } from "../../ports/sessions.ts";
import { normaliseId } from "../../kernel/routing/session-keys.ts";

export interface HubPorts {
  readonly config: Config;
  readonly sessions: SessionDirectory;
  readonly channels: Channels;
  readonly pairings: Pairings;
  readonly deliveries: Deliveries;
  readonly peers: Peers;
  readonly audit: Audit;
  readonly ask: AskSession;
  readonly now: () => number;
  readonly random: (length: number) => Uint8Array;
  readonly sha256: (text: string) => Promise<string>;
  readonly contextVersion: () => string;
  /** The Worker of a channel; undefined: none is bound. */
  readonly service: (channel: string) => ChannelService | undefined;
  readonly names: () => readonly string[];
  readonly log: Logger;
  /** Something waits for time. */
  readonly arm: () => void;
  readonly background: (what: string, work: Promise<unknown>) => void;
}
/** The channel keeps the message and brings it again. */
const LATER: ChannelInboundOutcome = { outcome: "later" };
type Allowed = Pick<Extract<Access, { kind: "allow" }>, "role" | "speaker">;
const GUEST: Allowed = { role: "guest", speaker: "guest" };
/** Names the second handing over of what was held. */
const LET_IN = "/let-in";
const CHANGED =
  "What you may do here has changed while this message was on its way, and it is not known whether it was taken in before. Send it again if it was not answered.";
const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
const MINUTE_MS = 60_000;
const RELEASE_EVERY_MS = 30_000;
const RELEASE_MAX_MS = 3_600_000;
const FORGET_EVERY_MS = 3_600_000;
const FORGET_AGAIN_MS = 1_000;
/** Longer names of messages are known by their hash. */
const MAX_PLAIN_KEY = 100;

export class ChannelHub {
  readonly #ports: HubPorts;
  readonly #places: Places;
  readonly deliverer: Deliverer;
  /** What the agent sends of itself. */
  readonly outgoing: Outgoing;
  /** Times of a sender's last messages: a brake, not a rule; a new life begins with a full tank. */
  readonly #lately = new Map<string, number[]>();
  #triedAt = 0;
  /** Tries in a row that have left something. */
  #releases = 0;
  #forgotAt = 0;
  #moreToForget = false;
  #armed = false;

  constructor(ports: HubPorts) {
    this.#ports = ports;
    this.#places = new Places(ports);
    this.deliverer = new Deliverer({ ...ports, keepTime: () => this.#keepTime() });
    this.outgoing = new Outgoing({
      ...ports,
      handOver: (ref, message) => this.deliverer.handOver(ref, message),
      roleOf: (ref, inbound) => this.#roleOf(ref, inbound),
      conversationOf: (ref, inbound) => {
        const role = this.#roleOf(ref, inbound);
        const place = role && this.#places.of(ref, inbound, role);
        return place?.ok === true ? place.value.identity : undefined;
      },
      withdraw: (id) => ports.deliveries.arrived(id),
      failed: (what, error) => ports.log.warn("courtesy_failed", { what, error }),
    });
  }

  // ---------------------------------------------------------------- from channels

  async inbound(account: ChannelRef, inbound: ChannelInbound): Promise<ChannelInboundOutcome> {
    const { channels, now } = this.#ports;
    const ref = checkedRef(account);
    const key = await this.#key(ref, inbound);
    const known = channels.taken(key);
    // The same answer again, with its replies: they have names of their own, and are sent once.
    if (known?.outcome) return known.outcome.outcome === "accepted" ? { ...known.outcome, outcome: "duplicate" } : known.outcome;
    const access = this.#access(ref, inbound);
    if (known === undefined && access.kind === "ignore") return { outcome: "ignored" };
    channels.touch(ref.channel, ref.accountId, now());
    this.#keepTime();
    if (known === undefined && access.kind === "pair") return this.#pair(ref, inbound, key);
    return this.#take(ref, inbound, key, access.kind === "allow" ? access : GUEST, known?.sessionKey);
  }

  /** Where a file of a message goes; undefined: nobody wants it. */
  async mediaKey(
    account: ChannelRef,
    inbound: ChannelInbound,
    file: { readonly mimeType: string; readonly index: number },
  ): Promise<string | undefined> {
    const ref = checkedRef(account);
    const access = this.#access(ref, inbound);
    if (access.kind !== "allow") return undefined;
    const place = this.#places.of(ref, inbound, access.role);
    if (!place.ok) return undefined;
    const messageId = await this.#key(ref, inbound);
    const { channels } = this.#ports;
    const isOver = !place.value.isOwner && channels.today(ref.channel, senderIdOf(inbound) ?? "", this.#day()) >= LIMITS.guestPerDay;
    // Files of a message that will be refused are not stored for it.
    if (isOver && channels.taken(messageId) === undefined) return undefined;
    return keyFor(place.value.key, { kind: "message", messageId, index: file.index }, file.mimeType);
  }

  /** A time of which messages may be missing is told to the owner before it is noted: a channel whose report fails reports again. */
  async status(account: ChannelRef, state: ChannelAccount): Promise<void> {
    const { channels, now, config } = this.#ports;
    const { channel, accountId } = checkedRef(account);
    const { gap } = state;
    const before = channels.accounts().find((known) => known.channel === channel && known.accountId === accountId)?.state?.gap;
    if (gap !== undefined && gap.until !== before?.until)
      await this.deliverer.tellOwner(config.defaultAgentId(), `gap:${channel}/${accountId}/${gap.until}`, gapText({ channel, gap }));
    channels.setState(channel, { ...state, accountId }, now());
  }
  /** How a delivery ended. */
  delivered(account: ChannelRef, report: DeliveryReport): void {
    this.deliverer.delivered(checkedRef(account), report);
  }

  // ---------------------------------------------------------------- deciding

  #configOf(channel: string): ChannelConfig {
    return this.#ports.config.effective().channels?.[channel] ?? {};
  }
  #access({ channel }: ChannelRef, inbound: ChannelInbound): Access {
    const sender = senderIdOf(inbound);
    const known = sender === undefined ? undefined : this.#ports.pairings.known(channel, sender);
    return accessOf({ channel, inbound, config: this.#configOf(channel), known });
  }
  #roleOf(ref: ChannelRef, inbound: ChannelInbound): PairRole | undefined {
    const access = this.#access(ref, inbound);
    return access.kind === "allow" ? access.role : undefined;
  }
  #pair(ref: ChannelRef, inbound: ChannelInbound, key: string): ChannelInboundOutcome {
    const { pairings, channels, now, random, log } = this.#ports;
    const sender = senderIdOf(inbound) ?? inbound.peer.id;
    const name = cleanName(inbound.sender?.name ?? inbound.peer.name);
    const asked = pairings.request(
      { channel: ref.channel, accountId: ref.accountId, inbound },
      { sender, ...(name === undefined ? {} : { name }) },
      now(),
      random,
    );
    if (!asked) {
      log.warn("too_many_strangers", { channel: ref.channel });
      return { outcome: "ignored" };
    }
    const outcome: ChannelInboundOutcome = {
      outcome: "held",
      ...(asked.notice
        ? {
            replies: [
              notice(
                key,
                inbound,
                `This is somebody's personal assistant, and it does not know you yet. Ask its owner to let you in with the code ${asked.code}.`,
              ),
            ],
          }
        : {}),
    };
    // Of what did nothing nothing is kept: else whoever writes without end would fill the tables without having been let in.
    if (asked.kept || asked.notice) {
      channels.claim(key, "", now());
      channels.settle(key, outcome);
    }
    return outcome;
  }

  /** Names a message for ever, and is its idempotency key in the session. */
  async #key({ channel, accountId }: ChannelRef, { peer, message }: ChannelInbound): Promise<string> {
    const key = JSON.stringify([peer.kind, peer.id.toWellFormed(), message.id.toWellFormed()]);
    const plain = key.length <= MAX_PLAIN_KEY && /^[\x20-\x7e]*$/.test(key);
    return `${channel}/${accountId}/${plain ? key : await this.#ports.sha256(key)}`;
  }

  async #take(
    ref: ChannelRef,
    inbound: ChannelInbound,
    key: string,
    { role, speaker }: Allowed,
    claimed: string | undefined,
  ): Promise<ChannelInboundOutcome> {
    const { channels, ask, now, contextVersion } = this.#ports;
    const refused = (text: string): ChannelInboundOutcome => ({ outcome: "refused", replies: [notice(key, inbound, text)] });
    const settle = (outcome: ChannelInboundOutcome): ChannelInboundOutcome => {
      channels.settle(key, outcome);
      return outcome;
    };
    const place = this.#places.of(ref, inbound, role);
    if (!place.ok) {
      channels.claim(key, "", now());
      return settle(refused(sentence(place.error)));
    }
    // A message that was on its way before goes where it went, unless that is no longer for whoever wrote it.
    const target = claimed === undefined || claimed === "" ? place.value : this.#places.claimed(claimed, place.value);
    if (target === undefined) return settle(refused(CHANGED));
    if (claimed === undefined) {
      if (!this.#brake(ref, inbound)) return LATER;
      channels.claim(key, target.key, now());
      if (this.#ports.peers.wrote(ref.channel, ref.accountId, inbound, now()) > LIMITS.botMessagesInRow) {
        this.#ports.log.warn("programs_in_a_row", { channel: ref.channel });
        return settle({ outcome: "ignored" });
      }
      if (!target.isOwner && this.#overDay(ref, inbound))
        return settle(refused("You have sent as many messages as this assistant takes in a day. It goes on tomorrow."));
    }
    const unanswered = await this.#unanswered(ref, inbound, key);
    const result = await ask(target.key, (session) =>
      session.send({
        identity: target.identity,
        messageId: key,
        runId: `run-${runIdOf(key)}`,
        ...this.#textOf(ref, inbound, target, speaker),
        ...attachmentsOf(inbound, target.key),
        badFilesAsNotes: true,
        origin: originOf(ref, inbound, speaker),
        ...(unanswered === undefined ? { reply: routeOf(ref, inbound) } : { quiet: true }),
        contextVersion: contextVersion(),
      }),
    );
    if (!result.ok) {
      const { error } = result;
      if (error.reason === "storage.failed" || error.reason === "internal") return LATER;
      // Nobody waits for an answer to it, so it can wait itself.
      if (unanswered !== undefined && error.reason === "session.queue_full") return LATER;
      return settle(refused(sentence(error)));
    }
    const { value } = result;
    const reaction = this.#configOf(ref.channel).reaction ?? (inbound.peer.kind === "dm" ? "" : "👀");
    switch (value.status) {
      case "started":
      case "paused":
        if (unanswered !== undefined) return settle({ outcome: "accepted", sessionKey: target.key, unanswered });
        return settle({ outcome: "accepted", sessionKey: target.key, runId: value.runId, ...(reaction === "" ? {} : { reaction }) });
      case "command":
      case "directive-only": {
        const text = (value.status === "command" ? (value.error ?? value.response) : value.response) ?? "Done.";
        return settle({ outcome: "answered", sessionKey: target.key, replies: [notice(key, inbound, text)] });
      }
    }
  }
  /** Undefined: it is answered. What was held with a stranger is answered whenever they are let in. */
  async #unanswered(ref: ChannelRef, inbound: ChannelInbound, key: string): Promise<Unanswered | undefined> {
    const { channels, now } = this.#ports;
    if (key.endsWith(LET_IN)) return undefined;
    const original = inbound.message.editOf;
    const knowsOriginal =
      original !== undefined &&
      channels.taken(await this.#key(ref, { ...inbound, message: { ...inbound.message, id: original } }))?.outcome?.outcome === "accepted";
    return unansweredWhy({ inbound, now: now(), knowsOriginal });
  }
  /** Commands are the owner's, in a group too (a stop that only works elsewhere is none); whatever others write is only words. */
  #textOf(
    { channel }: ChannelRef,
    inbound: ChannelInbound,
    { isOwner }: Place,
    speaker: PairRole,
  ): Pick<SessionSend, "text" | "verbatim" | "command"> {
    const text = envelope({ channel, inbound, isOwner, now: this.#ports.now() });
    const { message } = inbound;
    if (isOwner && !hasHead(text)) return { text };
    // What is said about a message (a quote) is nobody's command, and what was forwarded are not the owner's words.
    const commands = speaker === "owner" && message.forwarded !== true;
    return { text, verbatim: true, ...(commands ? { command: withoutMention(inbound) } : {}) };
  }

  /** Twenty a minute; the rest waits in the channel, in order. */
  #brake({ channel, accountId }: ChannelRef, inbound: ChannelInbound): boolean {
    const now = this.#ports.now();
    const who = `${channel}/${accountId}/${senderIdOf(inbound) ?? ""}`;
    const recent = (this.#lately.get(who) ?? []).filter((at) => now - at < MINUTE_MS && at <= now);
    if (recent.length >= LIMITS.senderPerMinute) return false;
    if (this.#lately.size > 1000) this.#lately.clear();
    this.#lately.set(who, [...recent, now]);
    return true;
  }
  #overDay({ channel }: ChannelRef, inbound: ChannelInbound): boolean {
    return this.#ports.channels.countToday(channel, senderIdOf(inbound) ?? "", this.#day()) > LIMITS.guestPerDay;
  }
  #day(): string {
    return new Date(this.#ports.now()).toISOString().slice(0, 10);
  }

  // ---------------------------------------------------------------- pairing

  /** Lets somebody in; what they had written is answered now. */
  async approve(channel: string, senderOrCode: string, role: PairRole, actor: string) {
    const { pairings, audit, now, background } = this.#ports;
    const done = pairings.approve(channel, senderOrCode, role, now());
    if (!done) return undefined;
    await audit.append({ actor, action: "pair.approve", target: `${channel}:${done.senderId}`, decision: "allowed", detail: role });
    this.#triedAt = now();
    this.#releases = 0;
    this.#ports.arm();
    background("release", this.release(channel, done.senderId));
    return done;
  }
  async reject(channel: string, senderOrCode: string, actor: string) {
    const { pairings, audit, now } = this.#ports;
    const done = pairings.reject(channel, senderOrCode, now());
    if (done) await audit.append({ actor, action: "pair.reject", target: `${channel}:${done.senderId}`, decision: "denied" });
    return done;
  }
  /** Messages that waited with a stranger go their way. Safe to repeat. */
  async release(channel: string, sender: string): Promise<void> {
    const { pairings, channels, now } = this.#ports;
    for (const { id, accountId, inbound } of pairings.held(channel, sender)) {
      const ref = { channel, accountId };
      const access = this.#access(ref, inbound);
      if (access.kind === "allow") {
        const key = `${await this.#key(ref, inbound)}${LET_IN}`;
        const known = channels.taken(key);
        const outcome = known?.outcome ?? (await this.#take(ref, { ...inbound, backlog: true }, key, access, known?.sessionKey));
        if (outcome.outcome === "later") return;
        for (const reply of outcome.replies ?? []) {
          const sent = await this.deliverer.send({ channel, accountId, peer: reply.peer }, reply);
          // The channel has no room: the message stays, and its answer is known already when it is tried again.
          if (!sent.ok && sent.error.reason !== "channel.unknown") return;
        }
        this.#ports.log.info("released", { channel, waitedMs: now() - inbound.receivedAt });
      }
      pairings.released(id);
    }
  }
  /** What a life that ended in between has left. */
  async releaseAll(): Promise<void> {
    const { pairings, now, log } = this.#ports;
    this.#triedAt = now();
    this.#releases++;
    for (const { channel, sender } of pairings.unreleased()) {
      try {
        await this.release(channel, sender);
      } catch (error) {
        // One that can't be handed on keeps no other back.
        log.warn("not_released", { channel, error });
      }
    }
    if (pairings.unreleased().length === 0) this.#releases = 0;
  }
  /** When there is something to release, for the alarm: later and later while it does not get less. */
  nextRelease(): number | undefined {
    if (this.#ports.pairings.unreleased().length === 0) return undefined;
    return this.#triedAt + Math.min(RELEASE_MAX_MS, RELEASE_EVERY_MS * 2 ** Math.min(this.#releases, 10));
  }

  // ---------------------------------------------------------------- forgetting

  /** Once in a life, behind the first row that is written: from then on the alarm sees to it that it is forgotten some time. */
  #keepTime(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#ports.background("arm", Promise.resolve().then(this.#ports.arm));
  }

  /** A bounded step; the alarm comes again at once while there is more. */
  forget(now: number): void {
    const { channels, pairings, deliveries } = this.#ports;
    this.#forgotAt = now;
    this.#moreToForget = [channels.forget(now), pairings.forget(now), deliveries.forget(now)].some(Boolean);
  }
  /** What is over its time goes in batches, so that a busy day costs few alarms. */
  nextForget(): number | undefined {
    const { channels, pairings, deliveries } = this.#ports;
    const due = [channels.nextForget(), pairings.nextForget(), deliveries.nextForget()].filter((at) => at !== undefined);
    if (due.length === 0) return undefined;
    return Math.max(Math.min(...due), this.#forgotAt + (this.#moreToForget ? FORGET_AGAIN_MS : FORGET_EVERY_MS));
  }

  // ---------------------------------------------------------------- for the owner

  service(channel: string): ChannelService | undefined {
    return this.#ports.service(channel);
  }
  names(): readonly string[] {
    return this.#ports.names();
  }
  accounts(): ReturnType<Channels["accounts"]> {
    return this.#ports.channels.accounts();
  }
  waiting(): ReturnType<Pairings["pending"]> {
    return this.#ports.pairings.pending();
  }
}

function checkedRef({ channel, accountId }: ChannelRef): ChannelRef {
  const name = channel.toLowerCase();
  // `cli` is the owner's own terminal: no channel may speak for it.
  if (!NAME.test(name) || name === "cli") throw new TypeError("there can be no such channel");
  return { channel: name, accountId: normaliseId(accountId, "default") };
}
/** "@Ada /stop" asks Ada to stop. */
const withoutMention = ({ wasMentioned, message: { text } }: ChannelInbound): string =>
  wasMentioned === true ? text.replace(/^\s*@\S{1,128}\s+(?=\/)/, "") : text;
const runIdOf = (key: string): string => {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  for (let at = 0; at < key.length; at++) {
    a = Math.imul(a ^ key.charCodeAt(at), 0x01000193) >>> 0;
    b = (Math.imul(b ^ key.charCodeAt(at), 0x85ebca6b) ^ (b >>> 13)) >>> 0;
  }
  return `${a.toString(36)}${b.toString(36)}`;
};
const notice = (key: string, { peer, message }: ChannelInbound, text: string): OutboundMessage => ({
  deliveryId: noticeDelivery(key),
  kind: "notice",
  peer,
  text,
  replyToId: message.id,
});
function routeOf({ channel, accountId }: ChannelRef, { peer, message }: ChannelInbound): ReplyRoute {
  return { channel, accountId, peer, ...(peer.kind === "dm" ? {} : { replyToId: message.id }) };
}
function originOf({ channel, accountId }: ChannelRef, inbound: ChannelInbound, role: PairRole): ChannelOrigin {
  const senderId = senderIdOf(inbound);
  return { kind: "channel", channel, accountId, peer: inbound.peer, ...(senderId === undefined ? {} : { senderId }), role };
}
/** Files that lie where this conversation's files lie; what was not stored is told in words. */
function attachmentsOf({ message }: ChannelInbound, sessionKey: string): { attachments?: Attachment[] } {
  const attachments = (message.media ?? [])
    .map(
      ({ mimeType, filename, r2Key }): Attachment => ({
        mimeType,
        ...(filename === undefined ? {} : { filename }),
        ...(r2Key !== undefined && isOwnKey(sessionKey, r2Key) ? { r2Key } : {}),
      }),
    )
    .slice(0, LIMITS.attachments);
  return attachments.length === 0 ? {} : { attachments };
}
