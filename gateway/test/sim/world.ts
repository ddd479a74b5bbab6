/**
 * The world around one session: its disk, its incarnations, and the far ends that it talks to, with everything that can go wrong
 * between them. Runs the real driver, pump, publisher and service; only the platform and the far ends are made up.
 */
import { hashPair, hex32 } from "../../../protocol/runtime/hash.ts";
import type { ToolResultParams } from "../../../protocol/gen/types.ts";
import type { SessionNews } from "../../src/ports/gateway.ts";
import type { NodeChange, ReplyRoute, SessionIdentity } from "../../src/ports/session.ts";
import { type DriverHost, SessionDriver } from "../../src/session/driver.ts";
import { SessionService } from "../../src/session/session-service.ts";
import type { SessionStore } from "../../src/session/store/session-store.ts";
import { FakeLedger } from "./ledger.ts";
import { FakeBucket } from "./bucket.ts";
import { MemoryStore } from "./memory-store.ts";
import { FakeModel } from "./model.ts";
import { Owner } from "./owner.ts";
import { FakeNode, type NodePorts } from "./nodes.ts";
import { type Rng, rng } from "./rng.ts";
import { VirtualTime } from "./time.ts";
import { FarEnds, NetworkError } from "./far-ends.ts";
import { LIMITS_OF_RUN, Settings } from "./settings.ts";
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

/** Where some of the messages come from. */
export const ROUTE: ReplyRoute = { channel: "sim", accountId: "default", peer: { kind: "dm", id: "anna" } };
export const IDENTITY: SessionIdentity = { key: "agent:main:cli:dm:main", ref: "simref0000", agentId: "main", isOwnersSession: true };

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
  readonly #stepsPerRun: number;
  readonly disk = new MemoryStore();
  readonly nodes: readonly FakeNode[];
  readonly model: FakeModel;
  readonly bucket: FakeBucket;
  readonly owner: Owner;
  readonly settings: Settings;
  readonly window: number | undefined;
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
  readonly #farEnds = new FarEnds(this);
  #incarnation: Incarnation | undefined;
  #ids = 0;
  #alarmAt: number | undefined;
  #cancelAlarm: () => void = () => {};
  #alarmRunning = false;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.rng = rng(options.seed);
    this.#stepsPerRun = options.stepsPerRun ?? LIMITS_OF_RUN.stepsPerRun;
    this.faulty = options.faults;
    this.channelGone = options.channelGone ?? false;
    this.window = options.window;
    const shared = { time: this.time, rng: this.rng, faulty: () => this.faulty };
    const ports: NodePorts = {
      ...shared,
      result: (nodeId, result) => this.toolResult(nodeId, result),
      changed: (change) => this.#nodeChanged(change),
    };
    this.nodes = [new FakeNode("lap", true, ports), new FakeNode("old", false, ports)];
    this.settings = new Settings({
      agentId: IDENTITY.agentId,
      nodes: this.nodes,
      stepsPerRun: this.#stepsPerRun,
      idleMinutes: options.idleMinutes,
      asks: options.asks,
      waits: options.waits ?? false,
    });
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
  /** The highest limit so far. */
  get stepsPerRun(): number {
    return this.#stepsPerRun + this.settings.moreSteps;
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
    const driver = new SessionDriver(host, this.#farEnds.parts(isDead));
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
}
