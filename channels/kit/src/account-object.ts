/**
 * The Durable Object of an account, named by the account's id. A shell without rules: it gives `Account` what the runtime has.
 * A channel's subclass only makes its platform.
 */
import { DurableObject } from "cloudflare:workers";
import type {
  ChannelAccount,
  ChannelCapabilities,
  ChannelInbound,
  ChannelInboundOutcome,
  ChannelLogin,
  ChannelSendResult,
  LiveText,
  OutboundMessage,
  Peer,
} from "../../../protocol/gen/types.ts";
import type { GatewayService } from "../../../protocol/gen/services.ts";
import type { GatewayFiles } from "../../../protocol/runtime/channel-files.ts";
import { checkChannelInboundOutcome, checkChannelMayDeliver, checkChannelMediaSlot } from "../../../protocol/gen/validators/checks.js";
import { readSealingKeys, SEAL_NONCE_BYTES } from "../../../protocol/runtime/sealing.ts";
import { explainText } from "../../../protocol/runtime/explain.ts";
import { afterTimeout } from "../../../protocol/runtime/within.ts";
import { Account, type GatewayCalls } from "./account.ts";
import { durableDatabase } from "./database.ts";
import { onAlarm } from "./alarm.ts";
import { logLine } from "./log.ts";
import type { Platform, PlatformHost } from "./platform.ts";

/** The bindings of every channel's Worker. */
export interface KitEnv {
  /** The gateway's entrypoint for channels. Its binding names the channel (`props`). */
  readonly GATEWAY: GatewayService & GatewayFiles;
  /** Keys of the stored secrets, as those of the gateway, and not the same. */
  readonly SEALING_KEYS?: string;
}

export abstract class AccountObject<E extends KitEnv> extends DurableObject<E> {
  /** The channel's name in session keys. */
  protected abstract readonly channel: string;
  protected abstract makePlatform(host: PlatformHost, config: Readonly<Record<string, unknown>>): Platform;
  #account: Account | undefined;

  get #own(): Account {
    this.#account ??= this.#make();
    return this.#account;
  }
  #make(): Account {
    const { ctx, env, channel } = this;
    const accountId = ctx.id.name ?? "default";
    const log = (event: string, fields = {}): void => logLine(`channel-${channel}`, event, { account: accountId, ...fields });
    return new Account({
      accountId,
      db: durableDatabase(ctx.storage),
      gateway: gatewayCalls(env.GATEWAY, channel, accountId),
      now: () => Date.now(),
      random: () => Math.random(),
      after: afterTimeout,
      setAlarm: (at) => ctx.waitUntil(ctx.storage.setAlarm(at)),
      keep: (work) => ctx.waitUntil(work),
      log,
      platform: (host, config) => this.makePlatform(host, config),
      sealing: { keys: readSealingKeys(env.SEALING_KEYS), nonce: () => crypto.getRandomValues(new Uint8Array(SEAL_NONCE_BYTES)) },
    });
  }

  describe(): ChannelCapabilities {
    return this.#own.describe();
  }
  start(config: Record<string, unknown>): Promise<ChannelAccount> {
    return this.#own.start(config);
  }
  stop(): Promise<ChannelAccount> {
    return this.#own.stop();
  }
  status(): ChannelAccount {
    return this.#own.status();
  }
  send(message: OutboundMessage): ChannelSendResult {
    return this.#own.send(message);
  }
  live(text: LiveText): void {
    this.#own.live(text);
  }
  recheck(): void {
    this.#own.recheck();
  }
  typing(peer: Peer, active: boolean): void {
    this.#own.typing(peer, active);
  }
  login(options: { force: boolean; phone?: string }): Promise<ChannelLogin> {
    return this.#own.login(options);
  }
  logout(): Promise<ChannelAccount> {
    return this.#own.logout();
  }
  override async alarm(): Promise<void> {
    const { storage } = this.ctx;
    await onAlarm(
      `channel-${this.channel}`,
      () => this.#own.alarm(),
      (at) => storage.setAlarm(at),
      () => Date.now(),
    );
  }
}

/** Validates the gateway's answers: an invalid answer is an error, and the call is retried. */
function gatewayCalls(gateway: KitEnv["GATEWAY"], channel: string, accountId: string): GatewayCalls {
  const account = { channel, accountId };
  return {
    async inbound(inbound: ChannelInbound): Promise<ChannelInboundOutcome> {
      const outcome: unknown = await gateway.inbound({ account, inbound });
      if (!checkChannelInboundOutcome(outcome))
        throw new Error(`the gateway's answer is not valid: ${explainText("ChannelInboundOutcome", outcome)}`);
      return outcome;
    },
    async media(inbound, file) {
      const slot: unknown = await gateway.media({ account, inbound, ...file });
      if (!checkChannelMediaSlot(slot)) throw new Error(`the gateway's answer is not valid: ${explainText("ChannelMediaSlot", slot)}`);
      return slot.r2Key;
    },
    async store(inbound, file, bytes) {
      const slot: unknown = await gateway.storeFile({ account, inbound, ...file }, bytes);
      if (!checkChannelMediaSlot(slot)) throw new Error(`the gateway's answer is not valid: ${explainText("ChannelMediaSlot", slot)}`);
      return slot.r2Key;
    },
    async read(file) {
      return gateway.readFile({ account, ...file });
    },
    async status(state) {
      await gateway.status({ account, state });
    },
    async delivered(report) {
      await gateway.delivered({ account, report });
    },
    async mayDeliver() {
      const answer: unknown = await gateway.mayDeliver({ account });
      if (!checkChannelMayDeliver(answer))
        throw new Error(`the gateway's answer is not valid: ${explainText("ChannelMayDeliver", answer)}`);
      return answer.may;
    },
  };
}
