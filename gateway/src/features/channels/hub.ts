/**
 * Composes what the gateway does for channels, and takes what their Workers report: states, deliveries, claims. `intake.ts` takes
 * messages of people, `deliverer.ts` and `outgoing.ts` send.
 */
import type { Result } from "../../ports/result.ts";
import type { ChannelService } from "../../../../protocol/gen/services.ts";
import type { ChannelAccount, ChannelInbound, ChannelInboundOutcome, DeliveryReport } from "../../../../protocol/gen/types.ts";
import { refOfDelivery } from "./delivery-ids.ts";
import { gapText } from "./undelivered.ts";
import { isOwnKey } from "../../storage/keys.ts";
import type { ChannelRef, FilePlace } from "../../ports/channels.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { Bucket } from "../../storage/bucket.ts";
import type { DownAccounts } from "./down-store.ts";
import { ChannelWatch } from "./watch.ts";
import { Deliverer } from "./deliverer.ts";
import { Intake, type IntakePorts } from "./intake.ts";
import { Outgoing } from "./outgoing.ts";
import { Pairing } from "./pairing.ts";
import { Retention } from "./retention.ts";
import type { Channels } from "./account-store.ts";
import type { Deliveries } from "./delivery-store.ts";
import type { Pairings } from "./pairing-store.ts";
import { normaliseId } from "../../kernel/routing/session-keys.ts";

export interface HubPorts extends Omit<IntakePorts, "send" | "ensureArmed"> {
  readonly deliveries: Deliveries;
  readonly down: DownAccounts;
  readonly bucket: Pick<Bucket, "delete">;
  readonly notify: NotifyPort["notify"];
  readonly stopped: StopPort["stopped"];
  /** The Worker of a channel; undefined: none is bound. */
  readonly service: (channel: string) => ChannelService | undefined;
  readonly names: () => readonly string[];
  readonly scrub: (text: string) => string;
  /** Sets the object's alarm again. Call it when a deadline may have become earlier. */
  readonly arm: () => void;
}
const NAME = /^[a-z][a-z0-9_-]{0,63}$/;

export class ChannelHub {
  readonly #ports: HubPorts;
  readonly #intake: Intake;
  readonly deliverer: Deliverer;
  /** Messages that the agent sends on its own. */
  readonly outgoing: Outgoing;
  readonly pairing: Pairing;
  readonly retention: Retention;
  readonly watch: ChannelWatch;

  constructor(ports: HubPorts) {
    this.#ports = ports;
    const { channels, pairings, deliveries, arm, background } = ports;
    this.retention = new Retention({ tables: [channels, pairings, deliveries.expiring(ports.stopped)], arm, background });
    this.watch = new ChannelWatch({
      ...ports,
      accounts: () => this.accounts(),
      stateOf: (ref) => ports.channels.stateOf(ref),
      timeZone: () => ports.config.effective().userTimezone,
      status: (ref, state) => this.status(ref, state),
    });
    const ensureArmed = (): void => this.retention.ensureArmed();
    this.deliverer = new Deliverer({ ...ports, ensureArmed });
    this.#intake = new Intake({ ...ports, ensureArmed, send: (route, message) => this.deliverer.send(route, message) });
    this.outgoing = new Outgoing({
      ...ports,
      handOver: (ref, message, byAgent) => this.deliverer.handOver(ref, message, byAgent),
      roleOf: (ref, inbound) => this.#intake.roleOf(ref, inbound),
      conversationOf: (ref, inbound) => this.#intake.conversationOf(ref, inbound),
      withdraw: (id) => ports.deliveries.arrived(id),
      isDown: (ref) => this.isDown(ref),
      failed: (what, error) => ports.log.warn("best_effort_failed", { what, error }),
    });
    this.pairing = new Pairing({
      ...ports,
      handOn: (ref, inbound) => this.#intake.handOn(ref, inbound),
      send: (route, message) => this.deliverer.send(route, message),
    });
  }

  // ---------------------------------------------------------------- from channels

  async inbound(account: ChannelRef, inbound: ChannelInbound): Promise<ChannelInboundOutcome> {
    return this.#intake.inbound(checkedRef(account), inbound);
  }
  /** Where a file of a message is stored; undefined: it is not wanted. */
  async mediaKey(
    account: ChannelRef,
    inbound: ChannelInbound,
    file: { readonly mimeType: string; readonly index: number },
  ): Promise<string | undefined> {
    return this.#intake.mediaKey(checkedRef(account), inbound, file);
  }
  /** The same for a file that is stored now. It waits for its message, and this channel may have enough of these. */
  async fileKey(
    account: ChannelRef,
    inbound: ChannelInbound,
    file: { readonly mimeType: string; readonly index: number; readonly sizeBytes: number },
  ): Promise<FilePlace> {
    const ref = checkedRef(account);
    const { files, now, arm, background, log } = this.#ports;
    const r2Key = (await this.#intake.isSettled(ref, inbound)) ? undefined : await this.#intake.mediaKey(ref, inbound, file);
    if (r2Key === undefined) return { kind: "unwanted" };
    if (!files.add({ channel: ref.channel, r2Key, sizeBytes: file.sizeBytes }, now())) {
      log.warn("channel_files_full", { channel: ref.channel });
      return { kind: "full" };
    }
    background("arm", Promise.resolve().then(arm));
    return { kind: "place", r2Key };
  }
  /** Deletes some files that no message has taken in time. */
  async sweepFiles(): Promise<void> {
    const { files, bucket, now, arm } = this.#ports;
    const at = now();
    const keys = files.expired(at);
    if (keys.length > 0) await bucket.delete([...keys]);
    files.forget(keys, at);
    arm();
  }
  /** The file belongs to a delivery that was given to this account. */
  async mayRead(account: ChannelRef, deliveryId: string, r2Key: string): Promise<boolean> {
    const { deliveries, sessions, audit } = this.#ports;
    const { channel, accountId } = checkedRef(account);
    const files = deliveries.filesOf(deliveryId, channel, accountId);
    // A delivery of an earlier version has no list: its files are of the conversation that it came from.
    const session = files === "unknown" ? sessions.keyOf(refOfDelivery(deliveryId) ?? "") : undefined;
    if (files === "unknown" ? session !== undefined && isOwnKey(session, r2Key) : files?.includes(r2Key) === true) return true;
    audit.append({ actor: `channel:${channel}`, action: "channel.file", target: r2Key, decision: "denied" });
    return false;
  }
  /** A Worker claimed to be a channel that its binding does not name. */
  async refused(channel: string | undefined, claimed: string): Promise<void> {
    this.#ports.log.warn("channel_refused", { channel: channel ?? "" });
    this.#ports.audit.append({
      actor: channel === undefined ? "channel" : `channel:${channel}`,
      action: "channel.claim",
      target: claimed,
      decision: "denied",
    });
  }
  status(account: ChannelRef, state: ChannelAccount): void {
    const { arm, channels, now, config, notify } = this.#ports;
    const { channel, accountId } = checkedRef(account);
    const { gap } = state;
    const before = channels.stateOf({ channel, accountId });
    if (gap !== undefined && gap.until !== before?.gap?.until)
      notify.tell({
        kind: "channel",
        key: `gap:${channel}/${accountId}/${gap.until}`,
        cause: `gap:${channel}/${accountId}`,
        text: gapText({ channel, gap, timeZone: config.effective().userTimezone }),
      });
    channels.setState(channel, { ...state, accountId }, now());
    this.watch.reported({ channel, accountId }, before, state);
    arm();
  }
  /** How a delivery ended. */
  delivered(account: ChannelRef, report: DeliveryReport): void {
    this.deliverer.delivered(checkedRef(account), report);
  }

  // ---------------------------------------------------------------- for the owner

  /** The owner lets the chat of this channel's account with itself be theirs, or not any more. */
  declareSelfChat(channel: string, isOwners: boolean): Result<unknown> {
    const { config } = this.#ports;
    const before = config.effective().channels?.[channel]?.selfChat === true;
    return before === isOwners ? { ok: true, value: undefined } : config.set(`channels.${channel}.selfChat`, isOwners);
  }
  service(channel: string): ChannelService | undefined {
    return this.#ports.service(channel);
  }
  names(): readonly string[] {
    return this.#ports.names();
  }
  accounts(): ReturnType<Channels["accounts"]> {
    return this.#ports.channels.accounts();
  }
  /** The account was started, and has said that it is not connected. */
  isDown(ref: ChannelRef): boolean {
    const state = this.#ports.channels.stateOf(ref);
    return state !== undefined && !state.connected;
  }
  waiting(): ReturnType<Pairings["pending"]> {
    return this.#ports.pairings.pending();
  }
  approved(): ReturnType<Pairings["approved"]> {
    return this.#ports.pairings.approved();
  }
}

function checkedRef({ channel, accountId }: ChannelRef): ChannelRef {
  const name = channel.toLowerCase();
  // `cli` is the owner's own terminal: no channel may speak for it.
  if (!NAME.test(name) || name === "cli") throw new TypeError("there can be no such channel");
  return { channel: name, accountId: normaliseId(accountId, "default") };
}
