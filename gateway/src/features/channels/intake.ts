/**
 * Takes each message of a platform once, and gives it to its session (promises P2, P3, S6-S8). A repeated call gets the same answer.
 * `access.ts` decides who may write; the stores hold the durable data.
 */
import { sentence } from "../../ports/result.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ChannelConfig, ChannelInbound, ChannelInboundOutcome, PairRole, Unanswered } from "../../../../protocol/gen/types.ts";
import { cleanName } from "../../../../protocol/runtime/clean-name.ts";
import { type Access, accessOf, claimsOwner, isKnownSender, senderIdOf } from "./access.ts";
import { channelTaint } from "../../policy/taint.ts";
import { unansweredWhy } from "./attention.ts";
import { envelope, hasHead } from "./envelope.ts";
import { keyFor } from "../../storage/media-names.ts";
import { type ApprovalsPort, endText } from "../../ports/approvals.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import type { SessionIdentity, SessionSend } from "../../ports/session.ts";
import { approvalAnswerOf, attachmentsOf, notice, originOf, routeOf, runIdOf, withoutMention } from "./inbound-message.ts";
import type { Deliverer } from "./deliverer.ts";
import type { WaitingFiles } from "./file-store.ts";
import { type Held, MessageRate } from "./message-rate.ts";
import { ChannelRouter, type Destination } from "./router.ts";
import type { Channels } from "./account-store.ts";
import { plainName } from "../../ports/actor.ts";
import type { Config } from "../../kernel/config/store.ts";
import type { Audit } from "../../kernel/audit-store.ts";
import type { Logger } from "../../platform/log.ts";
import type { Pairings } from "./pairing-store.ts";
import type { Peers } from "./peer-store.ts";
import type { AskSession, SessionDirectory } from "../../ports/sessions.ts";

export interface IntakePorts {
  readonly config: Config;
  readonly sessions: SessionDirectory;
  readonly channels: Channels;
  readonly pairings: Pairings;
  readonly peers: Peers;
  readonly files: WaitingFiles;
  readonly audit: Audit;
  readonly ask: AskSession;
  readonly now: () => number;
  readonly random: (length: number) => Uint8Array;
  readonly sha256: (text: string) => Promise<string>;
  readonly contextVersion: () => string;
  readonly log: Logger;
  readonly background: (what: string, work: Promise<unknown>) => void;
  readonly send: Deliverer["send"];
  readonly approvals: ApprovalsPort["approvals"];
  /** Sets the alarm of the retention, if none is set. */
  readonly ensureArmed: () => void;
}
/** The channel keeps the message and delivers it again. */
const LATER: ChannelInboundOutcome = { outcome: "later" };
type Allowed = Pick<Extract<Access, { kind: "allow" }>, "role" | "speaker">;
const GUEST: Allowed = { role: "guest", speaker: "guest" };
/** Ends the key of a message that waited with a pairing request. */
const LET_IN = "/let-in";
/** Ends the name of the notice for a message that waits. */
const HELD = "/held";
/** Ends the name of the notice that everything is stopped. */
const STOPPED = "/stopped";
const STEERS = "The run under way gets this at its next step.";
const MAX_TOLD = 1000;
const CHANGED =
  "Your access changed while this message was on its way, and it is not known whether it was delivered. Send it again if you get no answer.";
/** Longer keys of messages are replaced by their hash. */
const MAX_PLAIN_KEY = 100;

export class Intake {
  readonly #ports: IntakePorts;
  readonly #router: ChannelRouter;
  readonly #rate: MessageRate;
  readonly #toldStopped = new Map<string, number>();

  constructor(ports: IntakePorts) {
    this.#ports = ports;
    this.#router = new ChannelRouter(ports);
    this.#rate = new MessageRate(ports.now);
  }

  async inbound(ref: ChannelRef, given: ChannelInbound): Promise<ChannelInboundOutcome> {
    const { channels, now } = this.#ports;
    const inbound = this.#believed(ref, given);
    const key = await this.#key(ref, inbound);
    const known = channels.taken(key);
    // The same answer again, with its replies: each has a delivery id, so the channel sends it once.
    if (known?.outcome) return known.outcome.outcome === "accepted" ? { ...known.outcome, outcome: "duplicate" } : known.outcome;
    const access = this.#access(ref, inbound);
    const foreign = known === undefined ? this.#foreignPress(ref, inbound, key, access) : undefined;
    if (foreign !== undefined) return foreign;
    if (known === undefined && access.kind === "ignore") return { outcome: "ignored" };
    channels.touch(ref.channel, ref.accountId, now());
    this.#ports.ensureArmed();
    if (known === undefined && access.kind === "pair") return this.#pair(ref, inbound, key);
    return this.#take(ref, inbound, key, access.kind === "allow" ? access : GUEST, known?.sessionKey);
  }

  /**
   * A button of a question that another person has pressed, or the owner outside their direct chat (rule AP15): it is no answer and no
   * message. Undefined: it is none.
   */
  #foreignPress(ref: ChannelRef, inbound: ChannelInbound, key: string, access: Access): ChannelInboundOutcome | undefined {
    const { message, peer } = inbound;
    const answer = message.pressed === true ? approvalAnswerOf(message.text) : undefined;
    const isAllowed = access.kind === "allow";
    if (answer === undefined || (isAllowed && access.role === "owner" && access.speaker === "owner" && peer.kind === "dm"))
      return undefined;
    const { audit, channels, now } = this.#ports;
    const actor = `channel:${ref.channel}/${ref.accountId} sender:${plainName(senderIdOf(inbound) ?? "")}`;
    audit.append({ actor, action: "approval.resolve", target: answer.code, decision: "denied", detail: "pressed" });
    // A sender without access leaves no row.
    if (!isAllowed) return { outcome: "ignored" };
    const text = "Only the owner can answer this question, in their own direct chat.";
    const outcome: ChannelInboundOutcome = { outcome: "refused", replies: [notice(key, inbound, text)] };
    channels.claim(key, "", now());
    channels.settle(key, outcome);
    return outcome;
  }

  /** Where a file of a message is stored; undefined: it is not wanted. */
  async mediaKey(
    ref: ChannelRef,
    given: ChannelInbound,
    file: { readonly mimeType: string; readonly index: number },
  ): Promise<string | undefined> {
    const inbound = this.#believed(ref, given);
    const access = this.#access(ref, inbound);
    if (access.kind !== "allow") return undefined;
    const destination = this.#router.destinationOf(ref, inbound, access.role);
    if (!destination.ok) return undefined;
    const messageId = await this.#key(ref, inbound);
    const { channels } = this.#ports;
    const isOver = !destination.value.isOwner && channels.today(ref.channel, senderIdOf(inbound) ?? "", this.#day()) >= LIMITS.guestPerDay;
    // Files of a message that will be refused are not stored for it.
    if (isOver && channels.taken(messageId) === undefined) return undefined;
    return keyFor(destination.value.key, { kind: "message", messageId, index: file.index }, file.mimeType);
  }

  /** The message has its outcome, so it takes no more files. */
  async isSettled(ref: ChannelRef, inbound: ChannelInbound): Promise<boolean> {
    return this.#ports.channels.taken(await this.#key(ref, inbound))?.outcome !== undefined;
  }

  /** A message that waited with a pairing request. */
  async handOn(ref: ChannelRef, inbound: ChannelInbound): Promise<ChannelInboundOutcome | undefined> {
    const access = this.#access(ref, inbound);
    if (access.kind !== "allow") return undefined;
    const key = `${await this.#key(ref, inbound)}${LET_IN}`;
    const known = this.#ports.channels.taken(key);
    return known?.outcome ?? this.#take(ref, { ...inbound, backlog: true }, key, access, known?.sessionKey);
  }

  /** The conversation that the message would go to; undefined: it may not be written. */
  conversationOf(ref: ChannelRef, inbound: ChannelInbound): SessionIdentity | undefined {
    const role = this.roleOf(ref, inbound);
    const destination = role && this.#router.destinationOf(ref, inbound, role);
    return destination?.ok === true ? destination.value.identity : undefined;
  }
  /** Without the claim to be the owner, unless the configuration lets this channel make it. */
  #believed({ channel }: ChannelRef, inbound: ChannelInbound): ChannelInbound {
    if (inbound.fromOwner === undefined || this.#configOf(channel).selfChat === true) return inbound;
    const { fromOwner: _, ...rest } = inbound;
    if (claimsOwner(inbound)) {
      const entry = { actor: `channel:${channel}`, action: "channel.from_owner", target: inbound.peer.id, decision: "denied" } as const;
      this.#ports.audit.append(entry);
    }
    return rest;
  }

  #configOf(channel: string): ChannelConfig {
    return this.#ports.config.effective().channels?.[channel] ?? {};
  }
  #access({ channel }: ChannelRef, inbound: ChannelInbound): Access {
    const sender = senderIdOf(inbound);
    const known = sender === undefined ? undefined : this.#ports.pairings.known(channel, sender);
    return accessOf({ channel, inbound, config: this.#configOf(channel), known });
  }
  /** What in the message may be of others than its sender (rule TA1). */
  #taintOf({ channel }: ChannelRef, inbound: ChannelInbound): Pick<SessionSend, "taint"> {
    const { message, repliedToAgent } = inbound;
    const senderId = senderIdOf(inbound);
    const known = senderId === undefined ? undefined : this.#ports.pairings.known(channel, senderId);
    const quotes = message.replyToText !== undefined && message.replyToText.trim() !== "";
    const taint = channelTaint({
      channel,
      senderId,
      isKnown: isKnownSender({ channel, inbound, config: this.#configOf(channel), known }),
      forwarded: message.forwarded === true,
      quotesOther: quotes && repliedToAgent !== true && message.replyToSenderId !== senderId,
    });
    return taint === undefined ? {} : { taint };
  }
  roleOf(ref: ChannelRef, inbound: ChannelInbound): PairRole | undefined {
    const access = this.#access(ref, inbound);
    return access.kind === "allow" ? access.role : undefined;
  }
  #pair(ref: ChannelRef, inbound: ChannelInbound, key: string): ChannelInboundOutcome {
    const { pairings, channels, now, random } = this.#ports;
    const sender = senderIdOf(inbound) ?? inbound.peer.id;
    const name = cleanName(inbound.sender?.name ?? inbound.peer.name);
    const asked = pairings.request(
      { channel: ref.channel, accountId: ref.accountId, inbound },
      { sender, ...(name === undefined ? {} : { name }) },
      now(),
      random,
    );
    const outcome: ChannelInboundOutcome = {
      outcome: "held",
      ...(asked.notice
        ? {
            replies: [
              notice(
                key,
                inbound,
                `This is a personal assistant, and it does not know you yet. Ask its owner to let you in with the code ${asked.code}.`,
              ),
            ],
          }
        : {}),
    };
    // A message without effect leaves no row: otherwise a sender without access could fill the tables.
    if (asked.kept || asked.notice) {
      channels.claim(key, "", now());
      channels.settle(key, outcome);
    }
    return outcome;
  }

  /** The key of a message here, and its idempotency key in the session. */
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
    const { channels, files, ask, now, contextVersion } = this.#ports;
    const refused = (text: string): ChannelInboundOutcome => ({ outcome: "refused", replies: [notice(key, inbound, text)] });
    const settle = (outcome: ChannelInboundOutcome): ChannelInboundOutcome => {
      channels.settle(key, outcome);
      return outcome;
    };
    const destination = this.#router.destinationOf(ref, inbound, role);
    if (!destination.ok) {
      channels.claim(key, "", now());
      return settle(refused(sentence(destination.error)));
    }
    // A retry keeps its session unless the sender's access changed.
    const target = claimed === undefined || claimed === "" ? destination.value : this.#router.claimed(claimed, destination.value);
    if (target === undefined) return settle(refused(CHANGED));
    if (claimed === undefined) {
      const held = this.#rate.hold(ref, inbound, speaker);
      if (held !== undefined) return this.#holdBack(ref, inbound, key, held);
      channels.claim(key, target.key, now());
      if (this.#ports.peers.record(ref.channel, ref.accountId, inbound, now()) > LIMITS.botMessagesInRow) {
        this.#ports.log.warn("bots_in_a_row", { channel: ref.channel });
        return settle({ outcome: "ignored" });
      }
      if (!target.isOwner && this.#exceedsDay(ref, inbound))
        return settle(refused("You have reached this assistant's limit of messages for today. Write again tomorrow."));
    }
    const answered = await this.#approval(ref, inbound, role, speaker);
    if (answered !== undefined) return settle({ outcome: "answered", sessionKey: target.key, replies: [notice(key, inbound, answered)] });
    const unanswered = await this.#unanswered(ref, inbound, key);
    const { attachments = [] } = attachmentsOf(inbound, target.key);
    const result = await ask(target.key, (session) =>
      session.send({
        identity: target.identity,
        messageId: key,
        runId: `run-${runIdOf(key)}`,
        ...this.#textOf(ref, inbound, target, speaker),
        ...attachmentsOf(inbound, target.key),
        badFilesAsNotes: true,
        origin: originOf(ref, inbound, speaker),
        ...this.#taintOf(ref, inbound),
        ...(unanswered === undefined ? { reply: routeOf(ref, inbound) } : { quiet: true }),
        contextVersion: contextVersion(),
      }),
    );
    if (!result.ok) {
      const { error } = result;
      if (error.reason === "storage.failed" || error.reason === "storage.full" || error.reason === "internal") return LATER;
      // The next try starts a new session.
      if (error.reason === "session.deleting") return LATER;
      // No sender waits for an answer, so the message can wait in the channel.
      if (unanswered !== undefined && error.reason === "session.queue_full") return LATER;
      return settle(refused(sentence(error)));
    }
    const { value } = result;
    const reaction = this.#configOf(ref.channel).reaction ?? (inbound.peer.kind === "dm" ? "" : "👀");
    switch (value.status) {
      case "started":
      case "paused":
        // In one step with the outcome: a repeated message takes no others, and a taken file is never deleted as a waiting one.
        files.taken(
          ref.channel,
          attachments.flatMap(({ r2Key }) => r2Key ?? []),
        );
        if (unanswered !== undefined) return settle({ outcome: "accepted", sessionKey: target.key, unanswered });
        if (value.status === "started" && value.stopped === true) this.#tellStopped(ref, inbound, key, speaker);
        return settle({
          outcome: "accepted",
          sessionKey: target.key,
          runId: value.runId,
          ...(reaction === "" ? {} : { reaction }),
          ...(value.status === "started" && value.steers !== undefined ? { replies: [notice(key, inbound, STEERS)] } : {}),
        });
      case "command":
      case "directive-only": {
        const text = (value.status === "command" ? (value.error ?? value.response) : value.response) ?? "Done.";
        return settle({ outcome: "answered", sessionKey: target.key, replies: [notice(key, inbound, text)] });
      }
    }
  }
  /**
   * What became of the question that the message answers; undefined: it answers none. Only the owner's own words in their own direct
   * chat count (promise S14): no quote, no forwarded text, no correction, nothing that waited for a day.
   */
  async #approval(ref: ChannelRef, inbound: ChannelInbound, role: PairRole, speaker: PairRole): Promise<string | undefined> {
    const { peer, message } = inbound;
    const isOwnWord = message.forwarded !== true && message.editOf === undefined && inbound.backlog !== true;
    if (role !== "owner" || speaker !== "owner" || peer.kind !== "dm" || !isOwnWord) return undefined;
    const answer = approvalAnswerOf(message.text);
    if (answer === undefined) return undefined;
    // A button is never a message to the agent.
    if (!this.#ports.approvals.knows(answer.code)) return message.pressed === true ? `${answer.code}: this question is over.` : undefined;
    const by = `channel:${ref.channel}/${ref.accountId} owner:${plainName(senderIdOf(inbound) ?? "")}`;
    const result = await this.#ports.approvals.answer(by, answer);
    return result.ok ? endText(answer.code, result.value, this.#ports.now()) : sentence(result.error);
  }
  /** Why a message gets no answer; undefined: it gets one. A message that waited with a pairing request always gets one. */
  async #unanswered(ref: ChannelRef, inbound: ChannelInbound, key: string): Promise<Unanswered | undefined> {
    const { channels, now } = this.#ports;
    if (key.endsWith(LET_IN)) return undefined;
    const original = inbound.message.editOf;
    const knowsOriginal =
      original !== undefined &&
      channels.taken(await this.#key(ref, { ...inbound, message: { ...inbound.message, id: original } }))?.outcome?.outcome === "accepted";
    return unansweredWhy({ inbound, now: now(), knowsOriginal });
  }
  /** The owner's messages can be commands, in groups too, so that `/stop` works where the run is. Guests have `/help` and `/status`. */
  #textOf(
    { channel }: ChannelRef,
    inbound: ChannelInbound,
    { isOwner }: Destination,
    speaker: PairRole,
  ): Pick<SessionSend, "text" | "verbatim" | "command" | "byGuest"> {
    const text = envelope({ channel, inbound, isOwner, now: this.#ports.now() });
    const { message } = inbound;
    if (isOwner && !hasHead(text)) return { text };
    // Quotes and forwarded text are never commands.
    if (message.forwarded === true) return { text, verbatim: true };
    return { text, verbatim: true, command: withoutMention(inbound), ...(speaker === "owner" ? {} : { byGuest: true }) };
  }

  /** The message waits in its session until the owner lets GSV go on. Each conversation is told once in a while. */
  #tellStopped(ref: ChannelRef, inbound: ChannelInbound, key: string, speaker: PairRole): void {
    const { background, now, send } = this.#ports;
    const place = JSON.stringify([ref.channel, ref.accountId, inbound.peer.kind, inbound.peer.id]);
    if (now() - (this.#toldStopped.get(place) ?? 0) < LIMITS.heldNoticeMs) return;
    if (this.#toldStopped.size >= MAX_TOLD) this.#toldStopped.clear();
    this.#toldStopped.set(place, now());
    const text =
      speaker === "owner"
        ? "GSV is stopped. Your message waits; write /resume to go on."
        : "This assistant is paused. Your message waits and is answered later.";
    background("tell_stopped", send({ ...ref, peer: inbound.peer }, notice(`${key}${STOPPED}`, inbound, text)));
  }
  /** The message waits in the channel. */
  #holdBack(ref: ChannelRef, inbound: ChannelInbound, key: string, { retryAfterMs, text }: Held): ChannelInboundOutcome {
    if (text !== undefined)
      this.#ports.background("tell_held", this.#ports.send({ ...ref, peer: inbound.peer }, notice(`${key}${HELD}`, inbound, text)));
    return { ...LATER, retryAfterMs };
  }
  /** Counts the message and returns whether the sender's limit per day is exceeded. */
  #exceedsDay({ channel }: ChannelRef, inbound: ChannelInbound): boolean {
    return this.#ports.channels.countToday(channel, senderIdOf(inbound) ?? "", this.#day()) > LIMITS.guestPerDay;
  }
  #day(): string {
    return new Date(this.#ports.now()).toISOString().slice(0, 10);
  }
}
