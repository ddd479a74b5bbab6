/**
 * One session at work: the applier, the pump, the clock and the one alarm, wired together. Knows nothing of Durable Objects or of
 * who asks; what the platform gives comes in through `DriverHost`. Decides nothing about runs: the machine does.
 */
import type { GatewayPort } from "../ports/gateway.ts";
import type { SessionMedia } from "../ports/media.ts";
import type { MemoryFiles } from "../ports/memory.ts";
import type { ModelClient } from "../ports/model.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { PromptSource } from "../ports/prompt.ts";
import type { Result } from "../ports/result.ts";
import type { EffectiveConfig } from "../ports/run-context.ts";
import type { SessionIdentity } from "../ports/session.ts";
import { type Applied, Applier, type ApplyOptions } from "./apply.ts";
import { SessionClock } from "./clock.ts";
import { appendMemory } from "./effects/append-memory.ts";
import { archive, type ArchiveStore } from "./effects/archive.ts";
import { ModelCaller } from "./effects/call-model.ts";
import { cancelTool } from "./effects/cancel-tool.ts";
import { deleteMedia } from "./effects/delete-media.ts";
import { Deliverer } from "./effects/deliver.ts";
import { dispatchTool } from "./effects/dispatch-tool.ts";
import { inReplyOrder, sendReply } from "./effects/reply.ts";
import { type ResultFiles, storeResult } from "./effects/store-result.ts";
import { summarize } from "./effects/summarize.ts";
import { History } from "./history.ts";
import type { Step } from "./machine/draft.ts";
import type { Effect } from "./machine/effect.ts";
import type { ArchiveEnd, EventBody } from "./machine/event.ts";
import { LIMITS } from "./machine/limits.ts";
import { archiveEffectId, modelEffectId, type State } from "./machine/state.ts";
import { promptView } from "./prompt-view.ts";
import { PlatformView } from "./platform-view.ts";
import { Publisher } from "./publisher.ts";
import { type Flight, type FlightEnd, Pump } from "./pump.ts";
import { modelsFor, RunContexts } from "./run-context.ts";
import type { SessionStore } from "./store/session-store.ts";
import { asRunId, asSessionKey, type SessionPromptResult, type ModelRef } from "../../../protocol/gen/types.ts";

/** What the session needs from elsewhere; made in wiring.ts, replaced in tests. */
export interface SessionParts {
  readonly gateway: GatewayPort;
  readonly model: ModelClient;
  /** Tokens that fit the model, as far as is known. */
  readonly contextWindow: (model: ModelRef, config: EffectiveConfig) => number;
  readonly prompts: PromptSource;
  readonly native: NativeTools;
  readonly archives: ArchiveStore;
  readonly files: ResultFiles;
  readonly memory: MemoryFiles;
  readonly media: SessionMedia;
}
export interface DriverHost {
  readonly store: SessionStore;
  readonly wall: () => number;
  readonly random: () => number;
  readonly freshId: () => string;
  /** Wakes the object, and `alarm` is called, at this time. */
  readonly setAlarm: (wall: number) => void;
  /** Keeps the object alive until the promise ends. */
  readonly keep: (work: Promise<void>) => void;
  /** Calls back once, unless prevented by what it returns. */
  readonly after: (ms: number, work: () => void) => () => void;
  readonly log: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}
/** The alarm stays with work under way for this long, then hands over to the next alarm (the platform allows 15 minutes). */
const ALARM_STAY_MS = 600_000;
/** A deadline that is past already is looked at again no sooner than this: no mistake may make a session run in circles. */
const BREATH_MS = 50;
/** Rows that one step of forgetting looks at. */
const PRUNE_STEP = 500;
/** Ends of archives that nobody has asked about yet. */
const ENDS_KEPT = 16;

/** What exists once there is something to look after. */
interface Life {
  readonly pump: Pump;
  readonly deliverer: Deliverer;
  readonly publisher: Publisher;
}

export class SessionDriver {
  readonly #host: DriverHost;
  readonly #parts: SessionParts;
  readonly #applier: Applier;
  readonly #clock: SessionClock;
  readonly contexts: RunContexts;
  readonly #caller: ModelCaller;
  readonly #view: PlatformView;
  #life: Life | undefined;
  #history: History | undefined;
  #alarmAt: number | undefined;
  #waiting = new Map<string, (end: ArchiveEnd) => void>();
  #ends = new Map<string, ArchiveEnd>();
  readonly #media = new Map<string, number>();
  readonly #mediaAsked = new Map<string, () => void>();
  #files: Promise<unknown> = Promise.resolve();
  #changed: () => void = () => {};

  constructor(host: DriverHost, parts: SessionParts) {
    this.#host = host;
    this.#parts = parts;
    this.#clock = new SessionClock(host.wall, { wall: host.wall(), now: 0 });
    this.#applier = new Applier({
      store: host.store,
      clock: this.#clock,
      random: host.random,
      freshId: host.freshId,
      published: () => this.#life?.deliverer.published ?? this.#applier.state?.deliveredSeq ?? 0,
      committed: (before, step) => this.#committed(before, step),
    });
    this.#view = new PlatformView({ state: () => this.#applier.state, gateway: parts.gateway, now: host.wall, after: host.after });
    this.contexts = new RunContexts(parts.gateway, () => this.#key());
    this.#caller = new ModelCaller({
      state: () => this.#applier.state,
      history: () => this.history,
      contextWindow: parts.contextWindow,
      contexts: this.contexts,
      prompts: parts.prompts,
      model: parts.model,
      native: parts.native,
      media: parts.media,
      unheard: () => this.history.unheard(),
      commit: (event) => void this.apply(event),
      wall: host.wall,
      delta: (delta) => {
        this.#life?.publisher.delta(delta);
        this.#view.delta(delta);
      },
      sleep: (ms, signal) => this.#sleep(ms, signal),
      failed: (what, error) => this.#failed(what, error),
    });
  }

  // ---------------------------------------------------------------- what others look at

  /** Undefined while nobody has said anything here. Takes up what an earlier life left. */
  get state(): State | undefined {
    this.enter();
    return this.#applier.state;
  }
  get history(): History {
    this.#history ??= new History(this.#contextRows(), this.#applier.state?.summary);
    return this.#history;
  }
  /** What the conversation takes of the model's window, and how much fits, as far as is known without asking anybody. */
  get contextSize(): { readonly tokens?: number; readonly window?: number } {
    const state = this.state;
    const context = this.contexts.known;
    if (!state) return {};
    const tokens = this.#caller.contextTokens(state, this.#history);
    const model = context && modelsFor({ directives: {} }, state.settings, context.agent, context.config)[0];
    return {
      ...(tokens === undefined ? {} : { tokens }),
      ...(context && model ? { window: this.#parts.contextWindow(model, context.config) } : {}),
    };
  }
  /** Text of the model call under way, as far as those who follow have been sent it: their next delta begins right behind. */
  get live(): ModelCaller["live"] {
    const { live } = this.#caller;
    return live && { ...live, text: live.text.slice(0, this.#life?.publisher.sentChars(live) ?? 0) };
  }
  /** `identity` counts while nobody has said anything here. Rejects when the gateway does not answer. */
  async prompt(identity: SessionIdentity, sha256: (text: string) => Promise<string>): Promise<Result<SessionPromptResult>> {
    const before = this.state;
    const context = before ? await this.contexts.current() : await this.#parts.gateway.runContext(identity.key, undefined);
    if (!context) throw new Error("the gateway says that nothing has changed since nothing");
    const state = this.state;
    const { prompts, native } = this.#parts;
    const messages = state ? this.history.messages : [];
    return promptView({ identity: state?.identity ?? identity, state, messages, context, prompts, native, now: this.wall(), sha256 });
  }
  get media(): SessionMedia {
    return this.#parts.media;
  }
  get store(): SessionStore {
    return this.#host.store;
  }
  wall(): number {
    return this.#host.wall();
  }
  *#contextRows(): IterableIterator<ReturnType<SessionStore["rows"]>[number]> {
    const state = this.#applier.state;
    if (!state) return;
    for (let from = state.contextFrom; from < state.nextSeq; ) {
      const rows = this.#host.store.rows(from, 500);
      yield* rows;
      const last = rows.at(-1);
      if (!last) return;
      from = last.seq + 1;
    }
  }
  #key(): string {
    const key = this.#applier.state?.identity.key;
    if (key === undefined) throw new Error("the session has no name yet");
    return key;
  }

  // ---------------------------------------------------------------- events

  apply(body: EventBody, options: ApplyOptions = {}): Applied {
    this.enter();
    return this.#applier.apply(body, options);
  }

  /** The first thing of each life: what was under way in memory is gone, so it is started again or given up. */
  enter(): void {
    if (this.#life) return;
    const state = this.#applier.state;
    if (!state) return;
    const { pump } = this.#begin(state.identity.key, state.deliveredSeq);
    this.#clock.restore(state.clock, state.clock.wall + Math.max(0, deadlineOf(state) - state.clock.now));
    if (state.run.phase !== "idle") this.#applier.apply({ type: "Woke" });
    pump.sync();
    this.#arm();
  }
  #begin(key: string, deliveredSeq: number): Life {
    const { store, after, wall } = this.#host;
    const publisher = new Publisher({ sessionKey: key, publish: (news) => this.#parts.gateway.publish(key, news), now: wall, after });
    const deliverer = new Deliverer(
      {
        state: () => this.#applier.state,
        rows: (from, limit) => store.rows(from, limit),
        news: (news) => publisher.news(news),
        commit: (event) => void this.apply(event),
      },
      deliveredSeq,
    );
    const pump = new Pump({
      outbox: () => inReplyOrder(this.#applier.state?.outbox ?? []),
      now: () => this.#clock.read().now,
      start: (effect, flight) => this.#start(effect, flight),
      keep: this.#host.keep,
      failed: (effect, error) => this.#failed(effect.type, error),
      landed: () => this.#moved(),
    });
    this.#life = { pump, deliverer, publisher };
    return this.#life;
  }

  #committed(before: State | undefined, step: Step): void {
    const { deliverer } = this.#life ?? this.#begin(step.state.identity.key, 0);
    if (this.#history) {
      for (const row of step.append) this.#history.append(row);
      for (const row of step.amend) this.#history.amend(row);
      if (before && (step.state.contextFrom !== before.contextFrom || step.state.summary !== before.summary))
        this.#history.trimTo(step.state.contextFrom, step.state.summary);
    }
    deliverer.written(step.append);
    this.#view.moved();
    for (const { runId, text, step: at } of step.status) this.tell(runId, text, at);
    for (const end of step.ended) this.#archiveEnded(end);
    this.#moved();
  }
  /** For clients that follow live; not in the log. An empty `runId`: about no run. */
  tell(runId: string, text: string, step = 0): void {
    if (!this.#applier.state) return;
    const run = runId === "" ? {} : { runId: asRunId(runId), ...(step > 0 ? { step } : {}) };
    void this.#life?.publisher.news([{ event: "chat", payload: { sessionKey: asSessionKey(this.#key()), state: "status", text, ...run } }]);
  }
  /** Something is different: memory follows the outbox, and the alarm the nearest deadline. */
  #moved(): void {
    this.#life?.pump.sync();
    this.#arm();
    this.#changed();
  }

  #start(effect: Effect, flight: Flight): Promise<FlightEnd> {
    const { store } = this.#host;
    const state = (): State | undefined => this.#applier.state;
    const commit = (event: EventBody): void => {
      this.apply(event);
    };
    const end = async (event: Promise<EventBody | undefined>): Promise<FlightEnd> => {
      const body = await event;
      if (body) commit(body);
      return "done";
    };
    switch (effect.type) {
      case "CallModel":
        return end(this.#caller.call(effect, flight));
      case "DispatchTool":
        return dispatchTool(effect, flight, {
          state,
          row: (seq) => this.history.find(seq),
          gateway: this.#parts.gateway,
          native: this.#parts.native,
          media: this.#parts.media,
          wall: this.#host.wall,
          userTimezone: () => this.contexts.known?.config.userTimezone ?? "UTC",
          commit: (event) => {
            const { step } = this.apply(event);
            return step !== undefined && (step.append.length > 0 || step.answer?.type === "taken");
          },
        });
      case "CancelTool":
        return cancelTool(effect, flight, { gateway: this.#parts.gateway, commit });
      case "Deliver":
        return this.#life ? this.#life.deliverer.deliver(effect, flight) : Promise.resolve("done");
      case "Archive":
        return end(
          archive(effect, {
            state,
            messages: () => this.history.messageRows(),
            archives: this.#parts.archives,
            sleep: (ms, signal) => this.#sleep(ms, signal),
          }),
        );
      case "Summarize":
        return end(
          summarize(effect, flight, {
            state,
            history: () => this.history,
            contexts: this.contexts,
            model: this.#parts.model,
            contextWindow: this.#parts.contextWindow,
            wall: this.#host.wall,
            sleep: (ms, signal) => this.#sleep(ms, signal),
            failed: (what, error) => this.#failed(what, error),
          }),
        );
      case "AppendMemory":
        return appendMemory(effect, flight, { state, text: (id) => store.resultText(id), memory: this.#parts.memory, commit });
      case "DeleteMedia":
        return this.withFiles(() =>
          deleteMedia(effect, flight, {
            state,
            rows: (from, limit) => store.rows(from, limit),
            queued: () => store.queued(),
            media: this.#parts.media,
            sleep: (ms, signal) => this.#sleep(ms, signal),
            commit,
            deleted: (id, count) => this.#mediaGone(id, count),
          }),
        );
      case "Reply":
        return sendReply(effect, flight, {
          row: (seq) => store.rowAt(seq),
          gateway: this.#parts.gateway,
          wall: this.#host.wall,
          commit,
          sleep: (ms, signal) => this.#sleep(ms, signal),
        });
      case "StoreResult":
        return storeResult(effect, flight, { state, text: (callId) => store.resultText(callId), files: this.#parts.files, commit });
    }
  }

  // ---------------------------------------------------------------- archives that somebody waits for

  archiveEnd(requestId: string): Promise<ArchiveEnd> {
    const end = this.#ends.get(requestId);
    if (end) {
      this.#ends.delete(requestId);
      return Promise.resolve(end);
    }
    return new Promise((resolve) => this.#waiting.set(requestId, resolve));
  }
  #archiveEnded(end: ArchiveEnd): void {
    const waiting = this.#waiting.get(end.requestId);
    this.#waiting.delete(end.requestId);
    if (waiting) return waiting(end);
    this.#ends.set(end.requestId, end);
    const oldest = this.#ends.keys().next();
    if (this.#ends.size > ENDS_KEPT && !oldest.done) this.#ends.delete(oldest.value);
  }

  /**
   * One at a time: a message's files are stored and the message is committed, or a reset's files are deleted. Else a deletion could
   * take the files of a message that nobody knows of yet.
   */
  withFiles<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#files.then(work);
    this.#files = turn.catch(() => {});
    return turn;
  }
  /** How many files a reset's deletion took away; undefined when that is not known in time. Once. */
  async mediaDeleted(effectId: string, withinMs: number): Promise<number | undefined> {
    const timer = new AbortController();
    const told = new Promise<void>((resolve) => this.#mediaAsked.set(effectId, resolve));
    if (!this.#media.has(effectId)) await Promise.race([told, this.#sleep(withinMs, timer.signal)]);
    timer.abort();
    this.#mediaAsked.delete(effectId);
    const count = this.#media.get(effectId);
    this.#media.delete(effectId);
    return count;
  }
  #mediaGone(effectId: string, count: number): void {
    this.#media.set(effectId, count);
    this.#mediaAsked.get(effectId)?.();
    const oldest = this.#media.keys().next();
    if (this.#media.size > ENDS_KEPT && !oldest.done) this.#media.delete(oldest.value);
  }

  // ---------------------------------------------------------------- time

  /** Called by the platform at the alarm's time. Never throws. Stays while work is under way, so that the object is kept. */
  async alarm(): Promise<void> {
    this.#alarmAt = undefined;
    const until = this.#host.wall() + ALARM_STAY_MS;
    try {
      this.enter();
      for (;;) {
        const changed = new Promise<void>((resolve) => {
          this.#changed = resolve;
        });
        this.#tick();
        // Renewed before anything is waited for: if this life ends here, the next one begins by itself.
        this.#arm();
        if ((this.#life?.pump.inFlight().length ?? 0) === 0 || this.#host.wall() >= until) break;
        const timer = new AbortController();
        await Promise.race([
          changed,
          this.#sleep(Math.max(BREATH_MS, this.#clock.wallAt(this.#nextWake() ?? 0) - this.#host.wall()), timer.signal),
        ]);
        timer.abort();
      }
      this.#forget();
      this.#arm();
    } catch (error) {
      this.#failed("the alarm", error);
      this.#setAlarm(this.#host.wall() + LIMITS.leaseMs);
    } finally {
      this.#changed = () => {};
    }
  }
  #tick(): void {
    const state = this.#applier.state;
    if (!state || !this.#life) return;
    const { run } = state;
    const { pump } = this.#life;
    const now = this.#clock.read().now;
    const held =
      run.phase === "thinking" ? pump.isRunning(modelEffectId(run)) : run.phase === "archiving" && pump.isRunning(archiveEffectId(run));
    if (run.phase !== "idle" && now >= run.deadline && !held) this.#applier.apply({ type: "Tick", inFlight: pump.inFlight() });
    pump.sync();
  }
  /** On the session's clock; undefined: nothing waits for time to pass. */
  #nextWake(): number | undefined {
    const state = this.#applier.state;
    if (!state || !this.#life) return undefined;
    const { run } = state;
    const { pump } = this.#life;
    const now = this.#clock.read().now;
    const times: number[] = [];
    // What is under way in memory keeps its lease by being looked at; calls that are out have real deadlines.
    if (pump.inFlight().length > 0) times.push(now + LIMITS.leaseMs);
    if (run.phase === "acting") times.push(run.deadline);
    else if (run.phase === "thinking" && !pump.isRunning(modelEffectId(run))) times.push(run.deadline);
    else if (run.phase === "archiving" && !pump.isRunning(archiveEffectId(run))) times.push(run.deadline);
    const start = pump.nextStart();
    if (start !== undefined) times.push(start);
    return times.length === 0 ? undefined : Math.min(...times);
  }
  /** Lazily (D4): a write only when no alarm is set or one is needed earlier. */
  #arm(): void {
    const next = this.#nextWake();
    if (next === undefined) return;
    const { wall: present, now } = this.#clock.read();
    const wall = present + Math.max(BREATH_MS, Math.ceil(next - now));
    if (this.#alarmAt === undefined || wall < this.#alarmAt) this.#setAlarm(wall);
  }
  #setAlarm(wall: number): void {
    this.#alarmAt = wall;
    this.#clock.expect(wall);
    this.#host.setAlarm(wall);
  }
  #sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#host.after(ms, resolve);
      signal.addEventListener("abort", () => {
        cancel();
        resolve();
      });
    });
  }

  /** A bounded step of forgetting, in quiet moments only. */
  #forget(): void {
    const state = this.#applier.state;
    if (state?.run.phase !== "idle") return;
    const wall = this.#host.wall();
    this.#host.store.prune({
      seenBefore: wall - LIMITS.dedupeMs,
      contextFrom: state.contextFrom,
      rowsBefore: wall - LIMITS.eventRingMs,
      rowsBelow: state.nextSeq - 2 * LIMITS.eventRing,
      step: PRUNE_STEP,
    });
  }
  #failed(what: string, error: unknown): void {
    this.#host.log("session.failed", { what, error: error instanceof Error ? error : String(error) });
  }
}
const deadlineOf = (state: State): number => (state.run.phase === "idle" ? 0 : state.run.deadline);
