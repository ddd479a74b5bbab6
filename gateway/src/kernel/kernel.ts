/**
 * The base of every feature, created once for a Gateway object: configuration, tokens, audit, connections and the alarm. Leads frames
 * from their socket to a feature's handler. Imports no feature: `start` receives them.
 */
import { unfinishedAt } from "../../../protocol/runtime/secret-shapes.ts";
import { ERRORS } from "../../../protocol/gen/errors.ts";
import type { EventName } from "../../../protocol/gen/methods.ts";
import { afterTimeout } from "../../../protocol/runtime/within.ts";
import type { Clock } from "../platform/clock.ts";
import type { Logger, SecretValues } from "../platform/log.ts";
import type { SocketHost } from "../platform/sockets.ts";
import type { Database } from "../platform/sql.ts";
import type { RunContext } from "../ports/run-context.ts";
import { Admission } from "./admission.ts";
import { Alarms, type AlarmStorage } from "./alarms.ts";
import { Audit } from "./audit-store.ts";
import { Config, type Sealing } from "./config/store.ts";
import { type Connection, Connections } from "./connections.ts";
import type { Feature } from "./feature.ts";
import { type FeatureSet, featureSet } from "./feature-set.ts";
import { Followers } from "./followers.ts";
import { CLOSE } from "./handshake.ts";
import type { Ids, KernelPorts } from "./ports.ts";
import { canonicalKey } from "./routing/session-keys.ts";
import { HiddenSecrets, secretBox } from "./secret-box.ts";
import { SocketServer } from "./socket-server.ts";
import { Subscriptions } from "./subscriptions.ts";
import { Tokens } from "./token-store.ts";

const UNREADABLE = "Put the key file back, or enter these settings again: `gsv config set PATH -`.";

/** From the first entry of the audit that has no hash to its hash. The entries that come meanwhile are hashed with it. */
const AUDIT_SEAL_MS = 250;

/** What the kernel needs from the Durable Object. */
export interface KernelHost {
  readonly storage: Database & AlarmStorage;
  readonly sockets: SocketHost;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ids: Ids;
  /** The values that the log masks. */
  readonly secrets: SecretValues;
  /** How secrets are sealed before they are stored. */
  readonly sealing: Sealing;
  /** Keeps the object awake until the work has ended. */
  readonly waitUntil: (work: Promise<unknown>) => void;
  /** Version of the program. */
  readonly version: string;
  /** Origins that the deployment allows, beside the configured ones. */
  readonly allowedOrigins: readonly string[];
  /** sha256, in hex, of the first admin token. */
  readonly firstTokenHash: string | undefined;
  /** Events of the contract that no feature sends. */
  readonly unservedEvents: readonly EventName[];
}

export class Kernel {
  readonly ports: KernelPorts;
  readonly admission: Admission;
  readonly #host: KernelHost;
  #features: FeatureSet = featureSet([]);
  #alarms: Alarms | undefined;
  #server: SocketServer | undefined;
  /** Tokens that expired until then have lost their connections. */
  #expiredUpTo = 0;

  constructor(host: KernelHost) {
    this.#host = host;
    const { storage, clock, log, secrets } = host;
    const connections = new Connections(host.sockets, clock);
    connections.onDropped = (connection, end) => this.#features.gone(connection, end);
    const subscriptions = new Subscriptions();
    const hidden = new HiddenSecrets((values) => secrets.set(values));
    const config = new Config(storage, (values) => hidden.set("config", values), host.sealing);
    const tokens = new Tokens(storage);
    const now = (): number => clock.now();
    this.ports = {
      database: storage,
      now,
      ids: host.ids,
      log,
      config,
      tokens,
      audit: new Audit(storage, clock, {
        deadline: () => this.#alarms?.arm(),
        soon: (work) =>
          this.ports.background("audit", new Promise<void>((resolve) => void afterTimeout(AUDIT_SEAL_MS, resolve)).then(work)),
      }),
      connections,
      followers: new Followers(connections, subscriptions),
      subscriptions,
      scrub: (text) => secrets.scrub(text),
      unfinished: (text) => unfinishedAt(text, secrets.spelled()),
      secretValues: () => secrets.all(),
      secretBox: secretBox(host.sealing, (owner, values) => hidden.set(owner, values)),
      contextVersion: () => `${config.version()}/${this.#features.contextVersion()}`,
      sessionSpent: (session, spent) => this.#features.sessionSpent(session, spent),
      sessionGone: (session) => this.#features.sessionGone(session),
      arm: () => this.#alarms?.arm(),
      armFor: (deadline) => this.#alarms?.armFor(deadline),
      closeToken: (tokenId, reason) => this.#closeToken(tokenId, reason),
      background: (what, work) => host.waitUntil(work.catch((error: unknown) => log.error("background_failed", { what, error }))),
    };
    this.admission = new Admission({
      tokens,
      now,
      allowedOrigins: () => [...host.allowedOrigins, ...(config.effective().auth?.allowedOrigins ?? [])],
    });
  }

  /** From now on frames and alarms reach the features. */
  start(features: readonly Feature[]): void {
    const { storage, clock, log, version, unservedEvents, firstTokenHash, sealing } = this.#host;
    const { tokens, config } = this.ports;
    this.#features = featureSet(features);
    this.#alarms = new Alarms(storage, clock, log, [...this.#features.alarms, ...this.#ownAlarms()]);
    this.#server = new SocketServer({ ...this.ports, admission: this.admission, features: this.#features, version, unservedEvents });
    const isNewToken = firstTokenHash !== undefined && !tokens.hasHash(firstTokenHash);
    const replaced = firstTokenHash === undefined ? [] : tokens.importFirst(firstTokenHash, clock.now());
    // Secrets must be known to the log before anything is logged.
    config.effective();
    const sealed = config.sealStored();
    if (sealed > 0) log.info("secrets_sealed", { count: sealed });
    if (!sealing.keys.ok) log.warn("no_sealing_key", { problem: sealing.keys.problem, hint: ERRORS["config.no_sealing_key"].hint });
    const unreadable = config.unreadable();
    if (unreadable.length > 0) log.warn("secrets_unreadable", { settings: unreadable, hint: UNREADABLE });
    this.#server.resume();
    this.ports.audit.resume();
    for (const tokenId of replaced) this.ports.closeToken(tokenId, "the token was revoked");
    if (isNewToken) this.#noteFirstToken(replaced);
  }
  #noteFirstToken(replaced: readonly string[]): void {
    const detail = replaced.length === 0 ? {} : { detail: `revoked ${replaced.join(", ")}` };
    const entry = {
      actor: "gateway",
      origin: "deployment",
      action: "tokens.import",
      target: "admin",
      decision: "allowed",
      ...detail,
    } as const;
    this.ports.audit.append(entry);
  }

  get server(): SocketServer {
    if (this.#server === undefined) throw new Error("the kernel has not been started");
    return this.#server;
  }
  async alarm(): Promise<void> {
    await this.#alarms?.fire();
  }
  /** After a restart of the runtime: features resume interrupted work. */
  async restarted(): Promise<void> {
    await this.#features.restarted();
  }

  /** What a run of this session gets; null when `knownVersion` still holds. */
  runContext(sessionKey: string, knownVersion: string | undefined): RunContext | null {
    const { config, contextVersion } = this.ports;
    const version = contextVersion();
    if (version === knownVersion) return null;
    const outcome = canonicalKey(sessionKey, config.mainKey(), config.defaultAgentId());
    const named = outcome.ok ? outcome : undefined;
    const agent = config.agent(named?.address.agentId ?? config.defaultAgentId());
    return {
      version,
      config: config.effective(),
      agent,
      tools: [],
      nodes: [],
      skillPins: [],
      ...this.#features.runContext({ sessionKey, named, agentId: agent.id }),
    };
  }

  #ownAlarms() {
    const { connections, tokens, audit } = this.ports;
    return [
      {
        name: "token_expiry",
        next: () => (connections.readyCount() === 0 ? undefined : tokens.nextExpiry(this.#expiredUpTo)),
        run: (at: number) => {
          this.#expiredUpTo = at;
          for (const { principal } of connections.all())
            if (principal.expiresAt !== undefined && principal.expiresAt <= at)
              this.#closeToken(principal.tokenId, "the token has expired");
        },
      },
      { name: "audit_retention", next: () => audit.nextPrune(), run: (at: number) => audit.prune(at) },
    ];
  }

  #closeToken(tokenId: string, reason: string): number {
    const { connections } = this.ports;
    const using = connections.all().filter((connection: Connection) => connection.principal.tokenId === tokenId);
    for (const connection of using) {
      connections.close(connection.socket, CLOSE.auth, reason);
      this.#features.gone(connection, { kind: "token", text: reason });
    }
    return using.length;
  }
}
