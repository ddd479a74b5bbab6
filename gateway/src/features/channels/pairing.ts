/**
 * The owner's decisions about pairing requests, and the release of held messages. A message stays in its table until its session has it,
 * so every step may run again.
 */
import type { ChannelInbound, ChannelInboundOutcome, OutboundMessage, PairRole } from "../../../../protocol/gen/types.ts";
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { ChannelRef } from "../../ports/channels.ts";
import type { Result } from "../../ports/result.ts";
import type { ReplyRoute } from "../../ports/session.ts";
import type { Pairings } from "./pairing-store.ts";

export interface PairingPorts extends Pick<KernelPorts, "arm" | "audit" | "background" | "log" | "now"> {
  readonly pairings: Pairings;
  /** Hands a held message to its session. Undefined: its sender may not write any more, and the message is dropped. */
  readonly handOn: (ref: ChannelRef, inbound: ChannelInbound) => Promise<ChannelInboundOutcome | undefined>;
  readonly send: (route: ReplyRoute, message: OutboundMessage) => Promise<Result<unknown>>;
}
const RETRY_MS = 30_000;
const MAX_RETRY_MS = 3_600_000;

export class Pairing {
  readonly #ports: PairingPorts;
  #triedAt = 0;
  /** Tries in a row that left messages behind. */
  #tries = 0;

  constructor(ports: PairingPorts) {
    this.#ports = ports;
  }

  /** Accepts a request; the sender's messages are answered now. Undefined: there is no such request. */
  async approve(channel: string, senderOrCode: string, role: PairRole, actor: string) {
    const { pairings, audit, now, background } = this.#ports;
    const done = pairings.approve(channel, senderOrCode, role, now());
    if (done === undefined || done === "ambiguous") return done;
    audit.append({ actor, action: "pair.approve", target: `${channel}:${done.senderId}`, decision: "allowed", detail: role });
    this.#triedAt = now();
    this.#tries = 0;
    this.#ports.arm();
    background("release", this.#release(channel, done.senderId));
    return done;
  }
  async reject(channel: string, senderOrCode: string, actor: string) {
    const { pairings, audit, now } = this.#ports;
    const done = pairings.reject(channel, senderOrCode, now());
    if (done !== undefined && done !== "ambiguous")
      audit.append({ actor, action: "pair.reject", target: `${channel}:${done.senderId}`, decision: "denied" });
    return done;
  }

  /** Messages of one accepted sender, in order. Safe to repeat. */
  async #release(channel: string, sender: string): Promise<void> {
    const { pairings, now, log, handOn, send } = this.#ports;
    for (const { id, accountId, inbound } of pairings.held(channel, sender)) {
      const outcome = await handOn({ channel, accountId }, inbound);
      if (outcome?.outcome === "later") return;
      for (const reply of outcome?.replies ?? []) {
        const sent = await send({ channel, accountId, peer: reply.peer }, reply);
        // The channel's queue is full: the message stays, and its outcome is known already when it is tried again.
        if (!sent.ok && sent.error.reason !== "channel.unknown") return;
      }
      if (outcome !== undefined) log.info("released", { channel, waitedMs: now() - inbound.receivedAt });
      pairings.released(id);
    }
  }
  /** Messages of accepted senders that are left from before. One failed release does not block others. */
  async releaseAll(): Promise<void> {
    const { pairings, now, log } = this.#ports;
    this.#triedAt = now();
    this.#tries++;
    for (const { channel, sender } of pairings.unreleased()) {
      try {
        await this.#release(channel, sender);
      } catch (error) {
        log.warn("not_released", { channel, error });
      }
    }
    if (pairings.unreleased().length === 0) this.#tries = 0;
  }
  /** When messages are released next, for the alarm: the pause grows while messages stay. */
  nextRelease(): number | undefined {
    if (this.#ports.pairings.unreleased().length === 0) return undefined;
    return this.#triedAt + backoffMs(this.#tries + 1, RETRY_MS, MAX_RETRY_MS);
  }
}
