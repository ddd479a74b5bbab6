/**
 * How many messages a minute one sender may write in one conversation (gateway rule CH6). PURE but for its counters, which are in memory:
 * a new instance starts at zero.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ChannelInbound, PairRole } from "../../../../protocol/gen/types.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import { senderIdOf } from "./access.ts";

const MINUTE_MS = 60_000;
/** Senders in conversations that are remembered. */
const MAX_SENDERS = 1_000;

export interface Held {
  /** Until the message may be taken. */
  readonly retryAfterMs: number;
  /** What the sender is told now; absent when they know. */
  readonly text?: string;
}

export class MessageRate {
  readonly #now: () => number;
  readonly #lately = new Map<string, readonly number[]>();
  readonly #toldAt = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Undefined: the message is within the limit, and counted. Otherwise it waits in the channel and delays no other conversation. */
  hold({ channel, accountId }: ChannelRef, inbound: ChannelInbound, speaker: PairRole): Held | undefined {
    const now = this.#now();
    const { peer, sender } = inbound;
    const who = JSON.stringify([channel, accountId, peer.kind, peer.id, senderIdOf(inbound)]);
    const most = speaker === "owner" ? LIMITS.ownerPerMinute : LIMITS.senderPerMinute;
    const recent = (this.#lately.get(who) ?? []).filter((at) => now - at < MINUTE_MS && at <= now);
    const first = recent.at(-most);
    if (first === undefined) {
      remember(this.#lately, who, [...recent, now]);
      return undefined;
    }
    const retryAfterMs = first + MINUTE_MS - now;
    const told = this.#toldAt.get(who);
    // Two programs must not tell each other to wait.
    if (sender?.bot === true || (told !== undefined && Math.abs(now - told) < LIMITS.heldNoticeMs)) return { retryAfterMs };
    remember(this.#toldAt, who, now);
    return { retryAfterMs, text: `You have sent more than ${most} messages in a minute. The rest waits and is taken in order.` };
  }
}

function remember<T>(map: Map<string, T>, key: string, value: T): void {
  if (map.size >= MAX_SENDERS && !map.has(key)) map.clear();
  map.set(key, value);
}
