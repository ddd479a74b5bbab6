/**
 * Sends deliveries to channels and follows them to their end (gateway rules CH16, CH17): a delivery is stored before its channel is
 * asked, deleted when it has arrived, and otherwise reported to the conversation and the owner. Stores no text; calls no model.
 */
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { DeliveryReport, OutboundMessage } from "../../../../protocol/gen/types.ts";
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import { cleanName } from "../../../../protocol/runtime/clean-name.ts";
import { peerOfNotice, refOfDelivery } from "./delivery-ids.ts";
import { guestFailedText, undeliveredText } from "./undelivered.ts";
import type { Logger } from "../../platform/log.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { ReplyCall } from "../../ports/channels.ts";
import { type Result, sentence, succeed } from "../../ports/result.ts";
import type { ReplyRoute } from "../../ports/session.ts";
import type { ChannelRef, FailureCause } from "../../ports/channels.ts";
import { fail } from "../../kernel/outcome.ts";
import type { Config } from "../../kernel/config/store.ts";
import { permitEnd } from "./send-permit.ts";
import type { Deliveries, Delivery } from "./delivery-store.ts";
import type { AskSession, SessionDirectory, StopPort } from "../../ports/sessions.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";

export interface DelivererPorts {
  readonly config: Config;
  readonly sessions: SessionDirectory;
  readonly deliveries: Deliveries;
  readonly ask: AskSession;
  readonly now: () => number;
  readonly stopped: StopPort["stopped"];
  /** The Worker of a channel; undefined: none is bound. */
  readonly service: (channel: string) => ChannelService | undefined;
  readonly notify: NotifyPort["notify"];
  readonly log: Logger;
  /** Masks stored secrets: the error of a platform is a text of others. */
  readonly scrub: (text: string) => string;
  readonly arm: () => void;
  /** Call it before a row is written that expires some time. */
  readonly ensureArmed: () => void;
  readonly background: (what: string, work: Promise<unknown>) => void;
}
const TELL_EVERY_MS = 30_000;
const TELL_MAX_MS = 3_600_000;
const TOLD_AT_ONCE = 50;
const MAX_ERROR_CHARS = 1_000;
const MAX_SHOWN_PROBLEMS = 200;

export class Deliverer {
  readonly #ports: DelivererPorts;
  #toldAt = 0;
  /** Consecutive failures to tell a session. */
  #failures = 0;

  constructor(ports: DelivererPorts) {
    this.#ports = ports;
  }

  // ---------------------------------------------------------------- to channels

  /** Durable in the channel when the result is ok. A permanent refusal is reported to the owner; the caller has the answer. */
  async send({ channel, accountId }: ReplyRoute, message: OutboundMessage): Promise<Result<{ readonly duplicate: boolean }>> {
    const sent = await this.handOver({ channel, accountId }, message);
    if (!sent.ok && sent.error.reason === "channel.unknown") {
      const { deliveryId: id, peer } = message;
      this.#undelivered({ id, channel, accountId, peer, state: "failed", error: sentence(sent.error) }, true);
    }
    return sent;
  }
  /** `byAgent`: an agent wrote what is neither an answer nor a question. What agents wrote stays in the channel during a stop (ST9). */
  async handOver(
    { channel, accountId }: ChannelRef,
    given: OutboundMessage,
    byAgent = false,
  ): Promise<Result<{ readonly duplicate: boolean }>> {
    const { deliveries, now, stopped } = this.#ports;
    const isAgents = byAgent || given.kind === "answer" || given.kind === "approval";
    const message = isAgents ? { ...given, askFrom: permitEnd(now(), stopped() !== undefined) } : given;
    const service = this.#ports.service(channel);
    // Before the resume, a restored copy has no Workers of channels (rule BK23): the message waits where it is.
    if (!service && stopped() !== undefined) return fail("channel.failed", `The channel ${channel} does not run while GSV is stopped.`);
    if (!service) return fail("channel.unknown", `There is no channel ${channel} here any more.`);
    this.#ports.ensureArmed();
    const isNew = deliveries.begin(message, channel, accountId, now());
    const result = await service.send({ accountId, message });
    // For a duplicate the channel may have reported the end before, and it reports only once. A retryable refusal is not an end.
    const over = result.status === "refused" ? !result.retryable : result.duplicate === true;
    if (isNew && over) deliveries.arrived(message.deliveryId);
    if (result.status === "queued") return succeed({ duplicate: result.duplicate === true });
    return fail(result.retryable ? "channel.failed" : "channel.unknown", result.error);
  }
  /** To the platform that a message came from. `send` is durable in the channel when it says ok; the others are best effort. */
  async reply(call: ReplyCall): Promise<Result<void>> {
    if (call.kind === "send") {
      // Before the message is handed over: a session that is killed here sends both again.
      if (call.cause !== undefined) this.#tellCause(call.route, call.cause);
      const sent = await this.send(call.route, call.message);
      return sent.ok ? succeed(undefined) : sent;
    }
    if (call.kind === "live") await this.live(call.route, call.deliveryId, call.text);
    else await this.typing(call.route, call.active);
    return succeed(undefined);
  }
  #tellCause({ channel, peer }: ReplyRoute, cause: FailureCause): void {
    const { id, reason, agentId } = cause;
    this.#ports.notify.tell({
      kind: "guest",
      key: `guest:${id}`,
      cause: `guest:${agentId}:${reason}`,
      agentId,
      text: guestFailedText({ channel, peer }, cause),
    });
  }
  async live({ channel, accountId, peer, replyToId }: ReplyRoute, deliveryId: string, text: string): Promise<void> {
    const { now, service, stopped } = this.#ports;
    if (stopped() !== undefined) return;
    const askFrom = permitEnd(now(), false);
    const live = { deliveryId, peer, text, askFrom, ...(replyToId === undefined ? {} : { replyToId }) };
    await service(channel)?.live({ accountId, live });
  }
  async typing({ channel, accountId, peer }: ReplyRoute, active: boolean): Promise<void> {
    await this.#ports.service(channel)?.typing({ accountId, peer, active });
  }

  // ---------------------------------------------------------------- outcomes

  /** Durable when it returns; people are told right after, or when the alarm tries again. */
  delivered({ channel, accountId }: ChannelRef, { state, deliveryId, error }: DeliveryReport): void {
    const { deliveries, log } = this.#ports;
    if (deliveries.isOfAnother(deliveryId, channel, accountId))
      return log.warn("report_of_another_channel", { channel, delivery: deliveryId });
    if (state === "sent") deliveries.arrived(deliveryId);
    else this.#undelivered({ id: deliveryId, channel, accountId, state, ...(error === undefined ? {} : { error }) });
  }
  #undelivered(
    problem: Pick<Delivery, "id" | "channel" | "accountId" | "peer" | "error"> & { readonly state: "failed" | "unknown" },
    noted = false,
  ): void {
    const { deliveries, log, now, arm, background, scrub } = this.#ports;
    const { id, channel, accountId, state } = problem;
    const peer = problem.peer ?? peerOfNotice(id);
    const error = cleanName(problem.error && scrub(problem.error), MAX_ERROR_CHARS);
    const known = { id, channel, accountId, state, at: now(), ...(peer ? { peer } : {}), ...(error === undefined ? {} : { error }) };
    if (!deliveries.failed(known, noted)) return;
    // A notification that did not arrive is told by its next way, and is no further notification.
    if (this.#ports.notify.bounced(id, error ?? `The delivery over ${channel} failed.`)) return deliveries.told({ id, state });
    log.warn("delivery_not_made", { channel, account: accountId, delivery: id, state });
    this.#toldAt = now();
    arm();
    background("tell_undelivered", this.tellUndelivered());
  }
  /**
   * The conversation that a message came from has it in its log, and its model learns of it with the next message; the owner is told by a
   * notification. No model is called. Once for each message and state, however often this runs.
   */
  async tellUndelivered(): Promise<void> {
    const { deliveries, now, log } = this.#ports;
    this.#toldAt = now();
    let failures = 0;
    for (const delivery of deliveries.untold(TOLD_AT_ONCE)) {
      const { id, state, noted } = delivery;
      try {
        if (state === "failed" || state === "unknown")
          await this.#tell(delivery, `${id}:${state}`, noted, undeliveredText({ ...delivery, state }));
        deliveries.told(delivery);
      } catch (error) {
        // One conversation that does not answer must not block the others.
        failures++;
        log.warn("not_told", { delivery: id, error });
      }
    }
    this.#failures = failures === 0 ? 0 : this.#failures + 1;
  }
  async #tell({ id, channel, accountId }: Delivery, key: string, noted: boolean, text: string): Promise<void> {
    const { config, sessions, ask, notify } = this.#ports;
    const ref = refOfDelivery(id);
    const from = ref === undefined ? undefined : sessions.keyOf(ref);
    const named = from === undefined ? undefined : canonicalKey(from, config.mainKey());
    if (named?.ok === true && !noted) {
      const identity = sessions.lookUp(named, ref ?? "");
      await ask(named.key, (session) => session.note({ identity, key, text, forModel: true }));
    }
    notify.tell({
      kind: "undelivered",
      key,
      cause: `undelivered:${channel}/${accountId}`,
      text,
      about: { channel, accountId },
      ...(named?.ok === true ? { agentId: named.address.agentId, toldSession: named.key } : {}),
    });
  }
  /** When people are next told of problems, for the alarm. The pause grows while telling fails. */
  nextTelling(): number | undefined {
    if (this.#ports.deliveries.untold(1).length === 0) return undefined;
    return this.#toldAt + backoffMs(this.#failures, TELL_EVERY_MS, TELL_MAX_MS);
  }

  problems(channel: string, accountId: string | undefined): ReturnType<Deliveries["problems"]> {
    return this.#ports.deliveries.problems(channel, accountId, MAX_SHOWN_PROBLEMS);
  }
  counts(): ReturnType<Deliveries["counts"]> {
    return this.#ports.deliveries.counts();
  }
}
