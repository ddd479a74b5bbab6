/**
 * Drives the connection to Discord's gateway: @discordjs/ws speaks the protocol (hello, heartbeats, identify, resume, zombies), and the
 * machine in connection.ts decides what follows a close. The position in Discord's stream is stored in the same transaction as the
 * messages before it (promises W25), so RESUME replays everything that was not stored.
 */
import type { REST } from "@discordjs/rest";
import { type SessionInfo, WebSocketManager, WebSocketShardEvents } from "@discordjs/ws";
import type { PlatformHost } from "../../kit/src/platform.ts";
import {
  type Connection,
  type ConnectionEffect,
  type ConnectionEvent,
  type IdentifyBudget,
  identifyWaitMs,
  isSpent,
  stepConnection,
} from "./connection.ts";
import { asNumber, asObject, type Fields } from "./map-reading.ts";
import { failureOf } from "./rest-client.ts";
import { botOfToken, isGatewayAddress, type Settings } from "./settings.ts";

/** GUILDS, GUILD_MESSAGES, GUILD_MESSAGE_REACTIONS, DIRECT_MESSAGES, DIRECT_MESSAGE_REACTIONS, MESSAGE_CONTENT. */
const INTENTS = (1 << 0) | (1 << 9) | (1 << 10) | (1 << 12) | (1 << 13) | (1 << 15);
/** The position is stored only at intervals for events without effect. */
const MAX_LAG = 25;
const STOPPED = "stopped";

interface StoredSession {
  readonly sessionId: string;
  readonly resumeUrl: string;
  readonly sequence: number;
  readonly bot: string;
  /** Different for each session. */
  readonly epoch: string;
}
export interface SocketPorts {
  readonly host: PlatformHost;
  readonly rest: REST;
  readonly settings: Settings;
  readonly random: () => number;
  /** Runs in the transaction that moves the position. True: the event changed durable state. */
  readonly dispatch: (event: { readonly type: string; readonly data: Fields; readonly name: string }) => boolean;
  /** Runs after the event's transaction. */
  readonly kept: () => void;
  /** True while events are held because missed messages come first. */
  readonly holds: () => boolean;
  readonly opened: (resumed: boolean) => void;
}
interface Payload {
  readonly t: string;
  readonly s: number;
  readonly d: unknown;
}
const MAX_HELD = 500;

export class GatewaySocket {
  readonly #ports: SocketPorts;
  #state: Connection = { at: "idle" };
  #manager: WebSocketManager | undefined;
  /** The session of a READY event that is not stored yet. */
  #fresh: SessionInfo | undefined;
  #invalidSession = false;
  #hello = false;
  #heardAt = 0;
  #roundTripMs: number | undefined;
  #held: Payload[] = [];
  #wake: () => void = () => {};
  #gatewayUrl = "";

  constructor(ports: SocketPorts) {
    this.#ports = ports;
    // A new instance does not retry what only a person can fix.
    const why = ports.host.kv.get<string>(STOPPED);
    if (why !== undefined) this.#state = { at: "stopped", why };
  }

  get state(): Connection {
    return this.#state;
  }
  get heardAt(): number {
    return this.#heardAt;
  }
  get roundTripMs(): number | undefined {
    return this.#roundTripMs;
  }
  get identifiesLeft(): number | undefined {
    return this.#ports.host.kv.get<IdentifyBudget>("identify")?.remaining;
  }
  /** Makes sure that a connection exists, is being made or is scheduled. */
  ensure(asked = false): void {
    this.#step({ type: "wanted", heardAt: this.#heardAt, asked });
  }
  close(): void {
    this.#step({ type: "unwanted" });
  }
  /** A REST call showed that Discord refuses the bot. */
  refuse(why: string): void {
    this.#step({ type: "refused", why });
  }

  #step(event: ConnectionEvent): void {
    const { host, random } = this.#ports;
    const before = this.#state;
    const [next, effects] = stepConnection(before, event, host.now(), random());
    this.#state = next;
    if (next.at !== before.at && (next.at === "waiting" || next.at === "stopped")) host.log(`gateway_${next.at}`, { why: next.why });
    if (next.at === "stopped") host.kv.put(STOPPED, next.why);
    else if (before.at === "stopped") host.kv.delete(STOPPED);
    // Cancels everything that was scheduled for the old connection.
    if (next.at === "idle" || next.at === "stopped") this.#wake();
    for (const effect of effects) this.#perform(effect);
  }
  #perform(effect: ConnectionEffect): void {
    const { host } = this.#ports;
    switch (effect.do) {
      case "connect":
        return this.#connect();
      case "retire":
        return this.#retire(effect.code);
      case "forget-session":
        return host.kv.delete("session");
      case "wake":
        this.#wake();
        this.#wake = host.after(effect.afterMs, () => this.ensure());
        return;
      case "tell":
        return host.changed();
    }
  }

  // ---------------------------------------------------------------- one connection

  #connect(): void {
    const { settings, rest } = this.#ports;
    this.#invalidSession = false;
    this.#hello = false;
    this.#fresh = undefined;
    this.#held = [];
    const manager: WebSocketManager = new WebSocketManager({
      token: settings.token,
      intents: INTENTS,
      rest,
      shardCount: 1,
      shardIds: [0],
      helloTimeout: 20_000,
      readyTimeout: 30_000,
      retrieveSessionInfo: () => (this.#manager === manager ? this.#session() : this.#never()),
      updateSessionInfo: (_shard, session) => {
        if (this.#manager === manager) this.#sessionChanged(session);
      },
      buildIdentifyThrottler: async () => ({ waitForIdentify: () => this.#mayIdentify(manager) }),
    });
    this.#manager = manager;
    const mine = (work: () => void): void => {
      if (this.#manager === manager) work();
    };
    manager.on(WebSocketShardEvents.Hello, () =>
      mine(() => {
        this.#hello = true;
        this.#heard();
      }),
    );
    manager.on(WebSocketShardEvents.HeartbeatComplete, ({ latency }) =>
      mine(() => {
        this.#heard();
        this.#roundTripMs = Math.max(0, latency);
      }),
    );
    manager.on(WebSocketShardEvents.Dispatch, (payload) => mine(() => this.#dispatched({ t: payload.t, s: payload.s, d: payload.d })));
    manager.on(WebSocketShardEvents.Closed, (code) =>
      mine(() => this.#step({ type: "closed", code, invalidSession: this.#invalidSession })),
    );
    // The library emits these as events, too; without a listener they would be thrown.
    manager.on(WebSocketShardEvents.Error, () => {});
    manager.on(WebSocketShardEvents.SocketError, () => {});
    void this.#open(manager);
  }
  async #open(manager: WebSocketManager): Promise<void> {
    try {
      const limit = await this.#askLimit(manager);
      if (this.#manager !== manager) return;
      // With no session left the library would not even resume.
      const wait =
        this.#session() === null || limit.remaining < 1 ? identifyWaitMs(limit, this.#lastIdentify(), this.#ports.host.now()) : 0;
      if (wait > 0) {
        const spent = isSpent(limit, this.#ports.host.now());
        const hours = Math.ceil(wait / 3_600_000);
        const error = spent
          ? `The bot has nearly used up the sessions that Discord allows in a day. The next one starts in ${hours} h. Sending still works.`
          : "waiting for Discord's pace of new sessions";
        return this.#step({ type: "failed", error, waitMs: wait });
      }
      await manager.connect();
    } catch (error) {
      if (this.#manager !== manager) return;
      const failure = failureOf(error);
      this.#step({
        type: "failed",
        error: failure.status === undefined ? "Discord cannot be reached" : `Discord refused to name its gateway (${failure.status})`,
        ...(failure.status === undefined ? {} : { status: failure.status }),
        ...(failure.retryAfterMs === undefined ? {} : { waitMs: failure.retryAfterMs }),
      });
    }
  }
  /** Closes the socket and ignores its events; the library's own reconnects end in `#never`. */
  #retire(code: number): void {
    const manager = this.#manager;
    this.#manager = undefined;
    this.#held = [];
    this.#roundTripMs = undefined;
    if (manager) void this.#end(manager, code);
  }
  async #end(manager: WebSocketManager, code: number): Promise<void> {
    try {
      await manager.destroy({ code, reason: "retired" });
    } catch {
      // The socket is unusable in any case.
    }
  }
  #never(): Promise<never> {
    return new Promise<never>(() => {});
  }
  #heard(): void {
    this.#heardAt = this.#ports.host.now();
  }

  // ---------------------------------------------------------------- new sessions

  #lastIdentify(): number {
    return this.#ports.host.kv.get<number>("identified") ?? 0;
  }
  async #askLimit(manager: WebSocketManager): Promise<IdentifyBudget> {
    const { host, settings } = this.#ports;
    const { session_start_limit: limit, url } = await manager.fetchGatewayInformation();
    if (!isGatewayAddress(url, settings.origin)) throw new Error("the gateway's address is not Discord's");
    this.#gatewayUrl = url;
    const total = asNumber(limit?.total, 1, 1_000_000) ?? 1_000;
    const budget: IdentifyBudget = {
      total,
      remaining: asNumber(limit?.remaining, 0, total) ?? 0,
      resetAt: host.now() + (asNumber(limit?.reset_after, 0, 172_800_000) ?? 0),
      gapMs: 5_000 / (asNumber(limit?.max_concurrency, 1, 1_000) ?? 1),
    };
    host.kv.put("identify", budget);
    return budget;
  }
  /** Counts the session before IDENTIFY is sent. */
  async #mayIdentify(manager: WebSocketManager): Promise<void> {
    if (this.#manager !== manager) return this.#never();
    const { host } = this.#ports;
    const budget = host.kv.get<IdentifyBudget>("identify");
    host.transaction(() => {
      if (budget) host.kv.put("identify", { ...budget, remaining: Math.max(0, budget.remaining - 1) });
      host.kv.put("identified", host.now());
    });
  }

  // ---------------------------------------------------------------- the session and its events

  #stored(): StoredSession | undefined {
    const { host, settings } = this.#ports;
    const session = host.kv.get<StoredSession>("session");
    return session?.bot === botOfToken(settings.token) ? session : undefined;
  }
  /** The library's view: never beyond the stored position. */
  #session(): SessionInfo | null {
    if (this.#fresh) return this.#fresh;
    const stored = this.#stored();
    if (!stored) return null;
    const { sessionId, sequence, resumeUrl } = stored;
    // Tries the session's own gateway first, and the general one after some failures.
    const resumeURL = resumeUrl === "" || ("attempt" in this.#state && this.#state.attempt > 3) ? this.#gatewayUrl : resumeUrl;
    return { sessionId, sequence, resumeURL, shardId: 0, shardCount: 1 };
  }
  #sessionChanged(session: SessionInfo | null): void {
    if (session) {
      // Positions move only with the events.
      if (session.sessionId !== this.#stored()?.sessionId) this.#fresh = session;
      return;
    }
    // The library drops a session when Discord says so, but also when its own timeout ends.
    if (this.#hello) this.#invalidSession = true;
  }
  #dispatched(payload: Payload): void {
    this.#heard();
    if (payload.t === "READY" || payload.t === "RESUMED") {
      this.#handle(payload);
      if (this.#manager) {
        this.#step({ type: "opened" });
        this.#ports.opened(payload.t === "RESUMED");
      }
      return;
    }
    if (this.#held.length === 0 && !this.#ports.holds()) return this.#handle(payload);
    // Only messages must wait in order. Commands cannot (Discord allows three seconds), and other events have no order.
    if (!payload.t.startsWith("MESSAGE_")) return this.#handle(payload, false);
    this.#held.push(payload);
    if (this.#held.length > MAX_HELD) this.release();
  }
  /** Handles the held events in order. */
  release(): void {
    const held = this.#held;
    this.#held = [];
    for (const payload of held) this.#handle(payload);
  }
  /** Stores the event and its position in one transaction. */
  #handle({ t: type, s: sequence, d }: Payload, move = true): void {
    const { host, settings, dispatch, kept } = this.#ports;
    if (!this.#manager) return;
    try {
      host.transaction(() => {
        const fresh = this.#fresh;
        const before = this.#stored();
        const session: StoredSession | undefined = fresh
          ? {
              sessionId: fresh.sessionId,
              resumeUrl: isGatewayAddress(fresh.resumeURL, settings.origin) ? fresh.resumeURL : "",
              sequence: 0,
              bot: botOfToken(settings.token),
              epoch: host.now().toString(36),
            }
          : before;
        const data = asObject(d) ?? {};
        const must = dispatch({ type, data, name: `${session?.epoch ?? ""}.${sequence}` });
        if (!session || !move || sequence <= session.sequence) return;
        if (must || fresh || type === "RESUMED" || sequence - session.sequence >= MAX_LAG) host.kv.put("session", { ...session, sequence });
      });
    } catch (error) {
      this.#step({ type: "stuck", error: error instanceof Error ? error.message.slice(0, 200) : "unknown" });
      return;
    }
    this.#fresh = undefined;
    kept();
  }
}
