/** What the session's tests in the runtime share: a fake model and fake parts, and short functions for frequent requests. */
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { asAgentId, type ChatSendResult, type SearchHit } from "../../../protocol/gen/types.ts";
import { definitionSections } from "../../src/prompt/definition.ts";
import type { Remembering } from "../../src/ports/long-term-memory.ts";
import type { ChannelMessage, ReplyCall } from "../../src/ports/channels.ts";
import type { DispatchOutcome, ToolDispatch } from "../../src/ports/dispatch.ts";
import type { ApprovalReport } from "../../src/ports/approvals.ts";
import type { SessionAudit } from "../../src/ports/audit.ts";
import type { Grant } from "../../src/ports/grants.ts";
import type { GatewayPort, SessionNews } from "../../src/ports/gateway.ts";
import type { GsvError } from "../../src/ports/result.ts";
import type { ModelOutcome, ModelRequest } from "../../src/ports/model.ts";
import type { Result } from "../../src/ports/result.ts";
import type { ToolEntry } from "../../src/ports/tool-entry.ts";
import { machineEntry, nativeEntry } from "../support/tool-entries.ts";
import type { RunContext } from "../../src/ports/run-context.ts";
import type { SessionToSession } from "../../src/ports/session-to-session.ts";
import type { SessionIdentity, SessionSend, SessionPort } from "../../src/ports/session.ts";
import { sessionPort } from "../../src/platform/stubs.ts";
import { callTerms } from "../../src/models/terms.ts";
import type { SpendAnswer, SpendAsk } from "../../src/ports/spend.ts";
import type { WaitReport } from "../../src/ports/waits.ts";
import type { SessionParts } from "../../src/session/session-parts.ts";
import type { Session } from "../../src/app/session-do.ts";
import { wiring } from "../../src/app/session-wiring.ts";
import type { NativeTools } from "../../src/ports/native-tools.ts";
import { createSessionMedia, type SessionMediaDeps } from "../../src/features/media/session-media.ts";
import { createArchives } from "../../src/storage/archives.ts";
import type { Bucket } from "../../src/storage/bucket.ts";
import { createMemoryFiles } from "../../src/features/workspace/memory.ts";
import { createResultFiles } from "../../src/storage/results.ts";

/** Waits until `probe` gives a value; a failure names what was awaited. Its deadline does not use `Date.now`, because tests move that clock. */
export async function until<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
  timeoutMs = 30_000,
): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`waited in vain for ${what}`);
    await scheduler.wait(2);
  }
}
export function value<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

const USAGE = { input: 10, output: 5, total: 15, costUsd: 0.001 };
export function says(
  text: string,
  calls: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[] = [],
): ModelOutcome {
  return {
    kind: "replied",
    usage: USAGE,
    calls: calls.map((call, index) => ({ providerId: `call_${index}`, ...call })),
    message: {
      role: "assistant",
      content: [
        ...(text === "" ? [] : [{ type: "text" as const, text }]),
        ...calls.map((call, index) => ({ type: "toolCall" as const, id: `call_${index}`, ...call })),
      ],
      api: "test",
      provider: "demo",
      model: "demo",
      usage: USAGE,
      stopReason: calls.length > 0 ? "toolUse" : "stop",
      timestamp: 0,
    },
  };
}

/**
 * One call of the model, answered by the test. The session's code may continue only in its own object's context, so the test stores its
 * answer here and the fake model polls for it.
 */
export class ModelCall {
  readonly request: ModelRequest;
  #texts: string[] = [];
  #outcome: ModelOutcome | undefined;

  constructor(request: ModelRequest) {
    this.request = request;
  }
  stream(text: string): void {
    this.#texts.push(text);
  }
  answer(outcome: ModelOutcome): void {
    this.#outcome = outcome;
  }
  async play(): Promise<ModelOutcome> {
    for (;;) {
      for (const text of this.#texts.splice(0)) this.request.onText(text);
      if (this.#outcome) return this.#outcome;
      await scheduler.wait(2);
    }
  }
}
/** Fakes of everything that sessions call. The test sets their answers here, and reads which calls were made. */
export class Stage {
  readonly calls: ModelCall[] = [];
  readonly news: SessionNews[] = [];
  readonly publishes: number[] = [];
  readonly dispatches: ToolDispatch[] = [];
  readonly cancelled: string[] = [];
  readonly nativeRuns: string[] = [];
  /** Messages that were sent on channels and to other conversations. */
  readonly sentOut: (ChannelMessage | SessionToSession)[] = [];
  /** What a search finds. */
  hits: readonly SearchHit[] = [];
  contexts = 0;
  readonly approvals: ApprovalReport[] = [];
  /** What sessions asked of the spend ledger, and its answers. */
  readonly spendAsks: SpendAsk[] = [];
  spend: (ask: SpendAsk) => SpendAnswer = ({ need, report }) => ({
    ok: true,
    settled: report.count,
    grant: { costUsd: 100 * need.costUsd, tokens: 100 * need.tokens, calls: 64, until: Date.now() + 120_000 },
  });
  /** Stored secrets, and how often sessions asked for them. */
  secrets: readonly string[] = [];
  secretsAsked = 0;
  assembled = 0;
  bucketAway = false;
  /** Tokens of every model's window. */
  window = 1_000_000;
  compaction: RunContext["config"]["compaction"];
  nodes: RunContext["nodes"] = [];
  /** Allows every call, for tests that are not about the policy. */
  toolApproval: RunContext["config"]["toolApproval"] = { defaultDecision: "allow" };
  readonly audits: SessionAudit[] = [];
  defined: RunContext["defined"];
  /** Its agent is there no more. */
  isGone = false;
  /** What the prompt has in the place of the definition's role. */
  otherRole: string | undefined;
  /** Resolves when an entry is stored. */
  audited: () => Promise<string | undefined> = () => Promise.resolve(undefined);
  grants: readonly Grant[] = [];
  provider = "demo";
  tools: readonly ToolEntry[] = [];
  /** The transcriber of recordings. */
  speech: SessionMediaDeps = {};
  seesImages = true;
  /** The error with which each call of the model is refused. */
  refusal: GsvError | undefined;
  /** Absent: one tool that notes its runs. */
  native: NativeTools | undefined;
  transcription: RunContext["config"]["transcription"];
  dispatch: (call: ToolDispatch) => Promise<DispatchOutcome> = () => Promise.resolve("sent");
  /** Reports of calls that wait for machines, and the machines that are not connected. */
  readonly waits: WaitReport[] = [];
  readonly away = new Set<string>();
  readonly replies: ReplyCall[] = [];
  readonly remembered: Remembering[] = [];
  reply: (call: ReplyCall) => Promise<Result<void>> = () => Promise.resolve({ ok: true, value: undefined });
  /** When set, models answer at once. */
  auto: ((request: ModelRequest) => ModelOutcome) | undefined;
  resetPolicy: NonNullable<RunContext["config"]["session"]["defaultResetPolicy"]> = { mode: "manual" };

  /** From now on, sessions that start use these fakes. */
  open(): this {
    vi.spyOn(wiring, "createSessionParts").mockImplementation((bucket) => this.parts(bucket));
    return this;
  }
  parts(bucket: Bucket): SessionParts {
    const gateway: GatewayPort = {
      runContext: (_key, known) => {
        this.contexts += 1;
        const context = this.#context();
        return Promise.resolve(known === context.version ? null : context);
      },
      modelAccess: () => Promise.resolve({ apiKeys: {}, headers: {} }),
      packTool: ({ tool }) => Promise.resolve({ ok: false, error: { reason: "tool.unknown", message: `There is no tool ${tool}.` } }),
      approvals: (report) => {
        this.approvals.push(report);
        return Promise.resolve();
      },
      useGrants: (_key, ids) => Promise.resolve(ids.filter((id) => this.grants.some((grant) => grant.id === id))),
      reserveSpend: (ask) => {
        this.spendAsks.push(ask);
        return Promise.resolve(this.spend(ask));
      },
      secretValues: () => {
        this.secretsAsked += 1;
        return Promise.resolve(this.secrets);
      },
      publish: (_key, news) => {
        this.publishes.push(news.length);
        this.news.push(...news);
        return Promise.resolve();
      },
      dispatchTool: (call) => {
        this.dispatches.push(call);
        return this.dispatch(call);
      },
      awaitNodes: (report) => {
        this.waits.push(report);
        return Promise.resolve({ ready: report.calls.flatMap(({ callId, nodeId }) => (this.away.has(nodeId) ? [] : [callId])) });
      },
      cancelTools: (_node, callIds) => {
        this.cancelled.push(...callIds);
        return Promise.resolve();
      },
      configGet: () => Promise.resolve({ ok: true, value: {} }),
      sessionsList: () => Promise.resolve([]),
      nodeLogs: () => Promise.resolve({ ok: true, value: {} }),
      audit: (entry) => {
        this.audits.push(entry);
        return this.audited();
      },
      stopAll: () => Promise.resolve("stopped"),
      resumeAll: () => Promise.resolve("resumed"),
      remember: (input) => {
        this.remembered.push(input);
        return Promise.resolve({ ok: true, value: { id: "m", isNew: true, superseded: false } });
      },
      emitEvent: () => Promise.resolve({ ok: true, value: { id: "e", needsApproval: false } }),
      recall: () => Promise.resolve({ ok: true, value: { hits: this.hits.map((hit) => ({ kind: "text", hit })), notes: [] } }),
      search: () => Promise.resolve({ ok: true, value: { hits: [...this.hits], more: false, notes: [] } }),
      searchableSessions: () => Promise.resolve({ sessions: [], more: false }),
      transfer: () => Promise.resolve({ ok: true, value: { status: "done", sizeBytes: 0, sha256: "" } }),
      delegate: () => Promise.resolve({ ok: false, error: { reason: "agent.unknown", message: "There is no such agent." } }),
      sendToSession: (input) => {
        this.sentOut.push(input);
        return Promise.resolve({ ok: true, value: { status: "accepted", runId: "none", queued: false } });
      },
      cron: () => Promise.resolve({ ok: true, value: { value: {} } }),
      channelPlaces: () => Promise.resolve({ channels: [], places: [], more: false }),
      message: (input) => {
        this.sentOut.push(input);
        return Promise.resolve({ ok: true, value: { status: "queued", deliveryId: "none", to: "none" } });
      },
      skillsSeen: () => Promise.resolve([]),
      skillWriting: () => Promise.resolve({ ok: true, value: undefined }),
      fileChanging: () => Promise.resolve(),
      filesWritten: () => Promise.resolve(),
      reply: (call) => {
        this.replies.push(call);
        return this.reply(call);
      },
    };
    const archives = createArchives(bucket);
    return {
      gateway,
      model: {
        takesImages: () => this.seesImages,
        refusal: () => this.refusal,
        call: (request) => {
          if (this.auto) {
            request.onText("…");
            return Promise.resolve(this.auto(request));
          }
          const call = new ModelCall(request);
          this.calls.push(call);
          return call.play();
        },
      },
      prompts: {
        assemble: () => {
          this.assembled += 1;
          const text = this.otherRole ?? (this.defined ? definitionSections(this.defined.definition).core : "");
          const sections = this.defined ? [{ id: "core", title: "Your Role", layer: 1 as const, text }] : [];
          return Promise.resolve({ ok: true, value: { system: `prompt ${this.assembled}${text && ` ${text}`}`, sections } });
        },
      },
      native: this.native ?? {
        entries: [nativeEntry("gsv__Note", {}, "always")],
        run: (_name, _args, { callId }) => {
          this.nativeRuns.push(callId);
          return Promise.resolve({ ok: true, result: "noted" });
        },
      },
      archives: {
        put: (input) =>
          this.bucketAway
            ? Promise.resolve({ ok: false, error: { reason: "storage.failed", message: "The bucket is away." } })
            : archives.put(input),
      },
      files: createResultFiles(bucket),
      terms: callTerms,
      contextWindow: () => this.window,
      memory: createMemoryFiles(bucket),
      media: createSessionMedia(bucket, this.speech),
    };
  }
  #context(): RunContext {
    return {
      version: `${this.tools.length}-${JSON.stringify(this.resetPolicy)}-${JSON.stringify(this.toolApproval)}-${JSON.stringify(this.nodes)}-${JSON.stringify(this.defined)}-${this.isGone}-${this.grants.map(({ id }) => id).join()}`,
      config: {
        model: { provider: this.provider, id: "demo", fallbacks: [] },
        ...(this.compaction === undefined ? {} : { compaction: this.compaction }),
        timeouts: { llmMs: 600_000, toolMs: 60_000 },
        limits: { stepsPerRun: 50, runMs: 1_800_000, runCostUsd: 1 },
        session: { mainKey: "main", defaultResetPolicy: this.resetPolicy },
        userTimezone: "UTC",
        ...(this.transcription === undefined ? {} : { transcription: this.transcription }),
        ...(this.toolApproval === undefined ? {} : { toolApproval: this.toolApproval }),
      },
      agent: { id: asAgentId("main") },
      tools: this.tools,
      nodes: this.nodes,
      skillPins: [],
      ...(this.defined === undefined ? {} : { defined: this.defined }),
      ...(this.isGone ? { isGone: true as const } : {}),
      grants: this.grants,
    };
  }
  call(index: number): Promise<ModelCall> {
    return until(`model call ${index}`, () => this.calls[index]);
  }
  /** Log events of a run that ended it. */
  ends(runId: string): string[] {
    return this.news.flatMap(({ payload }) =>
      "state" in payload &&
      payload.runId === runId &&
      (payload.state === "final" || payload.state === "error" || payload.state === "aborted")
        ? [payload.state]
        : [],
    );
  }
  ended(runId: string): Promise<string> {
    return until(`the end of ${runId}`, () => this.ends(runId)[0]);
  }
}
export const onNode = (nodeId: string, tool: string, more: { ledger?: boolean; idempotent?: boolean } = {}): ToolEntry =>
  machineEntry(nodeId, tool, more.idempotent === undefined ? {} : { idempotent: more.idempotent }, more.ledger ?? true);

let names = 0;
/** A session of the test's own. */
export interface TestSession {
  readonly identity: SessionIdentity;
  /** Fresh each time: a stub of an object that died stays broken. */
  readonly stub: DurableObjectStub<Session>;
  readonly port: SessionPort;
  readonly send: (id: string, text?: string, more?: Partial<SessionSend>) => Promise<Result<ChatSendResult>>;
}
export function newSession({ isOwnersSession = false }: { readonly isOwnersSession?: boolean } = {}): TestSession {
  const key = `agent:main:cli:dm:t${++names}-${crypto.randomUUID().slice(0, 8)}`;
  const identity: SessionIdentity = { key, ref: `ref${names}`, agentId: "main", isOwnersSession };
  const stub = (): DurableObjectStub<Session> => env.SESSION.getByName(key);
  return {
    identity,
    get stub() {
      return stub();
    },
    get port() {
      return sessionPort(env, key);
    },
    send: (id, text = `say ${id}`, more = {}) =>
      sessionPort(env, key).send({
        identity,
        messageId: id,
        runId: `run-${id}`,
        text,
        origin: { kind: "client", clientId: "test" },
        ...more,
      }),
  };
}
/** Waits until a session has no run. */
export const idle = (port: SessionPort): Promise<true> =>
  until("the session to be idle", async () => value(await port.stats()).state === "idle");
/**
 * An answer leaves the object only when everything before it is on disk. The parts that a test plays are called inside the object,
 * without that gate, so a test that takes the object away right after one of them must wait for it here.
 */
export const durable = async (s: TestSession): Promise<void> => void (await s.port.stats());
