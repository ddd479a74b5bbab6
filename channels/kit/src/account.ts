/**
 * One account of a channel: inbox, outbox, typing and the platform, wired together over one alarm. Knows nothing of Durable Objects or
 * of any platform; what the runtime gives comes in through `AccountHost`. Every public call ends in what it says or in a plain error.
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
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { type Database, migrate } from "./database.ts";
import { FileRefused, Inbox } from "./inbox.ts";
import { dueAt, errorText, KIT, peerName, retryWait, within } from "./limits.ts";
import { nonceOf, Outbox, OutboxFull } from "./outbox.ts";
import type { InboundFile, Platform, PlatformHost } from "./platform.ts";
import { readBody } from "./read-body.ts";

type Fields = Readonly<Record<string, string | number | boolean | undefined>>;
/** The gateway, as an account sees it. Every call may throw: then nobody knows what came of it. */
export interface GatewayCalls {
  inbound(inbound: ChannelInbound): Promise<ChannelInboundOutcome>;
  media(
    inbound: ChannelInbound,
    file: { readonly mimeType: string; readonly filename?: string; readonly index: number },
  ): Promise<string | undefined>;
  status(state: ChannelAccount): Promise<void>;
  delivered(report: DeliveryReport): Promise<void>;
}
export interface AccountHost {
  readonly accountId: string;
  readonly db: Database;
  readonly bucket: R2Bucket;
  readonly gateway: GatewayCalls;
  readonly now: () => number;
  readonly random: () => number;
  readonly after: (ms: number, work: () => void) => () => void;
  /** The account is called by `alarm` at this time. */
  readonly setAlarm: (at: number) => void;
  /** Keeps the object alive until the work ends. */
  readonly keep: (work: Promise<void>) => void;
  readonly log: (event: string, fields?: Fields) => void;
  readonly platform: (host: PlatformHost, config: Readonly<Record<string, unknown>>) => Platform;
}
/** The gateway has to be told; `change` counts what there is to tell. */
interface Due {
  readonly attempts: number;
  readonly at: number;
  readonly change: number;
}
const STARTED = "account.started";
const CONFIG = "account.config";
const STATUS_DUE = "account.status";

export class Account {
  readonly #host: AccountHost;
  readonly #inbox: Inbox;
  readonly #outbox: Outbox;
  #platform: Platform | undefined;
  #connecting: Promise<void> | undefined;
  #alarmAt: number | undefined;
  /** A connection never outlives this object's life, so neither does this. */
  #connectedSince: number | undefined;
  #telling = false;
  /** This life has looked after its connection once; from then on the alarm does. */
  #hasBegun = false;
  readonly #typing = new Map<string, { readonly until: number; readonly stop: () => void }>();

  constructor(host: AccountHost) {
    this.#host = host;
    const { db, now, random, after, log, gateway } = host;
    migrate(db);
    this.#inbox = new Inbox({
      db,
      now,
      random,
      after,
      log,
      handOver: (inbound) => gateway.inbound(inbound),
      slot: (inbound, { mimeType, filename, index }) =>
        gateway.media(inbound, { mimeType, index, ...(filename === undefined ? {} : { filename }) }),
      store: (file, r2Key) => this.#store(file, r2Key),
      settled: (_inbound, { replies = [] }) => {
        for (const reply of replies) this.#outbox.take(reply);
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
      platform: () => this.platform,
      isOpen: () => this.#started() && this.platform.isConnected(),
      report: (report) => gateway.delivered(report),
    });
    this.#outbox.recover();
  }

  /** Made at first use, so that an account that nobody has started costs nothing. */
  get platform(): Platform {
    this.#platform ??= this.#host.platform(this.#platformHost(), this.#kv<Record<string, unknown>>(CONFIG) ?? {});
    return this.#platform;
  }

  // ---------------------------------------------------------------- what the gateway asks

  describe(): ChannelCapabilities {
    return this.platform.capabilities;
  }
  /** What `config` does not name stays as it was, so that a start after a stop needs no secrets anew; null takes a setting away. */
  async start(config: Readonly<Record<string, unknown>>): Promise<ChannelAccount> {
    const { db } = this.#host;
    const before = this.#kv<Record<string, unknown>>(CONFIG) ?? {};
    const after = Object.fromEntries(Object.entries({ ...before, ...config }).filter(([, value]) => value !== null));
    db.transaction(() => {
      this.#put(STARTED, true);
      this.#put(CONFIG, after);
    });
    if (this.#platform && JSON.stringify(before) !== JSON.stringify(after)) await this.#replace(this.#platform);
    await this.#connect(true);
    this.#wake();
    return this.status();
  }
  async stop(): Promise<ChannelAccount> {
    this.#put(STARTED, false);
    for (const { stop } of this.#typing.values()) stop();
    this.#typing.clear();
    await this.platform.disconnect();
    return this.status();
  }
  status(): ChannelAccount {
    const platform = this.platform;
    // Whoever looks after a restart need not wait for the alarm.
    if (!this.#hasBegun && this.#started()) this.#wake();
    const late = this.#inbox.late();
    const flooded = this.#inbox.flooded();
    const reported = platform.status();
    // What has no connection to close is as good as connected all the time.
    const state = { ...reported, connected: reported.connected && this.#started() };
    const connectedSince = this.#since(state.connected);
    return {
      accountId: this.#host.accountId,
      ...state,
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
      this.#stopTyping(message.peer);
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
  /** Kept up by itself until it is ended, or for two minutes. */
  typing(peer: Peer, active: boolean): void {
    if (!active) return this.#stopTyping(peer);
    const name = peerName(peer);
    const until = this.#host.now() + KIT.typingMaxMs;
    const running = this.#typing.get(name);
    if (running) return void this.#typing.set(name, { ...running, until });
    this.#typing.set(name, { until, stop: () => {} });
    this.#type(peer, name);
  }
  async login(options: { readonly force: boolean; readonly phone?: string }): Promise<ChannelLogin> {
    const { platform } = this;
    if (!platform.login)
      return {
        state: platform.status().authenticated ? "connected" : "failed",
        message: "This channel has no login: give it a token in the configuration, and start it.",
      };
    this.#put(STARTED, true);
    const login = await platform.login(options);
    this.#wake();
    return login;
  }
  async logout(): Promise<ChannelAccount> {
    const { platform } = this;
    await platform.logout?.();
    const state = await this.stop();
    if (platform.logout) return state;
    // What such a platform is let in with is in its configuration.
    this.#put(CONFIG, {});
    await this.#replace(platform);
    return this.status();
  }

  // ---------------------------------------------------------------- the platform

  #platformHost(): PlatformHost {
    const { accountId, now, db, after, log, bucket } = this.#host;
    return {
      accountId,
      now,
      after,
      log,
      bucket,
      kv: {
        get: (key) => this.#kv(`p.${key}`),
        put: (key, value) => this.#put(`p.${key}`, value),
        delete: (key) => void db.query("DELETE FROM kv WHERE name = ?", `p.${key}`),
        keys: (prefix) =>
          db
            .query<{ name: string }>(
              "SELECT name FROM kv WHERE name >= ? AND name < ? ORDER BY name",
              `p.${prefix}`,
              `p.${prefix}\u{10ffff}`,
            )
            .map(({ name }) => name.slice(2)),
      },
      transaction: (work) => db.transaction(work),
      take: (item) => {
        const taken = this.#inbox.take(item);
        if (taken) this.#wake();
        return taken;
      },
      changed: () => {
        if (this.#platform) this.#since(this.#platform.status().connected);
        this.#put(STATUS_DUE, { attempts: 0, at: now(), change: (this.#kv<Due>(STATUS_DUE)?.change ?? 0) + 1 } satisfies Due);
        this.#wake();
      },
    };
  }
  /** In the place of a connecting: an alarm meanwhile waits for it, and can't bring the old platform back beside the new one. */
  async #replace(old: Platform): Promise<void> {
    await this.#connecting;
    this.#connecting = old
      .disconnect()
      .catch((error: unknown) => this.#host.log("disconnect_failed", { error: errorText(error) }))
      .finally(() => {
        this.#platform = undefined;
        this.#connecting = undefined;
      });
    await this.#connecting;
  }
  async #connect(asked = false): Promise<void> {
    this.#hasBegun = true;
    if (!this.#started()) return;
    this.#connecting ??= this.platform
      .ensureConnected(asked)
      .catch((error: unknown) => this.#host.log("connect_failed", { error: errorText(error) }))
      .finally(() => {
        this.#connecting = undefined;
      });
    await this.#connecting;
  }
  async #store(file: InboundFile, r2Key: string): Promise<number> {
    const { platform } = this;
    if (!platform.fetchFile) throw new FileRefused("this channel can't fetch files");
    const tooLarge = new FileRefused(`it has more than ${LIMITS.mediaBytes} bytes`);
    if ((file.sizeBytes ?? 0) > LIMITS.mediaBytes) throw tooLarge;
    const { body, sizeBytes } = await platform.fetchFile(file);
    const announced = (sizeBytes ?? 0) <= LIMITS.mediaBytes;
    const bytes = announced ? await readBody(body, LIMITS.mediaBytes) : await body.cancel();
    if (!bytes) throw tooLarge;
    await this.#host.bucket.put(r2Key, bytes, {
      httpMetadata: { contentType: file.mimeType },
      customMetadata: {
        originalFilename: (file.filename ?? "").slice(0, 256),
        uploadedAt: String(this.#host.now()),
        sessionKey: sessionKeyOf(r2Key),
      },
    });
    return bytes.length;
  }
  #handedOver(inbound: ChannelInbound, { reaction }: ChannelInboundOutcome, receipt: unknown): void {
    const { platform } = this;
    this.#quietly("acknowledge", async () => platform.acknowledged?.([{ peer: inbound.peer, receipt }]));
    if (reaction !== undefined)
      this.#quietly("react", async () => platform.react?.(inbound.peer, inbound.message.id, inbound.sender?.id, reaction));
    this.#wake();
  }
  /** Courtesies: their failure is noted and changes nothing. */
  #quietly(what: string, work: () => Promise<void>): void {
    this.#host.keep(work().catch((error: unknown) => this.#host.log(`${what}_failed`, { error: errorText(error) })));
  }
  #type(peer: Peer, name: string): void {
    const entry = this.#typing.get(name);
    if (!entry) return;
    if (this.#host.now() >= entry.until) return this.#stopTyping(peer);
    if (this.platform.isConnected()) this.#quietly("typing", async () => this.platform.typing?.(peer, true));
    const stop = this.#host.after(KIT.typingEveryMs, () => this.#type(peer, name));
    this.#typing.set(name, { until: entry.until, stop });
  }
  #stopTyping(peer: Peer): void {
    const name = peerName(peer);
    const entry = this.#typing.get(name);
    if (!entry) return;
    entry.stop();
    this.#typing.delete(name);
    if (this.platform.isConnected()) this.#quietly("typing", async () => this.platform.typing?.(peer, false));
  }

  // ---------------------------------------------------------------- time

  /** Called by the runtime. Never throws: the next alarm is set before anything is waited for. */
  async alarm(): Promise<void> {
    this.#alarmAt = undefined;
    this.#arm();
    try {
      // What hangs here must not keep the rest from its turn.
      await within(KIT.leaseMs, "connecting", this.#host.after, this.#connect());
      this.#forget();
    } catch (error) {
      this.#host.log("alarm_part_failed", { error: errorText(error) });
    }
    // Not waited for: there is one alarm at a time, and the next one must not wait for a call that has no answer.
    this.#wake();
  }
  /** Something is new: begin at once, and let the alarm come for what is left. */
  #wake(): void {
    this.#arm();
    this.#host.keep(this.#work());
  }
  async #work(): Promise<void> {
    try {
      await Promise.all([this.#hasBegun ? undefined : this.#connect(), this.#tell(), this.#inbox.pump(), this.#outbox.pump()]);
      // What came in may have left something to send.
      await this.#outbox.pump();
    } catch (error) {
      this.#host.log("work_failed", { error: errorText(error) });
    }
    this.#arm();
  }
  #arm(): void {
    const now = this.#host.now();
    const times = [this.#inbox.nextAt(), this.#outboxNext(), this.#tellNext()].filter((at) => at !== undefined);
    // A socket does not keep the object alive, only events do. Where there is none to keep, nobody pays for it.
    if (this.#started() && this.#platform?.isAtRest?.() !== true) times.push(now + KIT.residentMs);
    if (times.length === 0) return;
    const at = Math.max(now + 20, Math.min(...times));
    if (this.#alarmAt !== undefined && this.#alarmAt <= at && this.#alarmAt > now) return;
    this.#alarmAt = at;
    this.#host.setAlarm(at);
  }
  #outboxNext(): number | undefined {
    // The platform is not made only to look at an empty queue.
    return this.#platform || this.#outbox.waiting() > 0 ? this.#outbox.nextAt() : undefined;
  }
  #tellNext(): number | undefined {
    const due = this.#kv<Due>(STATUS_DUE)?.at;
    const now = this.#host.now();
    if (due === undefined) return undefined;
    return this.#telling ? Math.max(due, now + KIT.leaseMs) : dueAt(due, now);
  }
  /** The gateway hears of the present state until it has heard. */
  async #tell(): Promise<void> {
    const due = this.#kv<Due>(STATUS_DUE);
    if (!due || dueAt(due.at, this.#host.now()) > this.#host.now() || this.#telling) return;
    this.#telling = true;
    try {
      await within(KIT.handOverMs, "telling the state", this.#host.after, this.#host.gateway.status(this.status()));
      // A change meanwhile is told anew.
      if (this.#kv<Due>(STATUS_DUE)?.change === due.change) this.#host.db.query("DELETE FROM kv WHERE name = ?", STATUS_DUE);
    } catch {
      const attempts = due.attempts + 1;
      this.#put(STATUS_DUE, {
        attempts,
        at: this.#host.now() + retryWait(attempts, this.#host.random()),
        change: due.change,
      } satisfies Due);
    } finally {
      this.#telling = false;
    }
  }
  #forget(): void {
    this.#inbox.forget();
    this.#outbox.forget();
  }

  // ---------------------------------------------------------------- small state

  #since(connected: boolean): number | undefined {
    if (connected) this.#connectedSince ??= this.#host.now();
    else this.#connectedSince = undefined;
    return this.#connectedSince;
  }

  #started(): boolean {
    return this.#kv<boolean>(STARTED) === true;
  }
  #kv<T>(name: string): T | undefined {
    const row = this.#host.db.query<{ value: string }>("SELECT value FROM kv WHERE name = ?", name)[0];
    return row && (JSON.parse(row.value) as T);
  }
  #put(name: string, value: unknown): void {
    this.#host.db.query(
      "INSERT INTO kv(name, value) VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
      name,
      JSON.stringify(value),
    );
  }
}

const lateNotice = (peer: Peer, count: number, key: string): OutboundMessage => ({
  // A key can be longer than a name may be.
  deliveryId: key.length <= 150 ? `late:${key}` : `late:${nonceOf(key)}`,
  kind: "notice",
  peer,
  text: `${count === 1 ? "A message" : `${count} messages`} reached me more than a day late. I have read ${count === 1 ? "it" : "them"}, but did not answer; write again if it still matters.`,
});
/** The second part of `media/{sessionKey}/{uuid}.{ext}`. */
const sessionKeyOf = (r2Key: string): string => r2Key.split("/")[1] ?? "";
