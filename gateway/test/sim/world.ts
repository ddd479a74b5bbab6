/**
 * The world around one session: its disk, its incarnations, and the far ends that it talks to, with everything that can go wrong
 * between them. Runs the real driver, pump, publisher and service; only the platform and the far ends are made up.
 */
import { hashPair, hex32 } from "../../../protocol/runtime/hash.ts";
import { asAgentId, type OutboundMessage, type ToolResultParams } from "../../../protocol/gen/types.ts";
import type { GatewayPort, SessionNews } from "../../src/ports/gateway.ts";
import type { RunContext } from "../../src/ports/run-context.ts";
import type { NodeChange, ReplyRoute, SessionIdentity } from "../../src/ports/session.ts";
import { type DriverHost, SessionDriver } from "../../src/session/driver.ts";
import type { SessionParts } from "../../src/session/session-parts.ts";
import { SessionService } from "../../src/session/session-service.ts";
import type { SessionStore } from "../../src/session/store/session-store.ts";
import type { ToolEntry } from "../../src/ports/tool-entry.ts";
import type { SpendAnswer, SpendAsk } from "../../src/ports/spend.ts";
import { machineEntry, nativeEntry } from "../support/tool-entries.ts";
import { FakeLedger } from "./ledger.ts";
import { FakeBucket } from "./bucket.ts";
import { MemoryStore } from "./memory-store.ts";
import { FakeModel } from "./model.ts";
import { Owner } from "./owner.ts";
import { FakeNode, type NodePorts } from "./nodes.ts";
import { type Rng, rng } from "./rng.ts";
import { VirtualTime } from "./time.ts";
import { FakeWaits } from "./waits.ts";
import { historyProblem } from "./history.ts";

export interface WorldOptions {
  readonly seed: number;
  /** Of a crash at each border. */
  readonly crashRate: number;
  /** Crash at exactly this border. */
  readonly crashAt?: number;
  /** Lost answers, failing models, nodes and buckets, doubled results. */
  readonly faults: boolean;
  /** Reset policy of the configuration; manual by default. */
  readonly idleMinutes?: number;
  /** Tokens of the model's window; so many by default that it never fills. */
  readonly window?: number;
  /** The channel that answers go to does not exist any more. */
  readonly channelGone?: boolean;
  /** Which calls need the owner's word. */
  readonly asks?: "some" | "all" | undefined;
  /** The owner denies everything, and the model makes the same call again and again. */
  readonly stubborn?: boolean;
  /** The owner answers no question. */
  readonly silent?: boolean;
  /** Of one run, without what its owner allows. */
  readonly stepsPerRun?: number;
  /** Machines are away for long, and calls may wait for them. */
  readonly waits?: boolean;
}
/** The session's incarnation ended while a caller waited for it. */
class Died extends Error {}
class NetworkError extends Error {}

/** Where some of the messages come from. */
export const ROUTE: ReplyRoute = { channel: "sim", accountId: "default", peer: { kind: "dm", id: "anna" } };
export const IDENTITY: SessionIdentity = { key: "agent:main:cli:dm:main", ref: "simref0000", agentId: "main", isOwnersSession: true };
export const LIMITS_OF_RUN = { stepsPerRun: 5, runMs: 1_800_000, runCostUsd: 1 };
const TOOL_MS = 20_000;
const LLM_MS = 15_000;

interface Incarnation {
  dead: boolean;
  readonly driver: SessionDriver;
  readonly service: SessionService;
  readonly died: Promise<never>;
  readonly kill: () => void;
}

export class World {
  readonly time = new VirtualTime();
  readonly rng: Rng;
  readonly stepsPerRun: number;
  readonly disk = new MemoryStore();
  readonly nodes: readonly FakeNode[];
  readonly model: FakeModel;
  readonly bucket: FakeBucket;
  readonly owner: Owner;
  /** Rises when the policy changes, or what is connected. */
  policy = 0;
  readonly ledger: FakeLedger;
  /** The gateway's index of calls that wait for machines. */
  readonly waits = new FakeWaits();
  readonly results = new Map<string, string>();
  /** What one faithful client got, in order, doubles included. */
  readonly received: SessionNews[] = [];
  /** What a platform was told, by delivery. */
  readonly said = new Map<string, string>();
  /** Native writes by call: safe to repeat, so counted only for curiosity. */
  readonly nativeRuns = new Map<string, number>();
  readonly problems: string[] = [];
  faulty: boolean;
  readonly channelGone: boolean;
  kills = 0;
  borders = 0;
  jumped = false;
  readonly #options: WorldOptions;
  #incarnation: Incarnation | undefined;
  #ids = 0;
  #alarmAt: number | undefined;
  #cancelAlarm: () => void = () => {};
  #alarmRunning = false;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.rng = rng(options.seed);
    this.stepsPerRun = options.stepsPerRun ?? LIMITS_OF_RUN.stepsPerRun;
    this.faulty = options.faults;
    this.channelGone = options.channelGone ?? false;
    const shared = { time: this.time, rng: this.rng, faulty: () => this.faulty };
    const ports: NodePorts = {
      ...shared,
      result: (nodeId, result) => this.toolResult(nodeId, result),
      changed: (change) => this.#nodeChanged(change),
    };
    this.nodes = [new FakeNode("lap", true, ports), new FakeNode("old", false, ports)];
    this.bucket = new FakeBucket(shared);
    this.owner = new Owner({
      ...shared,
      answer: async (answer) => {
        const taken = await this.call((service) => service.answerApproval(answer));
        if (taken.ok) return taken.value;
        if (taken.error.reason === "approval.not_found") return undefined;
        throw new Died();
      },
      problem: (what) => this.problem(what),
      hasWaited: (callId) => this.waits.seen.has(callId),
      stubborn: options.stubborn ?? false,
      silent: options.silent ?? false,
    });
    this.ledger = new FakeLedger(() => this.time.wall());
    this.model = new FakeModel({
      ...shared,
      disk: this.disk,
      ...(options.window === undefined ? {} : { window: options.window }),
      border: () => this.border(),
      stubborn: options.stubborn ?? false,
      waits: options.waits ?? false,
      problem: (what) => this.problem(what),
    });
  }
  problem(what: string): void {
    if (this.problems.length < 20) this.problems.push(what);
  }

  // ---------------------------------------------------------------- the session's incarnations

  get incarnation(): Incarnation {
    this.#incarnation ??= this.#newIncarnation();
    return this.#incarnation;
  }
  get alive(): boolean {
    return this.#incarnation !== undefined;
  }
  #newIncarnation(): Incarnation {
    let kill: () => void = () => {};
    const died = new Promise<never>((_resolve, reject) => {
      kill = () => reject(new Died());
    });
    died.catch(() => {});
    // The host's closures look at the incarnation that they belong to.
    const self: { incarnation?: Incarnation } = {};
    const isDead = (): boolean => self.incarnation?.dead ?? false;
    const host: DriverHost = {
      store: this.#guarded(isDead),
      wall: () => this.time.wall(),
      random: () => this.rng.next(),
      freshId: () => `id-${++this.#ids}`,
      sha256: async (text) => hashPair(text).map(hex32).join(""),
      setAlarm: (wall) => {
        if (!isDead()) this.#setAlarm(wall);
      },
      keep: () => {},
      after: (ms, work) => this.time.after(ms, () => !isDead() && work()),
      log: (event, { what, error }) => {
        if (!isDead() && !(error instanceof NetworkError))
          this.problem(`${event}: ${String(what)}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      },
    };
    const driver = new SessionDriver(host, this.#parts(isDead));
    const service = new SessionService(driver, { after: host.after, freshId: host.freshId, sha256: async (text) => text });
    const incarnation: Incarnation = { dead: false, driver, service, died, kill };
    self.incarnation = incarnation;
    return incarnation;
  }
  /** The process ends here and now. Someone or something brings it back within 35 s. */
  kill(): void {
    const incarnation = this.#incarnation;
    if (!incarnation) return;
    this.kills += 1;
    incarnation.dead = true;
    this.#incarnation = undefined;
    incarnation.kill();
    this.#alarmRunning = false;
    const alarm = this.#alarmAt;
    this.#cancelAlarm();
    if (alarm !== undefined) this.#setAlarm(alarm);
    // Without a jump the alarm alone must do; with one, the runtime's start asks the session to go on (D6).
    if (this.jumped || this.rng.chance(0.2))
      this.time.after(this.rng.int(1, 2_000), () => void this.call((service) => service.resume()).catch(() => {}));
  }
  /** A place where a process can die. Throws when it does. */
  border(): void {
    this.borders += 1;
    const now = this.borders === this.#options.crashAt || (this.faulty && this.rng.chance(this.#options.crashRate));
    if (!now) return;
    this.kill();
    throw new Died();
  }
  #soon(isDead: () => boolean): void {
    this.borders += 1;
    if (this.borders !== this.#options.crashAt && !(this.faulty && this.rng.chance(this.#options.crashRate))) return;
    queueMicrotask(() => {
      if (!isDead()) this.kill();
    });
  }
  #guarded(isDead: () => boolean): SessionStore {
    const { disk } = this;
    const living = <T>(work: () => T): T => {
      if (isDead()) throw new Died();
      return work();
    };
    return {
      transaction: (work) =>
        living(() => {
          const writes = disk.writes;
          const result = disk.transaction(work);
          if (disk.writes !== writes) {
            const problem = historyProblem(disk.everything);
            if (problem !== undefined) this.problem(problem);
            // The alarm that is set in the same turn is part of the same commit on the platform, so the end comes right after it.
            this.#soon(isDead);
          }
          return result;
        }),
      load: () => living(() => disk.load()),
      seen: (key) => living(() => disk.seen(key)),
      queueFront: (withSteered) => living(() => disk.queueFront(withSteered)),
      queued: () => living(() => disk.queued()),
      queuedRun: (runId) => living(() => disk.queuedRun(runId)),
      write: (before, step, seen) => living(() => disk.write(before, step, seen)),
      rows: (from, limit) => living(() => disk.rows(from, limit)),
      rowAt: (seq) => living(() => disk.rowAt(seq)),
      oldestSeq: (nextSeq) => living(() => disk.oldestSeq(nextSeq)),
      resultText: (callId) => living(() => disk.resultText(callId)),
      mediaNumbers: (keys) => living(() => disk.mediaNumbers(keys)),
      mediaKey: (number) => living(() => disk.mediaKey(number)),
      dropMediaNumbers: (keep) => living(() => disk.dropMediaNumbers(keep)),
      prune: (bounds) => living(() => disk.prune(bounds)),
    };
  }

  /** What the platform does with alarms: one, at least once, not two at a time, again when it failed. */
  #setAlarm(wall: number): void {
    this.#cancelAlarm();
    this.#alarmAt = wall;
    this.#cancelAlarm = this.time.after(wall - this.time.wall(), () => this.#fire());
  }
  #fire(): void {
    if (this.#alarmRunning) {
      this.#cancelAlarm = this.time.after(100, () => this.#fire());
      return;
    }
    this.#alarmAt = undefined;
    this.#alarmRunning = true;
    const incarnation = this.incarnation;
    const ended = (): void => {
      if (!incarnation.dead) this.#alarmRunning = false;
      // The handler did not end, its process did: the platform tries again.
      else if (this.#alarmAt === undefined) this.#setAlarm(this.time.wall() + 2_000);
    };
    Promise.race([incarnation.driver.alarm(), incarnation.died]).then(ended, ended);
  }
  jump(ms: number): void {
    this.jumped = true;
    this.time.wallOffset += ms;
  }

  /** A call of one of the session's methods. Rejects when the incarnation that took it ended first. */
  async call<T>(work: (service: SessionService) => Promise<T>): Promise<T> {
    const incarnation = this.incarnation;
    const asked = Promise.resolve()
      .then(() => work(incarnation.service))
      .catch((error: unknown) => {
        // Nothing that a caller asks makes a session throw.
        if (!incarnation.dead)
          this.problem(`a caller was given ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
        throw error;
      });
    const answer = await Promise.race([asked, incarnation.died]);
    if (incarnation.dead) throw new Died();
    return answer;
  }
  toolResult(nodeId: string, result: ToolResultParams): Promise<unknown> {
    return this.call((service) => service.toolResult(nodeId, result));
  }
  #nodeChanged(change: NodeChange): void {
    const tell = (): void => {
      void this.call((service) => service.nodeChanged(change)).catch(() => {
        // The gateway tells the next incarnation too, most of the time.
        if (!this.faulty || this.rng.chance(0.8)) this.time.after(100, () => this.#stillTrue(change) && tell());
      });
    };
    this.time.after(this.rng.int(1, 100), tell);
  }
  #stillTrue(change: NodeChange): boolean {
    return this.nodes.some((node) => node.id === change.nodeId && node.online === change.online);
  }

  // ---------------------------------------------------------------- the far ends

  /** A request over the network: it may get there though its sender dies, and its answer may be lost. */
  #remote<T>(isDead: () => boolean, work: () => T, most = 50): Promise<T> {
    return new Promise((resolve, reject) => {
      if (isDead()) return;
      try {
        this.border();
      } catch {
        return;
      }
      this.time.after(this.rng.int(0, most), () => {
        if (isDead() && this.rng.chance(0.5)) return;
        const fails = this.faulty && this.rng.chance(0.02);
        if (fails && this.rng.chance(0.5)) {
          if (!isDead()) reject(new NetworkError("the network failed on the way there"));
          return;
        }
        const result = work();
        this.time.after(this.rng.int(0, most), () => {
          if (isDead()) return;
          if (fails) reject(new NetworkError("the network failed on the way back"));
          else resolve(result);
        });
      });
    });
  }
  /** Grants little, so that sessions often ask; every seventh answer is lost. Takes no chance from older histories. */
  #reserve(isDead: () => boolean, ask: SpendAsk): Promise<SpendAnswer> {
    return new Promise((resolve, reject) => {
      const answer = this.ledger.reserve(structuredClone(ask));
      if (isDead()) return;
      if (this.faulty && this.ledger.asked % 7 === 0) reject(new NetworkError("the network failed on the way back"));
      else resolve(answer);
    });
  }
  /** A channel's outbox: a delivery that it knows is not sent again, and must say the same. */
  #channel({ deliveryId, text }: OutboundMessage): void {
    const known = this.said.get(deliveryId);
    if (known !== undefined && known !== text) this.problem(`the delivery ${deliveryId} says something else than before`);
    this.said.set(deliveryId, text);
  }
  #parts(isDead: () => boolean): SessionParts {
    const remote = <T>(work: () => T): Promise<T> => this.#remote(isDead, work);
    const node = (nodeId: string): FakeNode | undefined => this.nodes.find((candidate) => candidate.id === nodeId);
    const gateway: GatewayPort = {
      runContext: (_key, known) => remote(() => (known === this.context().version ? null : this.context())),
      modelAccess: () => remote(() => ({ apiKeys: {}, headers: {} })),
      packTool: ({ tool }) => remote(() => ({ ok: false, error: { reason: "tool.unknown", message: `There is no tool ${tool}.` } })),
      reserveSpend: (ask) => this.#reserve(isDead, ask),
      secretValues: () => remote(() => []),
      useGrants: () => remote(() => []),
      approvals: (report) => remote(() => this.owner.report(report)),
      publish: (_key, news) => remote(() => void this.received.push(...news)),
      dispatchTool: (dispatch) =>
        remote(() => {
          const target = node(dispatch.nodeId);
          if ("wait" in dispatch.args) this.problem(`the machine got the argument of the gateway: ${dispatch.callId}`);
          if (!target?.online) return "offline" as const;
          target.dispatch(dispatch);
          return "sent" as const;
        }),
      awaitNodes: (report) =>
        remote(() => {
          this.waits.report(report);
          const isReady = (nodeId: string): boolean => node(nodeId)?.online === true;
          const full = this.faulty && report.calls.length > 0 && this.rng.chance(0.05);
          return {
            ready: report.calls.flatMap(({ callId, nodeId }) => (isReady(nodeId) ? [callId] : [])),
            ...(full ? { full: true as const } : {}),
          };
        }),
      cancelTools: (nodeId, callIds) => remote(() => node(nodeId)?.cancel(callIds)),
      configGet: () => remote(() => ({ ok: true as const, value: {} })),
      sessionsList: () => remote(() => []),
      nodeLogs: () => remote(() => ({ ok: true as const, value: {} })),
      // No history depends on it, so it takes no chance from those that do.
      audit: () => Promise.resolve(),
      stopAll: () => Promise.resolve("stopped"),
      resumeAll: () => Promise.resolve("resumed"),
      remember: () => remote(() => ({ ok: true as const, value: { id: "m", isNew: true, superseded: false } })),
      emitEvent: () => remote(() => ({ ok: true as const, value: { id: "e", needsApproval: false } })),
      recall: () => remote(() => ({ ok: true as const, value: { hits: [], notes: [] } })),
      search: () => remote(() => ({ ok: true as const, value: { hits: [], more: false, notes: [] } })),
      searchableSessions: () => remote(() => ({ sessions: [], more: false })),
      transfer: () => remote(() => ({ ok: true as const, value: { status: "done" as const, sizeBytes: 0, sha256: "" } })),
      delegate: () => Promise.resolve({ ok: false, error: { reason: "agent.unknown", message: "There is no such agent." } }),
      sendToSession: () => remote(() => ({ ok: true as const, value: { status: "accepted" as const, runId: "none", queued: false } })),
      cron: () => remote(() => ({ ok: true as const, value: { value: {} } })),
      channelPlaces: () => remote(() => ({ channels: [], places: [], more: false })),
      message: () => remote(() => ({ ok: true as const, value: { status: "queued" as const, deliveryId: "none", to: "none" } })),
      skillsSeen: () => remote(() => []),
      skillWriting: () => remote(() => ({ ok: true as const, value: undefined })),
      fileChanging: () => remote(() => undefined),
      filesWritten: () => remote(() => undefined),
      reply: (call) =>
        remote(() => {
          if (this.channelGone)
            return { ok: false as const, error: { reason: "channel.unknown" as const, message: "There is no such channel." } };
          if (call.kind === "send") this.#channel(call.message);
          return { ok: true as const, value: undefined };
        }),
    };
    return {
      gateway,
      model: { takesImages: () => true, refusal: () => undefined, call: (request) => this.model.call(isDead, request) },
      prompts: {
        assemble: () =>
          remote(() =>
            this.faulty && this.rng.chance(0.02)
              ? { ok: false as const, error: { reason: "storage.failed" as const, message: "The bucket is away." } }
              : { ok: true as const, value: { system: "you are a simulation", sections: [] } },
          ),
      },
      native: {
        entries: [nativeEntry("gsv__ReadFile", { idempotent: true }), nativeEntry("gsv__WriteFile")],
        run: (_name, _args, { callId }) =>
          remote(() => {
            this.nativeRuns.set(callId, (this.nativeRuns.get(callId) ?? 0) + 1);
            return { ok: true as const, result: `out ${callId} ` };
          }),
      },
      terms: () => ({ output: 1_000, thinking: 0, inputUsd: 0.001, rates: { output: 0.000_001 } }),
      contextWindow: () => this.#options.window ?? 1_000_000,
      archives: { put: (input) => this.#remote(isDead, () => this.bucket.putArchive(input)) },
      memory: {
        append: (_agent, date, text, key) => remote(() => this.bucket.appendMemory(date, text, key)),
        // The oracle looks for each memory in the bucket, wherever it waits.
        quarantine: ({ date, text, key }) =>
          remote(() => {
            const kept = this.bucket.appendMemory(date, text, key);
            return kept.ok ? { ok: true as const, value: { id: key } } : kept;
          }),
      },
      files: {
        put: (_agent, path, text) =>
          remote(() => {
            if (this.faulty && this.rng.chance(0.1))
              return { ok: false as const, error: { reason: "storage.failed" as const, message: "The bucket is away." } };
            this.results.set(path, text);
            return { ok: true as const, value: undefined };
          }),
      },
      media: {
        takeAttachments: ({ messageId, attachments, now }) =>
          remote(() => {
            const blocks = attachments.map(({ mimeType }, index) => ({
              type: "audio" as const,
              r2Key: `media/s/${messageId}-${index}`,
              mimeType,
            }));
            for (const { r2Key } of blocks) this.bucket.media.set(r2Key, now);
            return { ok: true as const, value: { blocks, notes: [] } };
          }).catch((error: unknown) => {
            if (!(error instanceof NetworkError)) throw error;
            return { ok: false as const, error: { reason: "storage.failed" as const, message: "The bucket is away." } };
          }),
        takeResult: ({ content }) => remote(() => content),
        hydrate: (messages) => Promise.resolve(messages),
        transcribe: ({ r2Key }) => {
          const transcribed = { ok: true as const, value: `said in ${r2Key}` };
          return remote(() => transcribed).catch((error: unknown) => {
            if (error instanceof NetworkError) return transcribed;
            throw error;
          });
        },
        delete: (_key, before, keep) => remote(() => this.bucket.deleteMedia(before, keep)),
      },
    };
  }
  /** Each third call, or each. Every fourth policy allows what others ask about. */
  asks(name: string, args: Readonly<Record<string, unknown>>): boolean {
    if (this.policy % 4 === 3) return false;
    return this.asksEver(name, args);
  }
  asksEver(_name: string, args: Readonly<Record<string, unknown>>): boolean {
    return this.#options.asks === "all" || (this.#options.asks === "some" && Number(args["n"]) % 3 === 0);
  }
  /** Rules that ask as `asks` says. Each policy has a version of its own. */
  #toolApproval(): NonNullable<RunContext["config"]["toolApproval"]> {
    const id = `p${this.policy}`;
    if (this.policy % 4 === 3) return { rules: [{ id, tool: "none__*", decision: "deny" }] };
    if (this.#options.asks === "all") return { rules: [{ id, tool: "*", decision: "ask" }] };
    const thirds = Array.from({ length: 8 }, (_, index) => index * 3);
    return { rules: thirds.map((value) => ({ id, tool: "*", decision: "ask", when: [{ path: "n", op: "equals", value }] })) };
  }
  changePolicy(): void {
    this.policy += 1;
  }
  context(): RunContext {
    const { idleMinutes } = this.#options;
    const isAway = (nodeId: string): boolean =>
      this.#options.waits === true && this.nodes.some(({ id, online }) => id === nodeId && !online);
    const entry = (nodeId: string, tool: string, ledger: boolean, idempotent: boolean): ToolEntry => ({
      ...machineEntry(nodeId, tool, idempotent ? { idempotent } : {}, ledger),
      ...(isAway(nodeId) ? { isAway: true as const } : {}),
    });
    const config: RunContext["config"] = {
      model: { provider: "sim", id: "sim", fallbacks: [] },
      timeouts: { llmMs: LLM_MS, toolMs: TOOL_MS },
      limits: { ...LIMITS_OF_RUN, stepsPerRun: this.stepsPerRun },
      session: { mainKey: "main", defaultResetPolicy: idleMinutes === undefined ? { mode: "manual" } : { mode: "idle", idleMinutes } },
      userTimezone: "UTC",
      // What no rule asks about runs: the mode of a gateway without a setting asks about each command.
      toolApproval: { defaultDecision: "allow", ...(this.#options.asks === undefined ? {} : this.#toolApproval()) },
    };
    return {
      version: `v${this.policy}${this.nodes.map(({ id }) => (isAway(id) ? `-${id}` : "")).join("")}`,
      config: { ...config, model: { ...config.model, fallbacks: [{ provider: "sim", id: "second" }] } },
      agent: { id: asAgentId(IDENTITY.agentId) },
      tools: [
        // The third policy takes a tool away.
        ...(this.policy % 3 === 2 ? [] : [entry("lap", "Bash", true, false)]),
        entry("lap", "Read", true, true),
        entry("old", "Bash", false, false),
        entry("old", "Read", false, true),
      ],
      nodes: [],
      skillPins: [],
    };
  }
}
