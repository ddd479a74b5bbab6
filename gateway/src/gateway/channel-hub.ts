/**
 * Channels, as the gateway serves them: takes in what platforms bring, once and for the right conversation, and hands out what
 * sessions answer. Who may talk is decided in `channels/access.ts`; what is durable is in the registries. Keeps nothing in memory
 * that matters: a call that is made again ends in the same answer (promises P2, P3, S6-S8).
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { ChannelService } from "../../../protocol/gen/services.ts";
import type {
  Attachment,
  ChannelAccount,
  ChannelConfig,
  ChannelInbound,
  ChannelInboundOutcome,
  DeliveryReport,
  DmScope,
  OutboundMessage,
  PairRole,
  Unanswered,
} from "../../../protocol/gen/types.ts";
import { type Access, accessOf, senderIdOf } from "../channels/access.ts";
import { unansweredWhy } from "../channels/attention.ts";
import { cleanName, envelope, hasHead } from "../channels/envelope.ts";
import { gapText, noticeDelivery, peerOfNotice, refOfDelivery, undeliveredText } from "../channels/undelivered.ts";
import { isOwnKey, keyFor } from "../media/names.ts";
import type { Logger } from "../platform/log.ts";
import type { ReplyRoute, Result, SessionIdentity, SessionSend } from "../ports.ts";
import type { Audit } from "./audit.ts";
import { fail, succeed } from "./outcome.ts";
import { Outgoing } from "./outgoing.ts";
import type { Channels } from "./registry/channels.ts";
import type { Deliveries, Delivery } from "./registry/deliveries.ts";
import type { Config } from "./registry/config.ts";
import type { Pairings } from "./registry/pairings.ts";
import type { Peers } from "./registry/peers.ts";
import type { Sessions } from "./registry/sessions.ts";
import { routeInbound } from "./routing/bindings.ts";
import { compileLinks } from "./routing/identity-links.ts";
import { canonicalKey, normaliseId } from "./routing/session-keys.ts";
import type { AskSession } from "./session-ports.ts";
import { isOwners, lookUp, type Named, takeUp } from "./whose.ts";

export interface ChannelRef {
  readonly channel: string;
  readonly accountId: string;
}
export interface HubPorts {
  readonly config: Config;
  readonly sessions: Sessions;
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
interface Place {
  readonly identity: SessionIdentity;
  readonly key: string;
  readonly isOwner: boolean;
}
type Allowed = Pick<Extract<Access, { kind: "allow" }>, "role" | "speaker">;
const GUEST: Allowed = { role: "guest", speaker: "guest" };
/** Names the second handing over of what was held. */
const LET_IN = "/let-in";
const NOT_YOURS =
  "The conversation that this would go to is somebody else's. Ask the owner of this assistant: they can give you another one by changing `session.dmScope` or `session.identityLinks`.";
const CHANGED =
  "What you may do here has changed while this message was on its way, and it is not known whether it was taken in before. Send it again if it was not answered.";
const NAME = /^[a-z][a-z0-9_-]{0,63}$/;
const MINUTE_MS = 60_000;
const RELEASE_EVERY_MS = 30_000;
const FORGET_EVERY_MS = 3_600_000;
const FORGET_AGAIN_MS = 1_000;
const TELL_EVERY_MS = 30_000;
const TOLD_AT_ONCE = 50;
const MAX_ERROR_CHARS = 1_000;
const MAX_SHOWN_PROBLEMS = 200;
/** Longer names of messages are known by their hash. */
const MAX_PLAIN_KEY = 100;

export class ChannelHub {
  readonly #ports: HubPorts;
  /** What the agent sends of itself. */
  readonly outgoing: Outgoing;
  /** Times of a sender's last messages: a brake, not a rule; a new life begins with a full tank. */
  readonly #lately = new Map<string, number[]>();
  #triedAt = 0;
  #toldAt = 0;
  #forgotAt = 0;
  #moreToForget = false;
  #armed = false;

  constructor(ports: HubPorts) {
    this.#ports = ports;
    this.outgoing = new Outgoing({
      ...ports,
      handOver: (ref, message) => this.#handOver(ref, message),
      roleOf: (ref, inbound) => this.#roleOf(ref, inbound),
      conversationOf: (ref, inbound) => {
        const role = this.#roleOf(ref, inbound);
        const place = role && this.#place(ref, inbound, role);
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
    const place = this.#place(ref, inbound, access.role);
    if (!place.ok) return undefined;
    return keyFor(place.value.key, { kind: "message", messageId: await this.#key(ref, inbound), index: file.index }, file.mimeType);
  }

  /** A time of which messages may be missing is told to the owner before it is noted: a channel whose report fails reports again. */
  async status(account: ChannelRef, state: ChannelAccount): Promise<void> {
    const { channels, now, config } = this.#ports;
    const { channel, accountId } = checkedRef(account);
    const { gap } = state;
    const before = channels.accounts().find((known) => known.channel === channel && known.accountId === accountId)?.state?.gap;
    if (gap !== undefined && gap.until !== before?.until)
      await this.#tellOwner(config.defaultAgentId(), `gap:${channel}/${accountId}/${gap.until}`, gapText({ channel, gap }));
    channels.setState(channel, { ...state, accountId }, now());
  }
  /** Durable when it returns; people are told right after, or when the alarm tries again. */
  delivered(account: ChannelRef, { state, deliveryId, error }: DeliveryReport): void {
    const { deliveries } = this.#ports;
    const { channel, accountId } = checkedRef(account);
    if (state === "sent") deliveries.arrived(deliveryId);
    else this.#undelivered({ id: deliveryId, channel, accountId, state, ...(error === undefined ? {} : { error }) });
  }
  #undelivered(
    problem: Pick<Delivery, "id" | "channel" | "accountId" | "peer" | "error"> & { readonly state: "failed" | "unknown" },
    noted = false,
  ): void {
    const { deliveries, log, now, arm, background } = this.#ports;
    const { id, channel, accountId, state } = problem;
    const peer = problem.peer ?? peerOfNotice(id);
    const error = cleanName(problem.error, MAX_ERROR_CHARS);
    const known = { id, channel, accountId, state, at: now(), ...(peer ? { peer } : {}), ...(error === undefined ? {} : { error }) };
    if (!deliveries.failed(known, noted)) return;
    log.warn("delivery_not_made", { channel, account: accountId, delivery: id, state });
    this.#toldAt = now();
    arm();
    background("tell_undelivered", this.tellUndelivered());
  }
  /**
   * The conversation that a message came from has it in its log, and its model learns of it with the next message; the owner's main
   * conversation has it too. No model is called. Once for each message and state, however often this runs.
   */
  async tellUndelivered(): Promise<void> {
    const { deliveries, now } = this.#ports;
    this.#toldAt = now();
    for (const delivery of deliveries.untold(TOLD_AT_ONCE)) {
      const { id, state, noted } = delivery;
      if (state === "failed" || state === "unknown")
        await this.#tell(`${id}:${state}`, refOfDelivery(id), noted, undeliveredText({ ...delivery, state }));
      deliveries.told(delivery);
    }
  }
  async #tell(key: string, ref: string | undefined, noted: boolean, text: string): Promise<void> {
    const { config, sessions, ask } = this.#ports;
    const from = ref === undefined ? undefined : sessions.keyOf(ref);
    const named = from === undefined ? undefined : canonicalKey(from, config.mainKey());
    if (named?.ok === true && !noted) {
      const identity = lookUp(sessions, named, ref ?? "");
      await ask(named.key, (session) => session.note({ identity, key, text, forModel: true }));
    }
    const agentId = named?.ok === true ? named.address.agentId : config.defaultAgentId();
    await this.#tellOwner(agentId, key, text, named?.ok === true ? named.key : undefined);
  }
  /** In the main conversation, unless that is the one that knows. Once for a key. */
  async #tellOwner(agentId: string, key: string, text: string, knows?: string): Promise<void> {
    const { config, sessions, ask, now } = this.#ports;
    const main = canonicalKey(`agent:${agentId}:main`, config.mainKey());
    if (!main.ok || main.key === knows) return;
    const identity = takeUp(sessions, main, now());
    await ask(main.key, (session) => session.note({ identity, key, text }));
  }
  /** When people are told of what they have not been told of, for the alarm. */
  nextTelling(): number | undefined {
    return this.#ports.deliveries.untold(1).length === 0 ? undefined : this.#toldAt + TELL_EVERY_MS;
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
    channels.claim(key, "", now());
    channels.settle(key, outcome);
    return outcome;
  }

  /** Names a message for ever, and is its idempotency key in the session. */
  async #key({ channel, accountId }: ChannelRef, { peer, message }: ChannelInbound): Promise<string> {
    const key = JSON.stringify([peer.kind, peer.id.toWellFormed(), message.id.toWellFormed()]);
    const plain = key.length <= MAX_PLAIN_KEY && /^[\x20-\x7e]*$/.test(key);
    return `${channel}/${accountId}/${plain ? key : await this.#ports.sha256(key)}`;
  }

  /**
   * The conversation of a message (gateway rules CH9-CH11). The owner and others never share one, whatever is configured or was: where
   * the one that `session.dmScope` names is somebody else's already, the owner talks on in the main one, others in one by account and their own id.
   */
  #place(ref: ChannelRef, inbound: ChannelInbound, role: PairRole): Result<Place> {
    const { config, sessions, now } = this.#ports;
    const isOwner = role === "owner" && inbound.peer.kind === "dm";
    const scope = config.effective().session.dmScope ?? "main";
    const apart: DmScope = "per-account-channel-peer";
    const tries: readonly (readonly [DmScope, linked: boolean])[] = [
      [scope === "main" && !isOwner ? apart : scope, true],
      isOwner ? ["main", true] : [apart, false],
    ];
    for (const [dmScope, linked] of tries) {
      const route = this.#route(ref, inbound, dmScope, linked);
      if (!route.ok) return route;
      const record = sessions.find(route.value.key);
      // What nobody has used belongs to whoever comes first, but for the owner's own by name.
      const whose = isOwners(route.value.address, record);
      if (record === undefined ? isOwner || !whose : whose === isOwner) {
        const identity = takeUp(sessions, route.value, now(), isOwner);
        return succeed({ key: identity.key, isOwner, identity });
      }
    }
    return fail("session.bad_key", NOT_YOURS);
  }
  #route(ref: ChannelRef, inbound: ChannelInbound, dmScope: DmScope, linked: boolean): Result<Named> {
    const { config } = this.#ports;
    const { session, agents } = config.effective();
    const route = routeInbound(
      {
        channel: ref.channel,
        accountId: ref.accountId,
        peer: {
          kind: inbound.peer.kind,
          id: inbound.peer.id,
          ...(inbound.senderIds?.phone === undefined || inbound.peer.kind !== "dm" ? {} : { phone: inbound.senderIds.phone }),
        },
      },
      {
        bindings: agents?.bindings ?? [],
        agents: new Set(config.agents().map(({ id }) => id)),
        defaultAgent: config.defaultAgentId(),
        dmScope,
        mainKey: config.mainKey(),
        links: compileLinks(linked ? session.identityLinks : undefined),
      },
    );
    if (!route.ok) {
      return fail(
        "session.bad_key",
        route.problem === "unknown-agent"
          ? `A binding names the agent ${route.agentId}, which does not exist. Mend \`agents.bindings\`.`
          : `There can be no conversation with this name: ${route.why}.`,
      );
    }
    return succeed({ key: route.key, address: route.address });
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
    const place = this.#place(ref, inbound, role);
    if (!place.ok) {
      channels.claim(key, "", now());
      return settle(refused(place.error.message));
    }
    // A message that was on its way before goes where it went, unless that is no longer for whoever wrote it.
    const target = claimed === undefined || claimed === "" ? place.value : this.#claimed(claimed, place.value);
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
        origin: `channel:${ref.channel}:${ref.accountId}:${senderIdOf(inbound) ?? ""}`.slice(0, 256),
        ...(unanswered === undefined ? { reply: routeOf(ref, inbound) } : { quiet: true }),
        contextVersion: contextVersion(),
      }),
    );
    if (!result.ok) {
      const { error } = result;
      if (error.reason === "storage.failed" || error.reason === "internal") return LATER;
      // Nobody waits for an answer to it, so it can wait itself.
      if (unanswered !== undefined && error.reason === "session.queue_full") return LATER;
      return settle(refused(error.message));
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
  #claimed(claimed: string, place: Place): Place | undefined {
    if (claimed === place.key) return place;
    const { config, sessions, now } = this.#ports;
    const named = canonicalKey(claimed, config.mainKey());
    if (!named.ok) return undefined;
    const identity = takeUp(sessions, named, now());
    return identity.isMain === place.isOwner ? { key: claimed, isOwner: place.isOwner, identity } : undefined;
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
    const day = new Date(this.#ports.now()).toISOString().slice(0, 10);
    return this.#ports.channels.countToday(channel, senderIdOf(inbound) ?? "", day) > LIMITS.guestPerDay;
  }

  // ---------------------------------------------------------------- pairing

  /** Lets somebody in; what they had written is answered now. */
  async approve(channel: string, senderOrCode: string, role: PairRole, actor: string) {
    const { pairings, audit, now, background } = this.#ports;
    const done = pairings.approve(channel, senderOrCode, role, now());
    if (!done) return undefined;
    await audit.append({ actor, action: "pair.approve", target: `${channel}:${done.senderId}`, decision: "allowed", detail: role });
    this.#triedAt = now();
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
        const outcome = await this.#take(ref, { ...inbound, backlog: true }, key, access, channels.taken(key)?.sessionKey);
        if (outcome.outcome === "later") return;
        for (const reply of outcome.replies ?? []) await this.send({ channel, accountId, peer: reply.peer }, reply);
        this.#ports.log.info("released", { channel, waitedMs: now() - inbound.receivedAt });
      }
      pairings.released(id);
    }
  }
  /** What a life that ended in between has left. */
  async releaseAll(): Promise<void> {
    this.#triedAt = this.#ports.now();
    for (const { channel, sender } of this.#ports.pairings.unreleased()) await this.release(channel, sender);
  }
  /** When there is something to release, for the alarm. */
  nextRelease(): number | undefined {
    return this.#ports.pairings.unreleased().length === 0 ? undefined : this.#triedAt + RELEASE_EVERY_MS;
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
  problems(channel: string, accountId: string | undefined): ReturnType<Deliveries["problems"]> {
    return this.#ports.deliveries.problems(channel, accountId, MAX_SHOWN_PROBLEMS);
  }
  undelivered(): ReturnType<Deliveries["counts"]> {
    return this.#ports.deliveries.counts();
  }
  waiting(): ReturnType<Pairings["pending"]> {
    return this.#ports.pairings.pending();
  }

  // ---------------------------------------------------------------- to channels

  /** Durable in the channel when it says ok. What is refused for good is told to the owner; whoever asked knows by the answer. */
  async send({ channel, accountId }: ReplyRoute, message: OutboundMessage): Promise<Result<{ readonly duplicate: boolean }>> {
    const sent = await this.#handOver({ channel, accountId }, message);
    if (!sent.ok && sent.error.reason === "channel.unknown") {
      const { deliveryId: id, peer } = message;
      this.#undelivered({ id, channel, accountId, peer, state: "failed", error: sent.error.message }, true);
    }
    return sent;
  }
  async #handOver({ channel, accountId }: ChannelRef, message: OutboundMessage): Promise<Result<{ readonly duplicate: boolean }>> {
    const { deliveries, now } = this.#ports;
    const service = this.#ports.service(channel);
    if (!service) return fail("channel.unknown", `There is no channel ${channel} here any more.`);
    this.#keepTime();
    const isNew = deliveries.begin(message.deliveryId, channel, accountId, message.peer, now());
    const result = await service.send({ accountId, message });
    // A channel that has it already may have said how it ended before, and says so once. What may be tried again is still on its way.
    const over = result.status === "refused" ? !result.retryable : result.duplicate === true;
    if (isNew && over) deliveries.arrived(message.deliveryId);
    if (result.status === "queued") return succeed({ duplicate: result.duplicate === true });
    return fail(result.retryable ? "channel.failed" : "channel.unknown", result.error);
  }
  async live({ channel, accountId, peer, replyToId }: ReplyRoute, deliveryId: string, text: string): Promise<void> {
    await this.#ports
      .service(channel)
      ?.live({ accountId, live: { deliveryId, peer, text, ...(replyToId === undefined ? {} : { replyToId }) } });
  }
  async typing({ channel, accountId, peer }: ReplyRoute, active: boolean): Promise<void> {
    await this.#ports.service(channel)?.typing({ accountId, peer, active });
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
