/**
 * The Gateway Durable Object: sockets, the alarm, and the calls of sessions. A shell that puts the parts together and holds no rule of
 * its own. Wakes cheaply: nothing heavy is read before it is needed, and what is known of a socket is kept with it.
 */
import { DurableObject } from "cloudflare:workers";
import type { ErrorReason } from "../../../protocol/gen/errors.ts";
import type { ChannelAccount, ChannelInbound, ChannelInboundOutcome, DeliveryReport } from "../../../protocol/gen/types.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { allowedOrigins, bootstrapTokenHash, type Env, isEmbedded, versionOf } from "../platform/env.ts";
import { checkUpgrade, originAllowed } from "./http/upgrade.ts";
import { problemResponse } from "./http/problem.ts";
import { systemClock } from "../platform/clock.ts";
import { randomName, sha256Hex } from "../platform/ids.ts";
import { consoleSink, createLogger, type Logger, SecretValues } from "../platform/log.ts";
import { answerPings } from "../platform/sockets.ts";
import { migrate } from "../platform/sql.ts";
import type { AuditInput } from "../ports/audit.ts";
import type { ChannelMessage, ChannelMessageSent, ChannelPlaces, ReplyCall } from "../ports/channels.ts";
import type { DispatchOutcome, ToolDispatch } from "../ports/dispatch.ts";
import type { GatewayPort, SessionNews } from "../ports/gateway.ts";
import type { Result } from "../ports/result.ts";
import type { ModelAccess, RunContext } from "../ports/run-context.ts";
import type { SearchAnswer, SearchInput, SearchableSession } from "../ports/search.ts";
import type { SessionToSession, SessionToSessionSent } from "../ports/session-to-session.ts";
import type { SeenSkill, SkillPin, SkillWriting } from "../ports/skills.ts";
import { Alarms } from "../kernel/alarms.ts";
import { Audit } from "../kernel/audit.ts";
import { scopesOf } from "../kernel/authorise.ts";
import { ClientCalls } from "../features/nodes/client-calls.ts";
import { parts } from "./compose.ts";
import { dispatch } from "../kernel/dispatcher.ts";
import { ChannelHub, type ChannelRef } from "../features/channels/hub.ts";
import { CLOSE, handshake } from "../kernel/handshake.ts";
import { findText } from "../features/search/find-text.ts";
import { FailureWindow } from "../kernel/limits.ts";
import { logNode } from "../features/nodes/node-methods.ts";
import { GATEWAY_MIGRATIONS } from "./migrations.ts";
import { NodeLinks } from "../features/nodes/links.ts";
import { fail } from "../kernel/outcome.ts";
import { Channels } from "../features/channels/accounts.ts";
import { wakeChannels } from "../features/channels/wake.ts";
import { Config } from "../kernel/config/store.ts";
import { Deliveries } from "../features/channels/deliveries.ts";
import { type Connection, Connections, type OpenConnection } from "../kernel/connections.ts";
import { Nodes } from "../features/nodes/registry.ts";
import { Pairings } from "../features/channels/pairings.ts";
import { Peers } from "../features/channels/peers.ts";
import { PendingCalls } from "../features/nodes/pending-calls.ts";
import { Sessions } from "../features/sessions/registry.ts";
import { type TokenGrant, Tokens } from "../kernel/tokens.ts";
import { SkillPins } from "../features/skills/pin-store.ts";
import { isOpenedFor, machinesFor } from "../kernel/routing/guest-tools.ts";
import { canonicalKey } from "../kernel/routing/session-keys.ts";
import { qualifiedName } from "../kernel/routing/tool-names.ts";
import { RunWaits } from "../features/sessions/run-waits.ts";
import type { Services } from "./services.ts";
import { sessionPorts } from "../features/sessions/ask.ts";
import { type UploadAsked, type UploadPlace, Uploads } from "../features/media/uploads.ts";
import { sendToSession } from "../features/sessions/session-to-session.ts";
import { GatewaySkills } from "../features/skills/skills.ts";
import { isOwners, type Named } from "../features/sessions/ownership.ts";

/** Machines that were connected when the last life ended have this long to come back before they count as gone. */
const RETURN_MS = 4000;
const RESTART_SETTLED_MS = 100;
const RESUME_WITHIN_MS = 86_400_000;
const MAX_RESUMED = 64;
/** Who comes with a request over HTTP. */
interface HttpAsker {
  readonly token?: string;
  readonly origin?: string;
  readonly address: string;
}
/** What crosses to the Worker: plain enough for RPC to keep its type. */
type HttpAdmission =
  | { readonly ok: true; readonly value: { readonly scopes: readonly string[] } }
  | { readonly ok: false; readonly error: { readonly reason: ErrorReason; readonly message: string } };
/** Conversations of one page for the search index. */
const SEARCHED_SESSIONS = 500;
type UploadAdmission =
  | { readonly ok: true; readonly value: UploadPlace }
  | { readonly ok: false; readonly error: { readonly reason: ErrorReason; readonly message: string } };
/** Sessions that are started again at once. */
const RESUME_AT_ONCE = 8;

export class Gateway extends DurableObject<Env> implements GatewayPort {
  readonly #services: Services;
  readonly #uploads = new Uploads();
  readonly #pins: SkillPins;
  readonly #failures = new FailureWindow(LIMITS.authFailuresPerMinute);
  readonly #log: Logger;
  readonly #helloTimers = new Map<WebSocket, ReturnType<typeof setTimeout>>();

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { storage } = ctx;
    migrate(storage, "gateway", GATEWAY_MIGRATIONS);
    answerPings(ctx);
    const clock = systemClock;
    const secrets = new SecretValues();
    const log = createLogger({ component: "gateway", clock, secrets, sink: consoleSink });
    this.#log = log;
    const background = (what: string, work: Promise<unknown>): void =>
      ctx.waitUntil(work.catch((error: unknown) => log.error("background_failed", { what, error })));
    const now = (): number => clock.now();
    const connections = new Connections(ctx, clock);
    const config = new Config(storage, (values) => secrets.set(values));
    const tokens = new Tokens(storage);
    const sessions = new Sessions(storage);
    const nodes = new Nodes(storage);
    const audit = new Audit(storage, clock);
    const runWaits = new RunWaits();
    const pins = new SkillPins(storage);
    this.#pins = pins;
    const ask = sessionPorts((key) => parts.session(env, key), log);
    const arm = (): void => alarms.arm();
    const calls = new ClientCalls({ pending: new PendingCalls(storage), connections, now, arm, freshName: randomName });
    const nodeLinks = new NodeLinks({ connections, nodes, sessions, calls: () => calls, ask, now, background, arm });
    const channels = new ChannelHub({
      config,
      sessions,
      channels: new Channels(storage),
      pairings: new Pairings(storage),
      deliveries: new Deliveries(storage),
      peers: new Peers(storage),
      audit,
      ask,
      now,
      sha256: sha256Hex,
      random: (length) => crypto.getRandomValues(new Uint8Array(length)),
      contextVersion: () => this.#services.contextVersion(),
      service: (name) => parts.channel(env, name),
      names: () => parts.channelNames(env),
      arm,
      log,
      background,
    });
    let expiredUpTo = 0;
    const alarms = new Alarms(storage, clock, log, [
      { name: "client_calls", next: () => calls.nextDeadline(), run: (at) => calls.expire(at) },
      { name: "node_liveness", next: () => nodeLinks.nextLivenessCheck(), run: (at) => nodeLinks.checkLiveness(at) },
      {
        name: "token_expiry",
        next: () => (connections.readyCount() === 0 ? undefined : tokens.nextExpiry(expiredUpTo)),
        run: (at) => {
          expiredUpTo = at;
          for (const { principal } of connections.all())
            if (principal.expiresAt !== undefined && principal.expiresAt <= at) closeToken(principal.tokenId, "the token has expired");
        },
      },
      { name: "held_messages", next: () => channels.nextRelease(), run: () => background("release", channels.releaseAll()) },
      {
        name: "undelivered",
        next: () => channels.deliverer.nextTelling(),
        run: () => background("tell_undelivered", channels.deliverer.tellUndelivered()),
      },
      { name: "channel_retention", next: () => channels.nextForget(), run: (at) => channels.forget(at) },
      { name: "audit_retention", next: () => audit.nextPrune(), run: (at) => audit.prune(at) },
    ]);
    const closeToken = (tokenId: string, reason: string): number => {
      const using = connections.all().filter((connection) => connection.principal.tokenId === tokenId);
      for (const connection of using) {
        connections.close(connection.socket, CLOSE.auth, reason);
        if (connection.principal.mode === "node") nodeLinks.went(connection, reason);
      }
      return using.length;
    };
    connections.onDropped = (connection, reason) => {
      if (connection.principal.mode === "node") nodeLinks.went(connection, reason);
    };
    this.#services = {
      version: versionOf(env),
      ids: { name: randomName, sha256: sha256Hex },
      clock,
      log,
      connections,
      config,
      tokens,
      sessions,
      nodes,
      nodeLinks,
      calls,
      audit,
      channels,
      alarms,
      // A node that comes, goes or comes back has another connection; nothing else changes what it offers.
      contextVersion: () => {
        const online = connections.nodes().map((node) => node.conn);
        return `${config.version()}/${nodes.version()}/${pins.version()}/${online.sort().join(",")}/${nodeLinks.returning().join(",")}`;
      },
      ask,
      runWaits,
      scrub: (text) => secrets.scrub(text),
      workspace: parts.workspace(env),
      archives: parts.archives(env),
      agentFiles: parts.agentFiles(env),
      searchIndex: (agentId) => parts.search(env, agentId),
      native: parts.nativeTools(env),
      skills: new GatewaySkills({
        library: parts.skills(env),
        pins,
        config,
        nodes,
        isOnline: (nodeId) => nodeLinks.isExpected(nodeId),
        audit,
        now,
        background,
      }),
      port: this,
      closeToken,
      background,
    };
    const first = bootstrapTokenHash(env);
    if (first !== undefined) tokens.importFirst(first, now());
    // Secrets must be known to the log before anything is logged.
    config.effective();
    for (const open of connections.opening()) this.#expectHello(open);
    if (nodeLinks.returning().length > 0) {
      // A link that breaks while the object sleeps wakes it too, and explains itself in the event that follows.
      setTimeout(() => nodeLinks.tellRestart(), RESTART_SETTLED_MS);
      setTimeout(() => nodeLinks.giveUpReturning(), RETURN_MS);
    }
  }

  // ------------------------------------------------------------ sockets

  override async fetch(request: Request): Promise<Response> {
    const { connections, tokens, clock } = this.#services;
    const address = this.#addressOf(request);
    const { total, sameAddress } = connections.openCount(address);
    const refused = checkUpgrade({
      method: request.method,
      upgrade: request.headers.get("Upgrade"),
      origin: request.headers.get("Origin"),
      allowedOrigins: this.#allowedOrigins(),
      tokenConfigured: tokens.configured(clock.now()),
      openSockets: total,
      openFromAddress: address === "" ? 0 : sameAddress,
      readySockets: connections.readyCount(),
    });
    if (refused !== undefined) return problemResponse(refused.reason, refused.message);
    const { 0: client, 1: server } = new WebSocketPair();
    this.#expectHello(connections.open(server, address));
    return new Response(null, { status: 101, webSocket: client });
  }

  #allowedOrigins(): readonly string[] {
    return [...allowedOrigins(this.env), ...(this.#services.config.effective().auth?.allowedOrigins ?? [])];
  }

  /** Only the edge says truthfully who calls; elsewhere the header is the caller's own invention. */
  #addressOf(request: Request): string {
    return isEmbedded(this.env) ? "" : (request.headers.get("CF-Connecting-IP") ?? "");
  }

  #expectHello(open: OpenConnection): void {
    const { connections, clock } = this.#services;
    const wait = Math.max(0, open.openedAt + LIMITS.connectTimeoutMs - clock.now());
    const timer = setTimeout(() => {
      this.#helloTimers.delete(open.socket);
      if (connections.of(open.socket) === open) connections.close(open.socket, CLOSE.timeout, "no connect request in time");
    }, wait);
    this.#helloTimers.set(open.socket, timer);
  }
  /** A timer keeps the object from hibernating: none is left behind. */
  #settleHello(socket: WebSocket): void {
    if (this.#services.connections.of(socket)?.phase === "open") return;
    clearTimeout(this.#helloTimers.get(socket));
    this.#helloTimers.delete(socket);
  }

  override async webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> {
    const connection = this.#services.connections.of(socket);
    if (connection === undefined) return;
    if (connection.phase === "open") {
      await this.#greet(connection, message);
      this.#settleHello(socket);
      return;
    }
    if (typeof message === "string") await dispatch(this.#services, connection, message);
    else this.#stray(connection);
  }

  /** No transfer is bound to any socket: every chunk is a stray, dropped and counted (F5). */
  #stray(connection: Connection): void {
    connection.strays++;
    // One line for the first, then few: a flood must not become a flood of the log.
    if (Number.isInteger(Math.log10(connection.strays)))
      this.#log.warn("stray_chunk", { connection: connection.conn, count: connection.strays });
  }

  async #greet(open: OpenConnection, message: string | ArrayBuffer): Promise<void> {
    if (typeof message !== "string") {
      this.#services.connections.close(open.socket, CLOSE.protocol, "binary frames come after hello-ok");
      return;
    }
    const early = await handshake(this.#services, this.#failures, open, message);
    const ready = this.#services.connections.of(open.socket);
    if (ready?.phase === "ready") await Promise.all(early.map((text) => dispatch(this.#services, ready, text)));
  }

  override webSocketClose(socket: WebSocket, code: number, reason: string): void {
    this.#gone(socket, reason === "" ? `closed (${code})` : reason);
    try {
      socket.close(code === 1005 || code === 1006 ? 1000 : code);
    } catch {
      // Closed both ways already.
    }
  }
  override webSocketError(socket: WebSocket): void {
    this.#gone(socket, "the link broke");
  }
  #gone(socket: WebSocket, reason: string): void {
    const connection = this.#services.connections.gone(socket);
    this.#settleHello(socket);
    if (connection?.phase === "ready" && connection.principal.mode === "node") this.#services.nodeLinks.went(connection, reason);
  }

  override async alarm(): Promise<void> {
    await this.#services.alarms.fire();
  }

  // ------------------------------------------------------------ for the Worker

  /** What a bearer token may do over HTTP, or why not. */
  async authenticate(asker: HttpAsker): Promise<HttpAdmission> {
    const grant = await this.#grant(asker);
    if (!grant.ok) return grant;
    const { kind } = grant.value;
    return { ok: true, value: { scopes: scopesOf({ kind, mode: kind === "node" || kind === "channel" ? kind : "client" }) } };
  }
  /** Where a file goes that somebody wants to upload, or why it may not. */
  async admitUpload(asker: HttpAsker, asked: UploadAsked): Promise<UploadAdmission> {
    const grant = await this.#grant(asker);
    return grant.ok ? this.#uploads.admit(this.#services, grant.value, asked, this.#services.clock.now()) : grant;
  }
  async #grant({ token, origin, address }: HttpAsker): Promise<Result<TokenGrant>> {
    const { tokens, clock } = this.#services;
    const now = clock.now();
    if (!originAllowed(origin ?? null, this.#allowedOrigins())) return fail("auth.origin");
    if (!tokens.configured(now)) return fail("auth.not_configured");
    const grant = token === undefined ? undefined : await tokens.verify(token, now);
    if (grant === undefined)
      return this.#failures.failed(address, now) ? fail("limit.rate", "Too many failed attempts. Wait a minute.") : fail("auth.required");
    return { ok: true, value: grant };
  }

  /** After a restart of the runtime: channels connect, and conversations that may have been interrupted go on (gateway rule D6). Answers how many were busy. */
  async resumeSessions(): Promise<number> {
    this.ctx.waitUntil(wakeChannels(this.#services.channels, (channel, error) => this.#log.error("wake_failed", { channel, error })));
    const { sessions, clock, ask } = this.#services;
    const waiting = [...sessions.activeSince(clock.now() - RESUME_WITHIN_MS, MAX_RESUMED)];
    let busy = 0;
    const work = async (): Promise<void> => {
      for (let key = waiting.shift(); key !== undefined; key = waiting.shift()) {
        try {
          if ((await ask(key, (session) => session.resume())).busy) busy++;
        } catch (error) {
          this.#log.error("resume_failed", { session: key, error });
        }
      }
    };
    await Promise.all(Array.from({ length: RESUME_AT_ONCE }, work));
    return busy;
  }

  // ------------------------------------------------------------ for channels (GatewayService)

  async channelInbound(account: ChannelRef, inbound: ChannelInbound): Promise<ChannelInboundOutcome> {
    return this.#services.channels.inbound(account, inbound);
  }
  async channelMediaKey(
    account: ChannelRef,
    inbound: ChannelInbound,
    file: { readonly mimeType: string; readonly index: number },
  ): Promise<string | undefined> {
    return this.#services.channels.mediaKey(account, inbound, file);
  }
  async channelStatus(account: ChannelRef, state: ChannelAccount): Promise<void> {
    await this.#services.channels.status(account, state);
  }
  async channelDelivered(account: ChannelRef, report: DeliveryReport): Promise<void> {
    this.#services.channels.delivered(account, report);
  }

  // ------------------------------------------------------------ for sessions (GatewayPort)

  async runContext(sessionKey: string, knownVersion: string | undefined): Promise<RunContext | null> {
    const { config, contextVersion, nodes, nodeLinks } = this.#services;
    const version = contextVersion();
    if (version === knownVersion) return null;
    const named = this.#named(sessionKey);
    const agent = config.agent(named?.address.agentId ?? config.defaultAgentId());
    const { own, isOpened } = this.#machinesOf(named);
    return {
      version,
      config: config.effective(),
      agent,
      ...machinesFor(own, isOpened, {
        tools: nodeLinks.bindings(),
        nodes: nodes.list((nodeId) => nodeLinks.isExpected(nodeId)),
      }),
      skillPins: this.#pins.list(agent.id).map(pinOnly),
    };
  }

  #named(sessionKey: string): Named | undefined {
    const { config } = this.#services;
    const named = canonicalKey(sessionKey, config.mainKey(), config.defaultAgentId());
    return named.ok ? named : undefined;
  }
  /** What is no conversation's name may use nothing. */
  #machinesOf(named: Named | undefined): { readonly own: boolean; readonly isOpened: (tool: string) => boolean } {
    if (named === undefined) return { own: false, isOpened: () => false };
    const { config, sessions } = this.#services;
    return {
      own: isOwners(named.address, sessions.find(named.key)),
      isOpened: isOpenedFor(named.address, config.effective().channels),
    };
  }

  async modelAccess(providers: readonly string[]): Promise<ModelAccess> {
    return this.#services.config.access(providers);
  }

  async publish(sessionKey: string, news: readonly SessionNews[]): Promise<void> {
    this.#services.connections.publish(sessionKey, news);
    this.#services.runWaits.saw(sessionKey, news);
  }

  /** Asked again here, whatever the run was shown and however long ago: the configuration of now decides. */
  async dispatchTool(call: ToolDispatch): Promise<DispatchOutcome> {
    const { own, isOpened } = this.#machinesOf(this.#named(call.sessionKey));
    const tool = qualifiedName(call.nodeId, call.tool);
    if (!own && !isOpened(tool)) {
      await this.#services.audit.append({ actor: `session:${call.sessionKey}`, action: "tool.dispatch", target: tool, decision: "denied" });
      return "refused";
    }
    return this.#services.nodeLinks.dispatch(call);
  }

  async cancelTools(nodeId: string, callIds: readonly string[], reason: string): Promise<void> {
    this.#services.nodeLinks.cancel(nodeId, callIds, reason);
  }

  async configGet(path: string | undefined): Promise<Result<unknown>> {
    const read = this.#services.config.read(path);
    return read.ok ? { ok: true, value: read.value.value } : read;
  }

  async sessionsList(limit: number): Promise<readonly { sessionKey: string; createdAt: number; lastActiveAt: number; label?: string }[]> {
    return this.#services.sessions.list(0, Math.min(Math.max(1, limit), LIMITS.pageItems));
  }

  async nodeLogs(nodeId: string | undefined, lines: number | undefined): Promise<Result<unknown>> {
    const node = logNode(this.#services, nodeId);
    return node.ok ? this.#services.calls.logs(node.value, lines, "session") : node;
  }

  async reply(call: ReplyCall): Promise<Result<void>> {
    const { channels } = this.#services;
    if (call.kind === "send") {
      const sent = await channels.deliverer.send(call.route, call.message);
      return sent.ok ? { ok: true, value: undefined } : sent;
    }
    if (call.kind === "live") await channels.deliverer.live(call.route, call.deliveryId, call.text);
    else await channels.deliverer.typing(call.route, call.active);
    return { ok: true, value: undefined };
  }

  async audit(entry: AuditInput): Promise<void> {
    await this.#services.audit.append(entry);
  }

  async search(input: SearchInput): Promise<Result<SearchAnswer>> {
    return findText(this.#services, input);
  }

  async searchableSessions(agentId: string, afterKey: string): Promise<readonly SearchableSession[]> {
    return this.#services.sessions.ofAgent(agentId, afterKey, SEARCHED_SESSIONS);
  }

  async sendToSession(input: SessionToSession): Promise<Result<SessionToSessionSent>> {
    return sendToSession(this.#services, input);
  }

  async channelPlaces(query: string, limit: number): Promise<ChannelPlaces> {
    return this.#services.channels.outgoing.places(query, limit);
  }

  async message(input: ChannelMessage): Promise<Result<ChannelMessageSent>> {
    return this.#services.channels.outgoing.message(input);
  }

  async skillsSeen(agentId: string, seen: readonly SeenSkill[]): Promise<readonly SkillPin[]> {
    return this.#services.skills.seen(agentId, seen).map(pinOnly);
  }

  async skillWriting(writing: SkillWriting): Promise<Result<void>> {
    return this.#services.skills.writing(writing);
  }
}
/** Sessions need no names of people. */
const pinOnly = ({ scope, name, sha256, next }: SkillPin): SkillPin => ({ scope, name, sha256, ...(next === undefined ? {} : { next }) });
