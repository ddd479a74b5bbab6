/**
 * Messages that the agent sends on its own initiative (gsv__Message), and the conversations to which it may send them (gsv__Channels).
 * Only for the owner's sessions, only to conversations that `targets.ts` allows, and once per call, also when the call runs again. The
 * recipient's conversation gets the message into its log, so that the agent knows it when the recipient answers.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { hashPair, hex32 } from "../../../../protocol/runtime/hash.ts";
import type { ChannelConfig, ChannelInbound, OutboundMessage, PairRole } from "../../../../protocol/gen/types.ts";
import type { Channels } from "./account-store.ts";
import { withoutHeads } from "./envelope.ts";
import { mayAddress, nextWord } from "./targets.ts";
import { type Target, targetName } from "../../tools/message-target.ts";
import { messageDelivery } from "./delivery-ids.ts";
import type { ChannelMessage, ChannelMessageSent, ChannelNotification, ChannelPlaces } from "../../ports/channels.ts";
import { type Result, sentence, succeed } from "../../ports/result.ts";
import type { SessionIdentity } from "../../ports/session.ts";
import { fence } from "../../prompt/fence.ts";
import type { Audit } from "../../kernel/audit-store.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import { fail } from "../../kernel/outcome.ts";
import type { Config } from "../../kernel/config/store.ts";
import type { Pairings } from "./pairing-store.ts";
import { MAX_PEERS, type PeerRecord, type Peers } from "./peer-store.ts";
import type { AskSession, SessionDirectory } from "../../ports/sessions.ts";
import type { Taint } from "../../ports/taint.ts";
import { answersTo } from "../../calls/approval.ts";
import { canonicalKey, normaliseId } from "../../kernel/routing/session-keys.ts";

export interface OutgoingPorts {
  readonly now: () => number;
  readonly config: Config;
  readonly sessions: SessionDirectory;
  readonly channels: Pick<Channels, "accounts" | "wroteSince">;
  readonly pairings: Pairings;
  readonly peers: Peers;
  readonly audit: Audit;
  readonly ask: AskSession;
  readonly sha256: (text: string) => Promise<string>;
  readonly names: () => readonly string[];
  readonly contextVersion: () => string;
  readonly handOver: (ref: ChannelRef, message: OutboundMessage, byAgent?: boolean) => Promise<Result<{ readonly duplicate: boolean }>>;
  /** The recipient's access; undefined: none. */
  readonly roleOf: (ref: ChannelRef, inbound: ChannelInbound) => PairRole | undefined;
  /** The conversation that would answer the recipient's messages. */
  readonly conversationOf: (ref: ChannelRef, inbound: ChannelInbound) => SessionIdentity | undefined;
  /** Forgets a delivery that was never handed over. */
  readonly withdraw: (deliveryId: string) => void;
  /** The account was started, and is known not to be connected. */
  readonly isDown: (ref: ChannelRef) => boolean;
  readonly failed: (what: string, error: unknown) => void;
}
interface OwnPlaces {
  /** Changes with the configuration, peers and pairings. */
  readonly stamp: string;
  readonly names: readonly string[];
  readonly version: string;
}
const HOUR_MS = 3_600_000;
const MAX_PLACES = 50;
const MAX_OWN = 32;
const MAX_DELIVERY_CHARS = 160;
const SHOWN_CHARS = 100;
/** For the owner; the model gets the words of `#find`. */
const notAllowed = ({ channel, peer }: Target): string =>
  peer.kind === "dm"
    ? `GSV may not write to ${peer.id.slice(0, SHOWN_CHARS)} on ${channel}: this person is not approved. Requests: \`gsv pair list\`.`
    : `GSV may not write to the ${peer.kind} ${peer.id.slice(0, SHOWN_CHARS)} on ${channel}: groups are off for this channel (\`gsv config get channels.${channel}\`), or no one has written to GSV there yet: mention it there once.`;

export class Outgoing {
  readonly #ports: OutgoingPorts;
  /** Calls of the last hour by conversation. A rate limit in memory: a new instance starts at zero. */
  readonly #lately = new Map<string, ReadonlyMap<string, number>>();
  #own: OwnPlaces | undefined;
  constructor(ports: OutgoingPorts) {
    this.#ports = ports;
  }

  /** Conversations that may be written to now, the most recently active first. */
  places(query: string, limit: number): ChannelPlaces {
    const { peers, names } = this.#ports;
    const most = Math.min(Math.max(1, limit), MAX_PLACES);
    const found = peers.list(query.trim().toLowerCase(), 4 * MAX_PLACES).filter((record) => this.#allowed(record, record));
    return {
      channels: names(),
      places: found.slice(0, most).map((record) => ({
        to: targetName(record),
        kind: record.peer.kind,
        ...(record.peer.name === undefined ? {} : { name: record.peer.name }),
        whose: this.#whose(record),
        lastWroteAt: record.lastAt,
      })),
      more: found.length > most,
    };
  }

  /** Why a message of the agent would not arrive there now, for the owner. */
  refusalOf(target: Target): string | undefined {
    const found = this.#find(target);
    if (!found.ok && found.error.reason !== "auth.forbidden") return sentence(found.error);
    const { channel, accountId } = found.ok
      ? found.value
      : { channel: target.channel.toLowerCase(), accountId: normaliseId(target.accountId ?? "default", "default") };
    const isStarted = this.#ports.channels.accounts().some((account) => account.channel === channel && account.accountId === accountId);
    const problems = [
      ...(found.ok ? [] : [notAllowed(target)]),
      ...(isStarted && !this.#ports.isDown({ channel, accountId })
        ? []
        : [`The account ${accountId} of ${channel} is not connected: \`gsv channel list\`.`]),
    ];
    return problems.length === 0 ? undefined : problems.join(" ");
  }
  /** Why a notification would not arrive there now. */
  problemOf(target: Target): string | undefined {
    const found = this.#find(target);
    if (!found.ok) return found.error.message;
    const { channel, accountId, record } = found.value;
    if (record === undefined || this.#whose(record) !== "yours") return "This is not one of your own direct chats.";
    return this.#ports.isDown({ channel, accountId }) ? `The channel ${channel} is not connected.` : undefined;
  }
  /** The one of the owner's own direct conversations that was active last. */
  lastOwn(): string | undefined {
    const { peers } = this.#ports;
    const record = peers.direct(MAX_PEERS).find((each) => this.#allowed(each, each) && this.#whose(each) === "yours");
    return record && targetName(record);
  }
  /**
   * When someone wrote last to this agent on a channel, outside the owner's own conversations, after a moment; that moment when no one has.
   * Undefined: there is no such channel.
   */
  lastFromOthers(channel: string, agentId: string, since: number): number | undefined {
    const { channels, config, names, sessions } = this.#ports;
    if (!names().includes(channel)) return undefined;
    const times = channels.wroteSince(channel, since).flatMap(({ session, at }) => {
      const named = canonicalKey(session, config.mainKey());
      return named.ok && named.address.agentId === agentId && !sessions.isOwners(named) ? [at] : [];
    });
    return Math.max(since, ...times);
  }
  wasStarted(channel: string): boolean {
    return this.#ports.channels.accounts().some((account) => account.channel === channel);
  }
  /** The owner's own direct conversations, as gsv__Message names them (rule PO16). Read again only after a change of what they follow from. */
  own(): readonly string[] {
    return this.#ownNow().names;
  }
  /** Another text whenever `own` has other names. */
  ownVersion(): string {
    return this.#ownNow().version;
  }
  #ownNow(): OwnPlaces {
    const { config, peers, pairings } = this.#ports;
    const stamp = `${config.version()}/${peers.changes}/${pairings.changes}`;
    if (this.#own?.stamp !== stamp) {
      const places = peers.direct(MAX_PEERS).filter((record) => this.#allowed(record, record) && this.#whose(record) === "yours");
      const names = places.slice(0, MAX_OWN).map(targetName).sort();
      this.#own = { stamp, names, version: hashPair(names.join("\n")).map(hex32).join("") };
    }
    return this.#own;
  }

  async message({ from, callId, target, text, media, replyToId, taint, question }: ChannelMessage): Promise<Result<ChannelMessageSent>> {
    const { config, sessions, audit } = this.#ports;
    const named = canonicalKey(from.key, config.mainKey());
    if (!named.ok || !sessions.isOwners(named))
      return fail("auth.forbidden", "Only the owner's own conversation may send messages to others.");
    const found = this.#find(target);
    if (!found.ok) {
      if (found.error.reason === "auth.forbidden")
        audit.append({
          actor: `session:${from.key}`,
          action: "message.send",
          target: `${target.channel}:${target.peer.id}`,
          decision: "denied",
        });
      return found;
    }
    if (!this.#admitsThisHour(from.key, callId))
      return fail(
        "limit.rate",
        `You have sent ${LIMITS.agentMessagesPerHour} messages in the last hour, which is the limit.`,
        "Tell the owner, and continue later.",
      );
    const { channel, accountId, peer } = found.value;
    const deliveryId = await this.#deliveryOf(callId);
    const sent = await this.#ports.handOver(
      { channel, accountId },
      {
        deliveryId,
        kind: question === undefined ? "answer" : "approval",
        peer,
        text,
        ...(replyToId === undefined ? {} : { replyToId }),
        ...(question === undefined ? {} : { actions: [...answersTo(question)] }),
        ...(media.length === 0 ? {} : { media: [...media] }),
      },
    );
    if (!sent.ok) {
      this.#ports.withdraw(deliveryId);
      return sent;
    }
    audit.append({ actor: `session:${from.key}`, action: "message.send", target: `${channel}:${peer.id}`, decision: "allowed" });
    if (question === undefined) await this.#tellThere(found.value, from, deliveryId, { text, files: media.length, taint });
    return succeed({ status: "queued", deliveryId, to: targetName(found.value), ...(sent.value.duplicate ? { duplicate: true } : {}) });
  }

  async #deliveryOf(callId: string): Promise<string> {
    const plain = messageDelivery(callId);
    return plain.length <= MAX_DELIVERY_CHARS ? plain : messageDelivery(await this.#ports.sha256(callId));
  }
  /** To a direct chat of the owner only: what notifications say is for no one else. */
  async notify({ callId, target, text, question, byAgent }: ChannelNotification): Promise<Result<ChannelMessageSent>> {
    const found = this.#find(target);
    if (!found.ok) return found;
    const { channel, accountId, peer, record } = found.value;
    if (record === undefined || this.#whose(record) !== "yours")
      return fail(
        "auth.forbidden",
        "Notifications go only to your own direct chats that have written to the agent, and this is not one of them.",
      );
    const deliveryId = await this.#deliveryOf(callId);
    const actions = question === undefined ? {} : { actions: [...answersTo(question)] };
    const message = { deliveryId, kind: question === undefined ? ("notice" as const) : ("approval" as const), peer, text, ...actions };
    const sent = await this.#ports.handOver({ channel, accountId }, message, byAgent);
    if (!sent.ok) {
      this.#ports.withdraw(deliveryId);
      return sent;
    }
    this.#ports.audit.append({ actor: "gateway", action: "message.send", target: `${channel}:${peer.id}`, decision: "allowed" });
    return succeed({ status: "queued", deliveryId, to: targetName(found.value), ...(sent.value.duplicate ? { duplicate: true } : {}) });
  }

  /** Counts the call and returns whether it is within the limit per hour. A call that runs again counts once. */
  #admitsThisHour(key: string, callId: string): boolean {
    const now = this.#ports.now();
    const recent = new Map([...(this.#lately.get(key) ?? [])].filter(([, at]) => Math.abs(now - at) < HOUR_MS));
    if (!recent.has(callId) && recent.size >= LIMITS.agentMessagesPerHour) return false;
    if (this.#lately.size > 1_000) this.#lately.clear();
    this.#lately.set(key, recent.set(callId, now));
    return true;
  }
  #configOf(channel: string): ChannelConfig {
    const channels = this.#ports.config.effective().channels ?? {};
    return (Object.hasOwn(channels, channel) ? channels[channel] : undefined) ?? {};
  }
  #allowed(target: Target, record: PeerRecord | undefined): boolean {
    const { channel } = target;
    return mayAddress(target, record, this.#configOf(channel), (sender) => this.#ports.pairings.known(channel, sender));
  }
  #whose({ channel, accountId, ...record }: PeerRecord): "yours" | "guest" | "group" {
    if (record.peer.kind !== "dm") return "group";
    return this.#ports.roleOf({ channel, accountId }, nextWord(record)) === "owner" ? "yours" : "guest";
  }
  #find(target: Target): Result<Required<Target> & { readonly record?: PeerRecord }> {
    const { peers, names } = this.#ports;
    const channel = target.channel.toLowerCase();
    if (!names().includes(channel))
      return fail(
        "channel.unknown",
        `There is no channel ${channel.slice(0, 64)}.`,
        `Channels of this gateway: ${names().join(", ") || "none"}.`,
      );
    const accountId = target.accountId === undefined ? undefined : normaliseId(target.accountId, "default");
    const known = peers.find(channel, accountId, target.peer);
    if (known.length > 1)
      return fail(
        "tool.bad_args",
        "Several accounts know this conversation.",
        `Name one: ${known.map((record) => targetName(record)).join(" or ")}.`,
      );
    const [record] = known;
    if (!this.#allowed({ ...target, channel }, record))
      return fail(
        "auth.forbidden",
        "You may write only to people and groups that you already talk with or that the owner has allowed.",
        "List them with gsv__Channels.",
      );
    const { peer } = record ?? target;
    return succeed({ channel, accountId: record?.accountId ?? accountId ?? "default", peer, ...(record ? { record } : {}) });
  }

  /** Adds the message to the recipient's conversation, without starting a run. Best effort: the message itself was sent. */
  async #tellThere(
    { channel, accountId, record }: Required<Target> & { readonly record?: PeerRecord },
    from: SessionIdentity,
    deliveryId: string,
    { text, files, taint }: { readonly text: string; readonly files: number; readonly taint: Taint | undefined },
  ): Promise<void> {
    const { ask, conversationOf, contextVersion, failed } = this.#ports;
    const there = record && conversationOf({ channel, accountId }, nextWord(record));
    if (!there || there.key === from.key) return;
    const what = files === 0 ? "" : ` With ${files} file${files === 1 ? "" : "s"}.`;
    try {
      await ask(there.key, (session) =>
        session.send({
          identity: there,
          messageId: deliveryId,
          runId: `told-${deliveryId}`,
          text: `[system] You wrote this here yourself, asked to by your human elsewhere.${what}\n${fence("your own message", withoutHeads(text))}`,
          verbatim: true,
          quiet: true,
          origin: { kind: "session", sessionKey: from.key, hops: 1 },
          ...(taint === undefined ? {} : { taint }),
          contextVersion: contextVersion(),
        }),
      );
    } catch (error) {
      failed("telling a conversation what was sent to it", error);
    }
  }
}
