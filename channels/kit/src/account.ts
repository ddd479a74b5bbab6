/**
 * One account of a channel: inbox, outbox, typing and the platform, wired together over one alarm. Knows nothing of Durable Objects or
 * of any platform; what the runtime gives comes in through `AccountHost`. Every public call does what it says or throws.
 */
import type {
  ChannelAccount,
  ChannelCapabilities,
  ChannelInbound,
  ChannelInboundOutcome,
  ChannelLogin,
  ChannelSendResult,
  DeliveryReport,
  LiveText,
  OutboundMessage,
  Peer,
} from "../../../protocol/gen/types.ts";
import type { OutboundBytes } from "../../../protocol/runtime/channel-files.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { type After, within } from "../../../protocol/runtime/within.ts";
import { type Database, migrate } from "./database.ts";
import { FileRefused, Inbox } from "./inbox.ts";
import { KeyValues, type KvSealing } from "./kv.ts";
import { errorText } from "./error-text.ts";
import { KIT } from "./limits.ts";
import { withinOrThrow } from "./waits.ts";
import { deliveryOf, nonceOf } from "./nonce.ts";
import { Outbox, OutboxFull } from "./outbox.ts";
import type { InboundFile, LogoutOutcome, Platform, PlatformHost } from "./platform.ts";
import { readBody } from "./read-body.ts";
import { StatusReport } from "./status-report.ts";
import { Typing } from "./typing.ts";

type Fields = Readonly<Record<string, string | number | boolean | undefined>>;
interface GatewayFile {
  readonly mimeType: string;
  readonly filename?: string;
  readonly index: number;
}
/** The gateway, as an account sees it. A call that throws has an unknown outcome. */
export interface GatewayCalls {
  inbound(inbound: ChannelInbound): Promise<ChannelInboundOutcome>;
  media(inbound: ChannelInbound, file: GatewayFile): Promise<string | undefined>;
  /** Stores a file under the key that `media` gave. Undefined: it is not wanted any more. */
  store(inbound: ChannelInbound, file: GatewayFile, bytes: Uint8Array): Promise<string | undefined>;
  /** Null: the file is no longer stored. */
  read(file: { readonly deliveryId: string; readonly r2Key: string; readonly maxBytes: number }): Promise<OutboundBytes | null>;
  status(state: ChannelAccount): Promise<void>;
  delivered(report: DeliveryReport): Promise<void>;
  /** Whether what agents wrote may leave now. */
  mayDeliver(): Promise<boolean>;
}
export interface AccountHost {
  readonly accountId: string;
  readonly db: Database;
  readonly gateway: GatewayCalls;
  readonly now: () => number;
  readonly random: () => number;
  readonly after: After;
  /** Calls `alarm` at this time (epoch ms). */
  readonly setAlarm: (at: number) => void;
  /** Keeps the object alive until the work ends. */
  readonly keep: (work: Promise<void>) => void;
  readonly log: (event: string, fields?: Fields) => void;
  readonly platform: (host: PlatformHost, config: Readonly<Record<string, unknown>>) => Platform;
  /** How settings and logins are sealed before they are stored. */
  readonly sealing: Pick<KvSealing, "keys" | "nonce">;
}
/** Thrown to the gateway, which shows it. */
const NO_KEY =
  "This channel has no key to encrypt its secrets with, so nothing was stored. On your own machine run `gsv down && gsv up`; on Cloudflare set the secret SEALING_KEYS of the channel's Worker: `openssl rand -hex 32 | npx wrangler secret put SEALING_KEYS`.";
const UNREADABLE =
  "The stored login of this account can't be opened, because the key that encrypted it is missing. Put the key back and restart, or log in again (`gsv channel login`), or start the channel with its token.";
/** A platform that was asked to connect. */
interface Attempt {
  readonly platform: Platform;
  /** Epoch ms. */
  readonly at: number;
}
const STARTED = "account.started";
const CONFIG = "account.config";

export class Account {
  readonly #host: AccountHost;
  readonly #kv: KeyValues;
  /** The account has secrets that cannot be opened: it connects to nothing until it is set up again. */
  #unreadable: boolean;
  readonly #inbox: Inbox;
  readonly #outbox: Outbox;
  readonly #typing: Typing;
  readonly #statusReport: StatusReport;
  #platform: Platform | undefined;
  #connecting: Promise<void> | undefined;
  /** Attempts that were given up and have not ended. */
  readonly #late = new Set<Attempt>();
  #alarmAt: number | undefined;
  /** After an unexpected error no new alarm is set before this time: the row that is due would set it off again at once. */
  #restUntil = 0;
  /** In memory only: a connection ends with this instance. */
  #connectedSince: number | undefined;
  /** This instance has connected once; from then on the alarm reconnects. */
  #hasBegun = false;

  constructor(host: AccountHost) {
    this.#host = host;
    const { db, now, random, after, log, gateway, accountId, sealing } = host;
    migrate(db);
    this.#kv = new KeyValues(db, { accountId, ...sealing });
    this.#unreadable = !this.#kv.sealStored();
    if (this.#unreadable) log("secrets_unreadable");
    this.#typing = new Typing({ now, after, show: (peer, active) => this.#showTyping(peer, active) });
    this.#statusReport = new StatusReport({
      kv: this.#kv,
      now,
      random,
      after,
      status: () => this.status(),
      send: (state) => gateway.status(state),
    });
    this.#inbox = new Inbox({
      db,
      now,
      random,
      after,
      log,
      failed: (what, error) => this.#failed(what, error),
      handOver: (inbound) => gateway.inbound(inbound),
      slot: (inbound, file) => gateway.media(inbound, gatewayFile(file)),
      store: (inbound, file) => this.#store(inbound, file),
      settled: ({ peer }, { replies = [] }, receipt) => {
        for (const reply of replies) this.#outbox.take(reply);
        if (receipt !== undefined) this.platform.settled?.({ peer, receipt });
      },
      tooLate: (peer, count, key) => void this.#outbox.take(lateNotice(peer, count, key)),
      done: (inbound, outcome, receipt) => this.#handedOver(inbound, outcome, receipt),
    });
    this.#outbox = new Outbox({
      db,
      now,
      random,
      after,
      log,
      failed: (what, error) => this.#failed(what, error),
      platform: () => this.platform,
      isOpen: () => this.#started() && this.platform.isConnected(),
      report: (report) => gateway.delivered(report),
      mayDeliver: () => gateway.mayDeliver(),
      kv: this.#kv,
    });
    this.#outbox.recover();
  }

  /** Made at first use, so that an account that was never started costs nothing. */
  get platform(): Platform {
    this.#platform ??= this.#host.platform(this.#platformHost(), this.#kv.get<Record<string, unknown>>(CONFIG) ?? {});
    return this.#platform;
  }

  // ---------------------------------------------------------------- what the gateway asks

  describe(): ChannelCapabilities {
    return this.platform.capabilities;
  }
  /** Merges `config` into the stored settings, so that a restart needs no secrets again; null removes a setting. */
  async start(config: Readonly<Record<string, unknown>>): Promise<ChannelAccount> {
    const { db } = this.#host;
    if (Object.values(config).some((value) => value !== null)) this.#setUp();
    const before = this.#kv.get<Record<string, unknown>>(CONFIG) ?? {};
    const after = Object.fromEntries(Object.entries({ ...before, ...config }).filter(([, value]) => value !== null));
    db.transaction(() => {
      this.#kv.put(STARTED, true);
      this.#kv.replace(CONFIG, after);
    });
    if (this.#platform && JSON.stringify(before) !== JSON.stringify(after)) await this.#replace(this.#platform);
    await this.#connect(true);
    this.#wake();
    return this.status();
  }
  /** The account is stopped also when the platform fails or does not answer. */
  async stop(): Promise<ChannelAccount> {
    this.#kv.put(STARTED, false);
    this.#typing.endAll();
    await this.#disconnect(this.platform);
    return this.status();
  }
  status(): ChannelAccount {
    const platform = this.platform;
    // The first status after a restart connects at once instead of waiting for the alarm.
    if (!this.#hasBegun && this.#started()) this.#wake();
    const late = this.#inbox.late();
    const flooded = this.#inbox.flooded();
    const reported = platform.status();
    // A platform without a connection counts as connected while the account is started.
    const state = { ...reported, connected: reported.connected && this.#started() };
    const connectedSince = this.#since(state.connected);
    return {
      accountId: this.#host.accountId,
      ...state,
      ...(this.#unreadable ? { error: UNREADABLE } : {}),
      ...(connectedSince === undefined ? {} : { connectedSince }),
      ...(late > 0 ? { tooLate: late } : {}),
      extra: { ...state.extra, started: this.#started(), ...(flooded > 0 ? { notTakenInFloods: flooded } : {}) },
      inboxWaiting: this.#inbox.waiting(),
      outboxWaiting: this.#outbox.waiting(),
      undelivered: this.#outbox.undelivered(),
      capabilities: platform.capabilities,
    };
  }
  send(message: OutboundMessage): ChannelSendResult {
    try {
      const taken = this.#outbox.take(message);
      this.#typing.end(message.peer);
      this.#wake();
      return taken ? { status: "queued" } : { status: "queued", duplicate: true };
    } catch (error) {
      if (error instanceof OutboxFull) return { status: "refused", error: error.message, retryable: true };
      throw error;
    }
  }
  live(text: LiveText): void {
    if (this.#started()) this.#outbox.show(text);
  }
  /** Everything was stopped, or goes on: earlier send permits are no longer valid. */
  recheck(): void {
    this.#outbox.recheck();
    this.#wake();
  }
  /** Repeats the indicator until it is ended, at most for two minutes. */
  typing(peer: Peer, active: boolean): void {
    if (active) this.#typing.begin(peer);
    else this.#typing.end(peer);
  }
  async login(options: { readonly force: boolean; readonly phone?: string }): Promise<ChannelLogin> {
    const { platform } = this;
    if (!platform.login)
      return {
        state: platform.status().authenticated ? "connected" : "failed",
        message: "This channel has no login. Set its token in the configuration, then start it.",
      };
    if (options.force || !platform.status().authenticated) this.#setUp();
    this.#kv.put(STARTED, true);
    const login = await withinOrThrow(KIT.loginMs, "logging in", this.#host.after, platform.login(options));
    this.#wake();
    return login;
  }
  async logout(): Promise<ChannelAccount> {
    const { platform } = this;
    this.#forgetUnreadable();
    if (platform.logout) return this.#logOut(platform.logout());
    // Such a platform authenticates with a setting, which goes first: the platform may not answer.
    this.#host.db.transaction(() => {
      this.#kv.put(STARTED, false);
      this.#kv.replace(CONFIG, {});
    });
    this.#typing.endAll();
    await this.#replace(platform);
    return this.status();
  }

  /** The account stops also when the platform does not answer, which is an outcome, or fails, which is thrown. */
  async #logOut(work: Promise<LogoutOutcome>): Promise<ChannelAccount> {
    const outcome = await within(this.#host.after, KIT.logoutMs, work, () => "unconfirmed" as const).catch((error: unknown) => ({ error }));
    const state = await this.stop();
    if (typeof outcome === "object") throw outcome.error;
    return outcome === "confirmed" ? state : { ...state, logoutUnconfirmed: true };
  }

  // ---------------------------------------------------------------- the platform

  /** Before new secrets are stored. Throws without a key. What cannot be opened makes room for them. */
  #setUp(): void {
    if (!this.#host.sealing.keys.ok) throw new Error(NO_KEY);
    this.#forgetUnreadable();
  }
  #forgetUnreadable(): void {
    if (!this.#unreadable) return;
    this.#kv.dropUnreadable();
    this.#unreadable = false;
  }

  #platformHost(): PlatformHost {
    const { accountId, now, db, after, log, gateway } = this.#host;
    return {
      accountId,
      now,
      after,
      log,
      readFile: async ({ partId, file }, maxBytes) =>
        file === undefined ? null : gateway.read({ deliveryId: deliveryOf(partId), r2Key: file.r2Key, maxBytes }),
      kv: {
        get: (key) => this.#kv.get(`p.${key}`),
        put: (key, value) => this.#kv.put(`p.${key}`, value),
        delete: (key) => this.#kv.delete(`p.${key}`),
        keys: (prefix) => this.#kv.names(`p.${prefix}`).map((name) => name.slice(2)),
      },
      transaction: (work) => db.transaction(work),
      take: (item) => {
        const taken = this.#inbox.take(item);
        // Also for a duplicate: the work that its first copy began may have failed.
        this.#wake();
        return taken;
      },
      changed: () => {
        if (this.#platform) this.#since(this.#platform.status().connected);
        try {
          this.#statusReport.changed();
        } finally {
          this.#wake();
        }
      },
    };
  }
  /** Occupies `#connecting`, so that an alarm meanwhile waits and cannot reconnect the old platform beside the new one. */
  async #replace(old: Platform): Promise<void> {
    // An alarm may have begun another attempt in between.
    while (this.#connecting !== undefined) await this.#connecting;
    this.#connecting = this.#disconnect(old).finally(() => {
      this.#platform = undefined;
      this.#connecting = undefined;
    });
    await this.#connecting;
  }
  async #connect(asked = false): Promise<void> {
    this.#hasBegun = true;
    if (!this.#started() || this.#unreadable) return;
    if (this.#connecting === undefined && !asked && this.#hangs()) return;
    // Bounded: after an attempt that never ends, the next alarm asks the platform again.
    this.#connecting ??= this.#attempt(asked)
      .catch((error: unknown) => this.#host.log("connect_failed", { error: errorText(error) }))
      .finally(() => {
        this.#connecting = undefined;
      });
    await this.#connecting;
  }
  async #attempt(asked: boolean): Promise<void> {
    const { platform } = this;
    const attempt = { platform, at: this.#host.now() };
    let isOpen = true;
    const ended = (): void => {
      isOpen = false;
      this.#late.delete(attempt);
      this.#bestEffort("disconnect", () => this.#closeUnwanted(platform));
    };
    const work = platform.ensureConnected(asked);
    void work.then(ended, ended);
    try {
      await withinOrThrow(KIT.connectMs, "connecting", this.#host.after, work);
    } catch (error) {
      if (isOpen) this.#late.add(attempt);
      throw error;
    }
  }
  /** The account was stopped or has another platform since the attempt began: what it opened would stay open. */
  async #closeUnwanted(platform: Platform): Promise<void> {
    if (platform !== this.#platform || !this.#started()) await this.#disconnect(platform);
  }
  /** Never throws. A platform that fails or does not answer is in the log. */
  async #disconnect(platform: Platform): Promise<void> {
    try {
      await withinOrThrow(KIT.disconnectMs, "disconnecting", this.#host.after, platform.disconnect());
    } catch (error) {
      this.#host.log("disconnect_failed", { error: errorText(error) });
    }
  }
  /** Calls to a platform that does not answer would pile up: with each that is open the next one waits twice as long. */
  #hangs(): boolean {
    const begun = [...this.#late].flatMap(({ platform, at }) => (platform === this.#platform ? [at] : []));
    if (begun.length < 2) return false;
    const age = this.#host.now() - Math.max(...begun);
    // The clock may have been set back.
    return age >= 0 && age < Math.min(KIT.lateMinMs * 2 ** (begun.length - 1), KIT.lateMaxMs);
  }
  async #store(inbound: ChannelInbound, file: InboundFile): Promise<number> {
    const { platform } = this;
    if (!platform.fetchFile) throw new FileRefused("this channel cannot fetch files");
    const tooLarge = new FileRefused(`it is larger than ${LIMITS.mediaBytes} bytes`);
    if ((file.sizeBytes ?? 0) > LIMITS.mediaBytes) throw tooLarge;
    const { body, sizeBytes } = await platform.fetchFile(file);
    const announced = (sizeBytes ?? 0) <= LIMITS.mediaBytes;
    const bytes = announced ? await readBody(body, LIMITS.mediaBytes) : await body.cancel();
    if (!bytes) throw tooLarge;
    if ((await this.#host.gateway.store(inbound, gatewayFile(file), bytes)) === undefined)
      throw new FileRefused("the gateway does not want it any more");
    return bytes.length;
  }
  #handedOver(inbound: ChannelInbound, { reaction }: ChannelInboundOutcome, receipt: unknown): void {
    const { platform } = this;
    this.#bestEffort("acknowledge", async () => platform.acknowledged?.([{ peer: inbound.peer, receipt }]));
    if (reaction !== undefined)
      this.#bestEffort("react", async () => platform.react?.(inbound.peer, inbound.message.id, inbound.sender?.id, reaction));
    this.#wake();
  }
  /** Best effort: a failure is logged and changes nothing. */
  #bestEffort(what: string, work: () => Promise<void>): void {
    this.#host.keep(work().catch((error: unknown) => this.#host.log(`${what}_failed`, { error: errorText(error) })));
  }
  #showTyping(peer: Peer, active: boolean): void {
    if (this.platform.isConnected()) this.#bestEffort("typing", async () => this.platform.typing?.(peer, active));
  }

  // ---------------------------------------------------------------- time

  /** Called by the runtime. Never throws: the next alarm is set before the first await. */
  async alarm(): Promise<void> {
    this.#alarmAt = undefined;
    this.#arm();
    try {
      await this.#connect();
      this.#prune();
    } catch (error) {
      this.#host.log("alarm_part_failed", { error: errorText(error) });
    }
    // Not awaited: alarms run one at a time, and the next one must not wait for a call that hangs.
    this.#wake();
  }
  /** Starts work at once; the alarm is the backstop for what is left. */
  #wake(): void {
    this.#arm();
    this.#host.keep(this.#work());
  }
  async #work(): Promise<void> {
    try {
      await Promise.all([this.#hasBegun ? undefined : this.#connect(), this.#statusReport.send(), this.#inbox.pump(), this.#outbox.pump()]);
      // An inbound message may have queued a reply.
      await this.#outbox.pump();
    } catch (error) {
      this.#failed("work", error);
    }
    this.#arm();
  }
  #failed(what: string, error: unknown): void {
    this.#host.log(`${what}_failed`, { error: errorText(error) });
    const now = this.#host.now();
    // A further error does not prolong a rest, or work that goes on would put the alarm off without end. The clock may have been set back.
    if (this.#restUntil <= now || this.#restUntil > now + KIT.restMs) this.#restUntil = now + KIT.restMs;
  }
  /** Never throws: what was stored before is done, and its caller must not hear otherwise. */
  #arm(): void {
    const now = this.#host.now();
    const due = this.#nextAt(now);
    if (due === undefined) return;
    // The clock may have been set back.
    const rest = Math.min(this.#restUntil, now + KIT.restMs);
    const at = Math.max(now + 20, rest, due);
    // An alarm during a rest was set before the error: it would only fail again.
    if (this.#alarmAt !== undefined && this.#alarmAt <= at && this.#alarmAt > now && this.#alarmAt >= rest) return;
    this.#alarmAt = at;
    this.#host.setAlarm(at);
  }
  /** Epoch ms of the next thing to do. When that cannot be read, there may be something to do after a rest. */
  #nextAt(now: number): number | undefined {
    try {
      const times = [this.#inbox.nextAt(), this.#outbox.nextAt(), this.#statusReport.nextAt()].filter((at) => at !== undefined);
      // A socket does not keep the object alive, only events do. Without a connection to keep, idle costs nothing.
      if (this.#started() && this.#platform?.isAtRest?.() !== true) times.push(now + KIT.residentMs);
      return times.length === 0 ? undefined : Math.min(...times);
    } catch (error) {
      this.#failed("arm", error);
      return this.#restUntil;
    }
  }
  #prune(): void {
    this.#inbox.prune();
    this.#outbox.prune();
  }

  // ---------------------------------------------------------------- small state

  #since(connected: boolean): number | undefined {
    if (connected) this.#connectedSince ??= this.#host.now();
    else this.#connectedSince = undefined;
    return this.#connectedSince;
  }

  #started(): boolean {
    return this.#kv.get<boolean>(STARTED) === true;
  }
}

const lateNotice = (peer: Peer, count: number, key: string): OutboundMessage => ({
  // A key may exceed the limit of a delivery id.
  deliveryId: key.length <= 150 ? `late:${key}` : `late:${nonceOf(key)}`,
  kind: "notice",
  peer,
  text: `${count === 1 ? "A message" : `${count} messages`} reached me more than a day late. I have read ${count === 1 ? "it" : "them"}, but did not answer; write again if it still matters.`,
});
const gatewayFile = ({ mimeType, filename, index }: InboundFile): GatewayFile => ({
  mimeType,
  index,
  ...(filename === undefined ? {} : { filename }),
});
