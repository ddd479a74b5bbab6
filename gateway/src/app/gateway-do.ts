/**
 * The Gateway Durable Object: sockets, the alarm, and the calls of sessions, channels and the Worker. A shell: it composes the gateway,
 * passes every call on, and decides nothing. Waking is cheap: nothing large is read before it is needed.
 */
import { DurableObject } from "cloudflare:workers";
import type {
  AgentJob,
  AgentReport,
  ChannelAccount,
  ChannelInbound,
  ChannelInboundOutcome,
  DeliveryReport,
  JobListParams,
  JobListResult,
  JobTaken,
  JoinRequest,
  JoinResult,
  RunRequest,
} from "../../../protocol/gen/types.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { type Env, isEmbedded } from "../platform/env.ts";
import type { ApprovalReport } from "../ports/approvals.ts";
import type { SessionAudit } from "../ports/audit.ts";
import type {
  ChannelMessage,
  ChannelMessageSent,
  ChannelPlaces,
  ChannelPort,
  ChannelRef,
  FilePlace,
  ReplyCall,
} from "../ports/channels.ts";
import type { DelegationAsk, DelegationStand } from "../ports/delegation.ts";
import type { DispatchOutcome, ToolDispatch } from "../ports/dispatch.ts";
import type { Emission, Emitted, EventConsumerPort, Settled } from "../ports/events.ts";
import type { GatewayPort, SessionNews } from "../ports/gateway.ts";
import type { Admitted, HookRequest, HookTakenAs, HttpCaller, HttpPort, TaskRequest, UploadAsked, UploadPermit } from "../ports/http.ts";
import type { JobHostPort, JobQueueStatus, JobsHttpPort, JobTurn } from "../ports/jobs.ts";
import type { Recalled, RecallInput, Remembered, Remembering } from "../ports/long-term-memory.ts";
import type { Origin } from "../ports/origin.ts";
import type { PackToolCall } from "../ports/packs.ts";
import { failure, type Result } from "../ports/result.ts";
import type { ModelAccess, RunContext } from "../ports/run-context.ts";
import type { CronCall, CronTold } from "../ports/schedule.ts";
import type { SearchableSessions, SearchAnswer, SearchInput } from "../ports/search.ts";
import type { SessionToSession, SessionToSessionSent } from "../ports/session-to-session.ts";
import type { SpendAnswer, SpendAsk } from "../ports/spend.ts";
import type { NamedTask, TaskStatus } from "../ports/tasks.ts";
import type { SeenSkill, SkillPin, SkillWriting } from "../ports/skills.ts";
import type { SessionFileChanging } from "../ports/changes.ts";
import type { TransferAsk, TransferTold } from "../ports/transfers.ts";
import type { WaitAnswer, WaitReport } from "../ports/waits.ts";
import { composeGateway } from "./compose.ts";
import { FEATURES } from "./features.ts";
import { problemResponse } from "./http/problem.ts";

type FeaturePorts = ReturnType<typeof FEATURES.create>["ports"];
/** Ports that use no agent, tool or topic, by which a call need not wait for the packs. Every other port comes from `#whole()` alone. */
type EarlyPorts = Pick<
  FeaturePorts,
  | "approvalsRpc"
  | "changesRpc"
  | "importing"
  | "joinRpc"
  | "mediaRpc"
  | "nodesRpc"
  | "searchRpc"
  | "skillApprovals"
  | "skillsRpc"
  | "spendRpc"
  | "stopped"
  | "stopRpc"
  | "telemetryRpc"
> & {
  readonly channelsRpc: Omit<FeaturePorts["channelsRpc"], "inbound" | "message">;
  readonly jobsHttp: Omit<FeaturePorts["jobsHttp"], "submitJob">;
  readonly jobsRpc: Pick<FeaturePorts["jobsRpc"], "updateQueue">;
  readonly sessionsRpc: Omit<FeaturePorts["sessionsRpc"], "send">;
};

export class Gateway
  extends DurableObject<Env>
  implements GatewayPort, ChannelPort, HttpPort, JobsHttpPort, JobHostPort, EventConsumerPort
{
  readonly #kernel: Kernel;
  readonly #ports: EarlyPorts;
  /**
   * A call that may use an agent, a tool or a topic waits until the active packs have added theirs. Not in the constructor: a module that
   * is imported while the object blocks other events never arrives.
   */
  readonly #ready: () => Promise<void> | undefined;
  /** All ports. A call that needs one beside `EarlyPorts` can get it in no other way, so it cannot forget to wait. */
  readonly #whole: () => Promise<FeaturePorts>;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    const { kernel, ports, ready } = composeGateway(ctx, env, this, FEATURES);
    this.#ready = ready;
    this.#kernel = kernel;
    this.#ports = ports;
    this.#whole = async () => {
      await ready();
      // Nothing of it is stored, so that it is sent again later.
      if (ports.importing() !== undefined) throw new Error("a home is being imported into this gateway");
      return ports;
    };
  }

  // ------------------------------------------------------------ sockets and the alarm

  override async fetch(request: Request): Promise<Response> {
    // Cloudflare's edge sets this header; on an embedded gateway a caller could write anything into it.
    const address = isEmbedded(this.env) ? "" : (request.headers.get("CF-Connecting-IP") ?? "");
    const caller = await this.#kernel.server.caller(request, address);
    const refused = this.#kernel.server.refusal(request, caller);
    if (refused !== undefined) return problemResponse(refused.reason, refused.message);
    const { 0: client, 1: server } = new WebSocketPair();
    this.#kernel.server.accept(server, caller);
    return new Response(null, { status: 101, webSocket: client });
  }
  /** Waits only where it must: a promise for each chunk of a file costs memory until the next collection. */
  override webSocketMessage(socket: WebSocket, message: string | ArrayBuffer): Promise<void> | void {
    const take = (): Promise<void> | void => this.#kernel.server.message(socket, message);
    const starting = this.#ready();
    return starting === undefined ? take() : starting.then(take);
  }
  override webSocketClose(socket: WebSocket, code: number, reason: string): void {
    this.#kernel.server.gone(socket, { kind: "closed", text: reason === "" ? `closed (${code})` : reason });
    try {
      socket.close(code === 1005 || code === 1006 ? 1000 : code);
    } catch {
      // Closed both ways already.
    }
  }
  override webSocketError(socket: WebSocket): void {
    this.#kernel.server.gone(socket, { kind: "broken", text: "the link broke" });
  }
  override async alarm(): Promise<void> {
    await this.#ready();
    await this.#kernel.alarm();
  }

  // ------------------------------------------------------------ for the Worker

  async authenticate(caller: HttpCaller): Promise<Admitted<{ readonly scopes: readonly string[] }>> {
    return this.#kernel.admission.authenticate(caller);
  }
  async admitUpload(caller: HttpCaller, asked: UploadAsked): Promise<Admitted<UploadPermit>> {
    const closed = this.#ports.importing();
    if (closed !== undefined) return closed;
    return this.#ports.mediaRpc.admitUpload(caller, asked);
  }
  async hook(request: HookRequest): Promise<Admitted<HookTakenAs>> {
    const closed = this.#ports.importing();
    if (closed !== undefined) return closed;
    const ports = await this.#whole();
    return ports.hooksRpc.hook(request);
  }
  async join(request: JoinRequest, address: string): Promise<Admitted<JoinResult>> {
    const closed = this.#ports.importing();
    if (closed !== undefined) return closed;
    await this.#ready();
    return this.#ports.joinRpc.join(request, address);
  }
  async runTask(caller: HttpCaller, request: TaskRequest): Promise<Admitted<AgentReport>> {
    const closed = this.#ports.importing();
    if (closed !== undefined) return closed;
    const ports = await this.#whole();
    return ports.tasksRpc.runTask(caller, request);
  }
  async submitJob(caller: HttpCaller, request: TaskRequest): Promise<Admitted<JobTaken>> {
    const closed = this.#ports.importing();
    if (closed !== undefined) return closed;
    const ports = await this.#whole();
    return ports.jobsHttp.submitJob(caller, request);
  }
  async listJobs(params: JobListParams): Promise<Admitted<JobListResult>> {
    const closed = this.#ports.importing();
    if (closed !== undefined) return closed;
    return this.#ports.jobsHttp.listJobs(params);
  }
  async getJob(id: string): Promise<Admitted<AgentJob>> {
    const closed = this.#ports.importing();
    if (closed !== undefined) return closed;
    return this.#ports.jobsHttp.getJob(id);
  }
  async cancelJob(id: string): Promise<Admitted<AgentJob>> {
    const closed = this.#ports.importing();
    if (closed !== undefined) return closed;
    return this.#ports.jobsHttp.cancelJob(id);
  }
  /** After a restart of the runtime: channels connect, and sessions that may have been interrupted go on (gateway rule D6). */
  async restarted(): Promise<void> {
    await this.#ready();
    await this.#kernel.restarted();
  }

  /** Throws what opening this object throws: its tables are migrated before it answers. */
  async opened(): Promise<void> {}

  /** Throws when this version can't use the state. The gateway's own tables were migrated before, or nothing of this object answers. */
  async checkState(): Promise<void> {
    await this.#ports.sessionsRpc.checkState();
  }

  // ------------------------------------------------------------ for the queue (EventConsumerPort)

  async consumeEvent(text: string, isDead: boolean): Promise<Settled> {
    const ports = await this.#whole();
    return ports.eventsRpc.consumeEvent(text, isDead);
  }

  // ------------------------------------------------------------ for jobs (JobHostPort)

  async claimJob(turn: JobTurn): Promise<boolean> {
    const ports = await this.#whole();
    return ports.jobsRpc.claimJob(turn);
  }
  async updateQueue(id: string, place: JobQueueStatus): Promise<void> {
    return this.#ports.jobsRpc.updateQueue(id, place);
  }
  async beginJob(task: NamedTask, request: RunRequest): Promise<Result<string>> {
    const ports = await this.#whole();
    return ports.jobsRpc.beginJob(task, request);
  }
  async lookAtJob(task: Pick<NamedTask, "id" | "agentId">, seen: readonly string[]): Promise<Result<TaskStatus>> {
    const ports = await this.#whole();
    return ports.jobsRpc.lookAtJob(task, seen);
  }
  async stopJob(task: Pick<NamedTask, "id" | "agentId">): Promise<Result<void>> {
    const ports = await this.#whole();
    return ports.jobsRpc.stopJob(task);
  }

  // ------------------------------------------------------------ for channels (GatewayService)

  async channelInbound(account: ChannelRef, inbound: ChannelInbound): Promise<ChannelInboundOutcome> {
    const ports = await this.#whole();
    return ports.channelsRpc.inbound(account, inbound);
  }
  async channelMediaKey(
    account: ChannelRef,
    inbound: ChannelInbound,
    file: { readonly mimeType: string; readonly index: number },
  ): Promise<string | undefined> {
    return this.#ports.channelsRpc.mediaKey(account, inbound, file);
  }
  async channelFileKey(
    account: ChannelRef,
    inbound: ChannelInbound,
    file: { readonly mimeType: string; readonly index: number; readonly sizeBytes: number },
  ): Promise<FilePlace> {
    await this.#whole();
    return this.#ports.channelsRpc.fileKey(account, inbound, file);
  }
  async channelMayRead(account: ChannelRef, deliveryId: string, r2Key: string): Promise<boolean> {
    return this.#ports.channelsRpc.mayRead(account, deliveryId, r2Key);
  }
  async channelRefused(channel: string | undefined, claimed: string): Promise<void> {
    await this.#ports.channelsRpc.refused(channel, claimed);
  }
  async channelStatus(account: ChannelRef, state: ChannelAccount): Promise<void> {
    await this.#ports.channelsRpc.status(account, state);
  }
  async channelDelivered(account: ChannelRef, report: DeliveryReport): Promise<void> {
    this.#ports.channelsRpc.delivered(account, report);
  }
  async channelMayDeliver(): Promise<boolean> {
    await this.#ready();
    return this.#ports.channelsRpc.mayDeliver();
  }

  // ------------------------------------------------------------ for sessions (GatewayPort)

  async runContext(sessionKey: string, knownVersion: string | undefined): Promise<RunContext | null> {
    await this.#ready();
    return this.#kernel.runContext(sessionKey, knownVersion);
  }
  async modelAccess(providers: readonly string[]): Promise<ModelAccess | null> {
    // For a session that does not know of the stop yet.
    if (this.#ports.stopped() !== undefined) return null;
    return this.#kernel.ports.config.access(providers);
  }
  async secretValues(): Promise<readonly string[]> {
    return this.#kernel.ports.secretValues();
  }
  async configGet(path: string | undefined): Promise<Result<unknown>> {
    const read = this.#kernel.ports.config.read(path);
    return read.ok ? { ok: true, value: read.value.value } : read;
  }
  async audit({ args, ...entry }: SessionAudit): Promise<string | undefined> {
    const { audit, contextVersion, ids } = this.#kernel.ports;
    audit.append({ ...entry, ...(args === undefined ? {} : { argsHash: await ids.sha256(JSON.stringify(args)) }) });
    return contextVersion();
  }
  async useGrants(sessionKey: string, ids: readonly string[]): Promise<readonly string[]> {
    return this.#ports.approvalsRpc.useGrants(sessionKey, ids);
  }
  async approvals(report: ApprovalReport): Promise<void> {
    this.#ports.approvalsRpc.report(report);
  }
  async stopAll(by: string, origin: Origin): Promise<string> {
    return this.#ports.stopRpc.stopFor(by, origin);
  }
  async resumeAll(by: string, origin: Origin): Promise<string> {
    return this.#ports.stopRpc.resumeFor(by, origin);
  }
  async publish(sessionKey: string, news: readonly SessionNews[]): Promise<void> {
    this.#ports.telemetryRpc.published(sessionKey, news);
    this.#ports.sessionsRpc.publish(sessionKey, news);
  }
  async sessionsList(limit: number): Promise<readonly { sessionKey: string; createdAt: number; lastActiveAt: number; label?: string }[]> {
    return this.#ports.sessionsRpc.list(limit);
  }
  async searchableSessions(agentId: string, afterKey: string): Promise<SearchableSessions> {
    return this.#ports.sessionsRpc.searchable(agentId, afterKey);
  }
  async sendToSession(input: SessionToSession): Promise<Result<SessionToSessionSent>> {
    const ports = await this.#whole();
    return ports.sessionsRpc.send(input);
  }
  async delegate(asked: DelegationAsk): Promise<Result<DelegationStand>> {
    const ports = await this.#whole();
    return ports.delegationRpc.delegate(asked);
  }
  async dispatchTool(call: ToolDispatch): Promise<DispatchOutcome> {
    if (this.#ports.stopped() !== undefined) return "offline";
    return this.#ports.nodesRpc.dispatch(call);
  }
  async awaitNodes(report: WaitReport): Promise<WaitAnswer> {
    const answer = await this.#ports.nodesRpc.awaitNodes(report);
    return this.#ports.stopped() === undefined ? answer : { ready: [] };
  }
  async cancelTools(nodeId: string, callIds: readonly string[], reason: string): Promise<void> {
    this.#ports.nodesRpc.cancel(nodeId, callIds, reason);
  }
  async nodeLogs(nodeId: string | undefined, lines: number | undefined): Promise<Result<unknown>> {
    return this.#ports.nodesRpc.logs(nodeId, lines);
  }
  async reply(call: ReplyCall): Promise<Result<void>> {
    return this.#ports.channelsRpc.reply(call);
  }
  async cron(call: CronCall): Promise<Result<CronTold>> {
    const ports = await this.#whole();
    return ports.scheduleRpc.cron(call);
  }
  async channelPlaces(query: string, limit: number): Promise<ChannelPlaces> {
    return this.#ports.channelsRpc.places(query, limit);
  }
  async message(input: ChannelMessage): Promise<Result<ChannelMessageSent>> {
    const ports = await this.#whole();
    if (ports.stopped() !== undefined) return failure("gateway.stopped", "GSV is stopped, so the message was not sent.");
    return ports.channelsRpc.message(input);
  }
  async search(input: SearchInput): Promise<Result<SearchAnswer>> {
    return this.#ports.searchRpc.find(input);
  }
  async filesWritten(): Promise<void> {
    this.#ports.searchRpc.filesWritten();
  }
  async remember(input: Remembering): Promise<Result<Remembered>> {
    const ports = await this.#whole();
    return ports.memoryRpc.remember(input);
  }
  async recall(input: RecallInput): Promise<Result<Recalled>> {
    const ports = await this.#whole();
    return ports.memoryRpc.recall(input);
  }
  async emitEvent(emission: Emission): Promise<Result<Emitted>> {
    const ports = await this.#whole();
    if (ports.stopped() !== undefined) return failure("gateway.stopped", "GSV is stopped, so the event was not emitted.");
    return ports.eventsRpc.emitEvent(emission);
  }
  async packTool(call: PackToolCall): Promise<Result<unknown>> {
    const ports = await this.#whole();
    if (ports.stopped() !== undefined) return failure("gateway.stopped", "GSV is stopped, so the tool was not called.");
    return ports.packsRpc.packTool(call);
  }
  async transfer(ask: TransferAsk): Promise<Result<TransferTold>> {
    const ports = await this.#whole();
    return ports.transfersRpc.transfer(ask);
  }
  async skillsSeen(agentId: string, seen: readonly SeenSkill[]): Promise<readonly SkillPin[]> {
    return this.#ports.skillsRpc.seen(agentId, seen);
  }
  async reserveSpend(ask: SpendAsk): Promise<SpendAnswer> {
    return this.#ports.spendRpc.reserve(ask);
  }
  async fileChanging(change: SessionFileChanging): Promise<void> {
    this.#ports.changesRpc.fileChanging(change);
  }
  async skillWriting(writing: SkillWriting): Promise<Result<void>> {
    return this.#ports.skillApprovals.writing(writing);
  }
}
