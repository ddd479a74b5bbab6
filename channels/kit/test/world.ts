/**
 * A platform, a gateway and an account between them, in one process on a plain SQLite. The test controls time, randomness, crashes and
 * lost answers. It records what both ends have seen, so that losses and duplicates show.
 */
import { readSealingKeys, SEAL_NONCE_BYTES } from "../../../protocol/runtime/sealing.ts";
import { DatabaseSync } from "node:sqlite";
import type { ChannelInbound, ChannelInboundOutcome, ChannelLogin, DeliveryReport, OutboundMessage } from "../../../protocol/gen/types.ts";
import { seeded } from "../../../test/seeded.ts";
import { statementsOf } from "../../../test/statements.ts";
import { Account } from "../src/account.ts";
import type { Database } from "../src/database.ts";
import type { InboundFile, InboundItem, LogoutOutcome, OutboundPart, Platform, PlatformHost, SendOutcome } from "../src/platform.ts";

export const memoryDatabase = (): Database & { readonly raw: DatabaseSync } => databaseOf(new DatabaseSync(":memory:"));
export function databaseOf(raw: DatabaseSync): Database & { readonly raw: DatabaseSync } {
  let depth = 0;
  const prepared = statementsOf(raw);
  return {
    raw,
    query: <T>(statement: string, ...params: readonly (string | number | null)[]) => prepared(statement).all(...params) as T[],
    transaction<T>(work: () => T): T {
      const name = `t${depth}`;
      raw.exec(`SAVEPOINT ${name}`);
      depth += 1;
      try {
        const result = work();
        raw.exec(`RELEASE ${name}`);
        return result;
      } catch (error) {
        raw.exec(`ROLLBACK TO ${name}; RELEASE ${name}`);
        throw error;
      } finally {
        depth -= 1;
      }
    },
  };
}

/** Probabilities of the outcomes of an outbound call. */
export interface Faults {
  /** It fails without effect. */
  readonly fails: number;
  /** It has its effect, and the answer is lost. */
  readonly answerLost: number;
  /** The account crashes during the call. */
  readonly dies: number;
}
export const CALM: Faults = { fails: 0, answerLost: 0, dies: 0 };
class Died extends Error {}
/** Three times what a resident account needs for a day. An account that rings without end fails its test instead of delaying it. */
const MOST_RINGS_OF_A_PASS = 10_000;

export class World {
  readonly db = memoryDatabase();
  readonly random: () => number;
  now = 1_700_000_000_000;
  connected = true;
  atRest = false;
  faults: Faults = CALM;
  recognisesNonceMs = 300_000;
  buttons = false;
  crashes = 0;
  /** Ids of accepted messages by conversation, in order, without duplicates. */
  readonly accepted: ChannelInbound[] = [];
  readonly #acceptedIds = new Set<string>();
  handovers = 0;
  /** Messages that people see, in order. */
  readonly shown: { readonly peer: string; readonly text: string; readonly id: string; edits: number }[] = [];
  readonly #byNonce = new Map<string, string>();
  readonly reports: DeliveryReport[] = [];
  readonly acknowledged: unknown[] = [];
  /** Receipts that the platform noted in the inbox's transaction. */
  readonly settled: unknown[] = [];
  /** The platform has a logout of its own. It and a login wait for this promise. */
  hasLogout = false;
  answering: Promise<void> | undefined;
  logouts = 0;
  logoutOutcome: LogoutOutcome = "confirmed";
  /** What a file of the platform contains. The gateway wants no files while this is undefined. */
  fetchFile: ((file: InboundFile) => string) | undefined;
  /** The size that the platform announces with the bytes of a file. */
  announced: ((file: InboundFile) => number) | undefined;
  outcomeOf: (inbound: ChannelInbound) => ChannelInboundOutcome = () => ({ outcome: "accepted" });
  /** The gateway takes nothing for this many ms. */
  holds: (() => number | undefined) | undefined;
  /** The gateway is stopped, and how often it was asked whether messages may leave. */
  stopped = false;
  asks = 0;
  sendOutcome: ((part: OutboundPart) => SendOutcome | undefined) | undefined;
  /** Outcomes of the next messages that are posted or edited on the platform, before `faults` apply. */
  readonly nextPosts: (keyof Faults)[] = [];
  /** The disk fails at this statement of the account, or at the `COMMIT` of a transaction. Not while an instance starts. */
  diskFails: ((statement: string) => boolean) | undefined;
  readonly typed: string[] = [];
  readonly reactions: string[] = [];
  /** Files for which the gateway was asked for a key. */
  readonly offered: { readonly mimeType: string; readonly filename?: string; readonly index: number }[] = [];
  /** Files that the platform read from the gateway. */
  readonly reads: { readonly deliveryId: string; readonly r2Key: string; readonly maxBytes: number }[] = [];
  /** How many files were fetched from the platform. */
  fetches = 0;
  /** The gateway takes the bytes of no file any more. */
  wantsNoBytes = false;
  /** The platform has files that can be fetched. */
  hasFiles = true;
  /** What a login at the platform gives; undefined: it has none. */
  loginState: ChannelLogin["state"] | undefined;
  readonly logins: { readonly force: boolean; readonly phone?: string }[] = [];
  authenticated = true;
  /** How often the account asked the platform to connect, and how often it set its alarm. */
  connects = 0;
  alarmsSet = 0;
  readonly sockets = { now: 0, most: 0 };
  /** Calls to the gateway and the platform wait for this promise while it is set. */
  gate: Promise<void> | undefined;
  /** The gateway never answers these. */
  hangs: (inbound: ChannelInbound) => boolean = () => false;
  /** How often `ring` has fired the alarm. */
  rings = 0;
  /** How long a socket takes to open, and to close. */
  connecting: Promise<void> | undefined;
  disconnecting: Promise<void> | undefined;
  readonly logs: string[] = [];
  /** Configurations of the platforms of all instances. */
  readonly configs: Readonly<Record<string, unknown>>[] = [];
  account: Account;
  #host: PlatformHost | undefined;
  #timers: { readonly at: number; readonly work: () => void }[] = [];
  #alarmAt: number | undefined;
  #work = new Set<Promise<void>>();
  #incarnation = 0;
  /** An alarm runs: the runtime starts no other one beside it. */
  #ringing: Promise<void> | undefined;

  constructor(seed = 1) {
    this.random = seeded(seed);
    this.account = this.#born();
    this.db.query("INSERT INTO kv VALUES('account.started', 'true')");
  }
  get host(): PlatformHost {
    // The platform is made at first use.
    this.account.platform;
    if (!this.#host) throw new Error("the account has made no platform");
    return this.#host;
  }

  /** Crashes the object: everything in memory is lost. */
  kill(): void {
    this.#incarnation += 1;
    this.crashes += 1;
    this.#timers = [];
    this.#work = new Set();
    this.#ringing = undefined;
    this.account = this.#born();
  }
  #born(): Account {
    const own = this.#incarnation;
    const alive = (): boolean => this.#incarnation === own;
    let isStarting = true;
    const disk = (statement: string): void => {
      if (!isStarting && this.diskFails?.(statement)) throw new Error("the disk is full");
    };
    const account = new Account({
      accountId: "default",
      sealing: { keys: readSealingKeys("5e".repeat(32)), nonce: () => crypto.getRandomValues(new Uint8Array(SEAL_NONCE_BYTES)) },
      db: {
        // A crashed instance writes nothing any more.
        query: (statement, ...params) => {
          if (!alive()) throw new Died("this instance has crashed");
          disk(statement);
          return this.db.query(statement, ...params);
        },
        transaction: (work) => {
          if (!alive()) throw new Died("this instance has crashed");
          return this.db.transaction(() => {
            const result = work();
            disk("COMMIT");
            return result;
          });
        },
      },
      gateway: {
        inbound: (inbound) => (this.hangs(inbound) ? new Promise(() => {}) : this.#call(alive, () => this.#takeIn(inbound))),
        media: async (_inbound, file) => {
          this.offered.push(file);
          return this.fetchFile ? `media/${file.index}` : undefined;
        },
        store: async (_inbound, { index }) => (this.wantsNoBytes ? undefined : `media/${index}`),
        read: (file) => {
          this.reads.push(file);
          return Promise.resolve(null);
        },
        status: async () => await this.gate,
        delivered: (report) => this.#call(alive, () => void this.reports.push(report)),
        mayDeliver: () =>
          this.#call(alive, () => {
            this.asks += 1;
            return !this.stopped;
          }),
      },
      now: () => this.now,
      random: this.random,
      after: (ms, work) => {
        const timer = { at: this.now + ms, work: () => (alive() ? work() : undefined) };
        this.#timers.push(timer);
        return () => {
          this.#timers = this.#timers.filter((other) => other !== timer);
        };
      },
      setAlarm: (at) => {
        if (!alive()) return;
        this.#alarmAt = at;
        this.alarmsSet += 1;
      },
      keep: (work) => {
        const kept = work.catch(() => {}).finally(() => this.#work.delete(kept));
        this.#work.add(kept);
      },
      log: (event, fields) => void this.logs.push(JSON.stringify({ event, ...fields })),
      platform: (host, config) => {
        this.#host = host;
        this.configs.push(config);
        return this.#platform(alive);
      },
    });
    isStarting = false;
    return account;
  }
  async #call<T>(alive: () => boolean, work: () => T, faults = this.faults): Promise<T> {
    await this.gate;
    await Promise.resolve();
    if (!alive()) throw new Died("this instance has crashed");
    const luck = this.random();
    const { fails, answerLost, dies } = faults;
    if (luck < fails) throw new Error("no connection");
    const result = work();
    if (luck < fails + answerLost) throw new Error("the answer was lost");
    if (luck < fails + answerLost + dies) {
      this.kill();
      throw new Died("this instance has crashed");
    }
    await Promise.resolve();
    return result;
  }
  #post<T>(alive: () => boolean, work: () => T): Promise<T> {
    const next = this.nextPosts.shift();
    return this.#call(alive, work, next === undefined ? this.faults : { ...CALM, [next]: 1 });
  }
  #takeIn(inbound: ChannelInbound): ChannelInboundOutcome {
    this.handovers += 1;
    const retryAfterMs = this.holds?.();
    if (retryAfterMs !== undefined) return { outcome: "later", retryAfterMs };
    const id = `${inbound.peer.id}/${inbound.message.id}`;
    if (this.#acceptedIds.has(id)) return { ...this.outcomeOf(inbound), outcome: "duplicate" };
    this.#acceptedIds.add(id);
    this.accepted.push(inbound);
    return this.outcomeOf(inbound);
  }
  #platform(alive: () => boolean): Platform {
    let open = false;
    return {
      capabilities: {
        peerKinds: ["dm", "group"],
        media: true,
        reactions: true,
        typing: true,
        replies: true,
        edits: true,
        buttons: this.buttons,
        login: false,
        maxTextChars: 200,
      },
      recognisesNonceMs: this.recognisesNonceMs,
      mark: (markdown) => markdown,
      ensureConnected: async () => {
        this.connects += 1;
        await this.connecting;
        if (open) return;
        open = true;
        this.sockets.now += 1;
        this.sockets.most = Math.max(this.sockets.most, this.sockets.now);
      },
      disconnect: async () => {
        const closing = open;
        open = false;
        await this.disconnecting;
        if (closing) this.sockets.now -= 1;
      },
      isConnected: () => this.connected,
      isAtRest: () => this.atRest,
      status: () => ({ connected: this.connected, authenticated: this.authenticated }),
      send: (part) =>
        this.#post(alive, () => this.#show(part)).catch((error: unknown): SendOutcome => {
          if (error instanceof Died) throw error;
          const text = error instanceof Error ? error.message : "";
          return text === "no connection" ? { kind: "retry", error: text } : { kind: "unsure", error: text };
        }),
      showLive: (peer, text, messageId, _replyToId, nonce) =>
        this.#post(alive, () => {
          const known = this.#byNonce.get(nonce);
          if (messageId === undefined && known !== undefined) return known;
          const present = this.shown.find(({ id }) => id === messageId);
          if (present) {
            Object.assign(present, { text, edits: present.edits + 1 });
            return messageId;
          }
          const id = `m${this.shown.length + 1}`;
          this.shown.push({ peer: peer.id, text, id, edits: 0 });
          this.#byNonce.set(nonce, id);
          return id;
        }),
      typing: async (peer, active) => void this.typed.push(`${peer.id}:${active}`),
      ...(this.hasLogout ? { logout: () => this.#logOut() } : {}),
      ...(this.loginState === undefined ? {} : { login: (options) => this.#logIn(options, this.loginState) }),
      ...(this.hasFiles ? { fetchFile: (file) => this.#fetch(file) } : {}),
      react: async (peer, messageId, _senderId, emoji) => void this.reactions.push(`${peer.id}/${messageId} ${emoji}`),
      settled: ({ receipt }) => void this.settled.push(receipt),
      acknowledged: async (items) => void this.acknowledged.push(...items.map(({ receipt }) => receipt)),
    };
  }
  async #logOut(): Promise<LogoutOutcome> {
    this.logouts += 1;
    await this.answering;
    return this.logoutOutcome;
  }
  async #logIn(
    options: { readonly force: boolean; readonly phone?: string },
    state: ChannelLogin["state"] = "failed",
  ): Promise<ChannelLogin> {
    this.logins.push(options);
    await this.answering;
    return { state, message: "" };
  }
  async #fetch(file: InboundFile): ReturnType<NonNullable<Platform["fetchFile"]>> {
    this.fetches += 1;
    const body = new Blob([this.fetchFile?.(file) ?? ""]).stream();
    return { body, ...(this.announced === undefined ? {} : { sizeBytes: this.announced(file) }) };
  }
  #show(part: OutboundPart): SendOutcome {
    const forced = this.sendOutcome?.(part);
    if (forced) return forced;
    const known = this.#byNonce.get(part.nonce);
    if (known !== undefined && this.now - part.firstTriedAt < this.recognisesNonceMs) return { kind: "sent", messageId: known };
    const replaced = part.replaces === undefined ? undefined : this.shown.find(({ id }) => id === part.replaces);
    const id = replaced?.id ?? `m${this.shown.length + 1}`;
    if (replaced) Object.assign(replaced, { text: part.text, edits: replaced.edits + 1 });
    else this.shown.push({ peer: part.peer.id, text: part.text, id, edits: 0 });
    this.#byNonce.set(part.nonce, id);
    return { kind: "sent", messageId: id };
  }

  // ---------------------------------------------------------------- driving

  item(peer: string, id: string, text = `message ${id}`): InboundItem {
    return {
      key: id,
      inbound: { peer: { kind: "dm", id: peer }, sender: { id: peer }, message: { id, text, timestamp: this.now }, receivedAt: this.now },
      files: [],
      receipt: { ack: id },
    };
  }
  message(deliveryId: string, peer: string, text: string, more: Partial<OutboundMessage> = {}): OutboundMessage {
    return { deliveryId, kind: "answer", peer: { kind: "dm", id: peer }, text, ...more };
  }
  /** Time of the next alarm; undefined when none is set. */
  get alarmAt(): number | undefined {
    return this.#alarmAt;
  }
  /** Fires the alarms that are due now, whatever else is under way. */
  async ring(ms: number): Promise<void> {
    const until = this.now + ms;
    const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    await turn();
    while (this.#alarmAt !== undefined && this.#alarmAt <= until) {
      this.now = Math.max(this.now, this.#alarmAt);
      this.#alarmAt = undefined;
      this.rings += 1;
      void this.account.alarm().catch(() => {});
      await turn();
    }
    this.now = until;
  }
  /** Resolves when nothing is under way. */
  async settle(): Promise<void> {
    for (let round = 0; round < 10_000; round++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#work.size === 0) return;
    }
    throw new Error("work without end");
  }
  /** Advances the clock and fires all timers and alarms on the way. */
  async pass(ms: number): Promise<void> {
    const until = this.now + ms;
    await this.settle();
    for (let rings = 0; ; ) {
      const timer = this.#timers.toSorted((left, right) => left.at - right.at)[0];
      const alarm = this.#ringing === undefined ? this.#alarmAt : undefined;
      const next = Math.min(timer?.at ?? Number.POSITIVE_INFINITY, alarm ?? Number.POSITIVE_INFINITY);
      if (next > until) break;
      this.now = Math.max(this.now, next);
      if (timer && timer.at <= next) {
        this.#timers = this.#timers.filter((other) => other !== timer);
        timer.work();
      } else {
        if (++rings > MOST_RINGS_OF_A_PASS) throw new Error("alarms without end");
        this.#alarmAt = undefined;
        const ringing = this.account
          .alarm()
          .catch(() => {})
          .finally(() => {
            if (this.#ringing === ringing) this.#ringing = undefined;
          });
        this.#ringing = ringing;
      }
      await this.settle();
    }
    this.now = until;
    await this.settle();
  }
}
