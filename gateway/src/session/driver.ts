/**
 * Drives one session: connects the applier, the pump, the clock and the one alarm. Knows no Durable Object and no caller; the platform
 * comes in as `DriverHost`. Decides nothing about runs: the machine does.
 */
import { asRunId, asSessionKey } from "../../../protocol/gen/types.ts";
import type { GatewayPort } from "../ports/gateway.ts";
import type { SessionMedia } from "../ports/media.ts";
import { type Applied, Applier, type ApplyOptions } from "./apply.ts";
import { SessionClock } from "./clock.ts";
import { type DecidePorts, currentDecision, recordLooked } from "./decided-calls.ts";
import { ModelCaller } from "./effects/call-model.ts";
import { ContextSize } from "./effects/context-size.ts";
import { Deliverer } from "./effects/deliver.ts";
import { interpreter } from "./effects/interpret.ts";
import { inReplyOrder } from "./effects/reply.ts";
import { argumentsOf } from "./effects/report-approvals.ts";
import { History } from "./history.ts";
import type { Step } from "./machine/draft.ts";
import type { AwaitingCall, WaitingCall } from "../calls/open-call.ts";
import type { EventBody, CurrentDecision } from "./machine/event.ts";
import { LIMITS } from "./machine/limits.ts";
import type { State } from "./machine/state.ts";
import { ModelView } from "./model-view.ts";
import { PlatformView } from "./platform-view.ts";
import { Publisher } from "./publisher.ts";
import { Pump } from "./pump.ts";
import { RunContexts } from "./run-context.ts";
import { Policies } from "../policy/load.ts";
import type { SessionParts } from "./session-parts.ts";
import { SpendGate } from "./spend-gate.ts";
import type { SessionStore } from "./store/session-store.ts";
import { Waits } from "./waits.ts";
import { isOverdue, nextWake } from "./wake.ts";
import { WantedThoughts } from "./wanted-thoughts.ts";
import { type After, within } from "../../../protocol/runtime/within.ts";

export interface DriverHost {
  readonly store: SessionStore;
  readonly wall: () => number;
  readonly random: () => number;
  readonly freshId: () => string;
  readonly sha256: (text: string) => Promise<string>;
  /** The platform wakes the object at this time and calls `alarm`. */
  readonly setAlarm: (wall: number) => void;
  /** Keeps the object alive until the promise ends. */
  readonly keep: (work: Promise<void>) => void;
  readonly after: After;
  readonly log: (event: string, fields: Readonly<Record<string, unknown>>) => void;
}
/** The alarm stays with work under way for this long, then hands over to the next alarm (the platform allows 15 minutes). */
const ALARM_STAY_MS = 600_000;
/** The shortest time to the next alarm: a bug with a deadline in the past must not make a session spin. */
const MIN_WAIT_MS = 50;
/** Rows that one step of pruning looks at. */
const PRUNE_STEP = 500;

/** The parts that exist as soon as the session has a state. */
interface ActiveParts {
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
  readonly spend: SpendGate;
  readonly #view: PlatformView;
  readonly #decide: DecidePorts;
  #active: ActiveParts | undefined;
  #history: History | undefined;
  #alarmAt: number | undefined;
  readonly waits: Waits;
  readonly models: ModelView;
  readonly thoughts = new WantedThoughts();
  #changed: () => void = () => {};
  #quiet: () => void = () => {};

  constructor(host: DriverHost, parts: SessionParts) {
    this.#host = host;
    this.#parts = parts;
    this.#clock = new SessionClock(host.wall, { wall: host.wall(), now: 0 });
    this.#applier = new Applier({
      store: host.store,
      clock: this.#clock,
      random: host.random,
      freshId: host.freshId,
      settled: () => this.spend.settled,
      published: () => this.#active?.deliverer.published ?? this.#applier.state?.deliveredSeq ?? 0,
      committed: (before, step) => this.#committed(before, step),
    });
    this.#view = new PlatformView({ state: () => this.#applier.state, gateway: parts.gateway, now: host.wall, after: host.after });
    this.waits = new Waits(host.after);
    this.#decide = {
      native: parts.native,
      sha256: host.sha256,
      wall: host.wall,
      policies: new Policies(),
      audit: (entry) => parts.gateway.audit(entry),
      useGrants: (sessionKey, ids) => parts.gateway.useGrants(sessionKey, ids),
      failed: (what, error) => this.#failed(what, error),
    };
    this.contexts = new RunContexts(parts.gateway, () => this.#key());
    this.spend = new SpendGate({
      gateway: parts.gateway,
      terms: parts.terms,
      state: () => this.#applier.state,
      wall: host.wall,
      failed: (what, error) => this.#failed(what, error),
    });
    const size = new ContextSize({ history: () => this.history, contextWindow: parts.contextWindow, wall: host.wall });
    this.#caller = new ModelCaller({
      state: () => this.#applier.state,
      history: () => this.history,
      size,
      contexts: this.contexts,
      prompts: parts.prompts,
      model: parts.model,
      spend: this.spend,
      native: parts.native,
      decide: this.#decide,
      media: parts.media,
      mediaNumbers: (keys) => host.store.mediaNumbers(keys),
      untranscribed: () => this.history.untranscribed(),
      commit: (event) => void this.apply(event),
      wall: host.wall,
      now: () => this.#clock.read().now,
      delta: (delta) => {
        this.#active?.publisher.delta(delta);
        if (delta.isThought !== true) this.#view.delta(delta);
      },
      wantsThoughts: (runId) => this.thoughts.has(runId),
      after: host.after,
      failed: (what, error) => this.#failed(what, error),
    });
    this.models = new ModelView({
      state: () => this.state,
      messages: () => this.history.messages,
      contexts: this.contexts,
      tokens: (state) => size.contextTokens(state, this.#history),
      parts,
      wall: host.wall,
    });
  }

  // ---------------------------------------------------------------- views

  /** Undefined before the first message. Continues the work of an earlier incarnation. */
  get state(): State | undefined {
    this.enter();
    return this.#applier.state;
  }
  get history(): History {
    this.#history ??= new History(this.contextRows(), this.#applier.state?.summary);
    return this.#history;
  }
  /** The text of the current model call, as far as its followers have received it: their next delta begins right after it. */
  get live(): ModelCaller["live"] {
    const { live } = this.#caller;
    return live && { ...live, text: live.text.slice(0, this.#active?.publisher.sentChars(live) ?? 0) };
  }
  /** What the policy says now about a call that waits for the owner. Rejects when the gateway does not answer. */
  async currentDecision(call: AwaitingCall): Promise<CurrentDecision | undefined> {
    const context = await this.contexts.current();
    const state = this.state;
    if (state?.run.phase !== "acting") return undefined;
    return currentDecision(this.#decide, state, context, call, argumentsOf(this.history.find(state.run.assistantSeq), call));
  }
  async #lookedDecision(call: WaitingCall): Promise<CurrentDecision | undefined> {
    const context = await this.contexts.current();
    const state = this.state;
    const isOpen = state?.run.phase === "acting" && state.run.calls.includes(call);
    if (state?.run.phase !== "acting" || !isOpen) return undefined;
    return currentDecision(this.#decide, state, context, call, argumentsOf(this.history.find(state.run.assistantSeq), call));
  }
  get gateway(): GatewayPort {
    return this.#parts.gateway;
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
  /** The rows of the current conversation in order, from the log. */
  *contextRows(): IterableIterator<ReturnType<SessionStore["rows"]>[number]> {
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

  /** Comes first in each incarnation: work in memory was lost, so it is restarted or given up. */
  enter(): void {
    if (this.#active) return;
    const state = this.#applier.state;
    if (!state) return;
    const { pump } = this.#begin(state.identity.key, state.deliveredSeq);
    this.#clock.restore(state.clock, state.clock.wall + Math.max(0, deadlineOf(state) - state.clock.now));
    if (state.run.phase !== "idle") this.#applier.apply({ type: "Woke" });
    pump.sync();
    this.#arm();
  }
  #begin(key: string, deliveredSeq: number): ActiveParts {
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
      start: interpreter({
        parts: this.#parts,
        store,
        state: () => this.#applier.state,
        history: () => this.history,
        contexts: this.contexts,
        caller: this.#caller,
        spend: this.spend,
        waits: this.waits,
        sha256: this.#host.sha256,
        lookedDecision: (call) => this.#lookedDecision(call),
        recordDenied: (of, decided) => recordLooked(this.#decide, of, decided),
        deliver: (effect, flight) => deliverer.deliver(effect, flight),
        apply: (event) => this.apply(event),
        wall,
        after,
        failed: (what, error) => this.#failed(what, error),
      }),
      keep: this.#host.keep,
      failed: (effect, error) => this.#failed(effect.type, error),
      landed: () => this.#moved(),
    });
    this.#active = { pump, deliverer, publisher };
    return this.#active;
  }

  #committed(before: State | undefined, step: Step): void {
    const { deliverer } = this.#active ?? this.#begin(step.state.identity.key, 0);
    if (this.#history) {
      for (const row of step.append) this.#history.append(row);
      for (const row of step.amend) this.#history.amend(row);
      if (before && (step.state.contextFrom !== before.contextFrom || step.state.summary !== before.summary))
        this.#history.trimTo(step.state.contextFrom, step.state.summary);
    }
    deliverer.written(step.append);
    this.#view.moved();
    for (const { runId, text, step: at } of step.status) this.tell(runId, text, at);
    for (const end of step.ended) this.waits.archiveEnded(end);
    this.#moved();
  }
  /** Sends a status to clients that follow live; not in the log. An empty `runId`: about no run. */
  tell(runId: string, text: string, step = 0): void {
    if (!this.#applier.state) return;
    const run = runId === "" ? {} : { runId: asRunId(runId), ...(step > 0 ? { step } : {}) };
    void this.#active?.publisher.news([
      { event: "chat", payload: { sessionKey: asSessionKey(this.#key()), state: "status", text, ...run } },
    ]);
  }
  /** After a change: the pump follows the outbox, and the alarm follows the nearest deadline. */
  #moved(): void {
    this.#active?.pump.sync();
    this.#arm();
    this.#changed();
    this.#quiet();
  }

  /** Resolves when no effect is open, or after this time. */
  async quiet(ms: number): Promise<void> {
    let isOver = false;
    const over = new Promise<void>((resolve) =>
      this.#host.after(ms, () => {
        isOver = true;
        resolve();
      }),
    );
    while (!isOver && (this.state?.outbox.length ?? 0) > 0) {
      const moved = new Promise<void>((resolve) => {
        this.#quiet = resolve;
      });
      await Promise.race([moved, over]);
    }
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
        // Set before any wait: if this incarnation ends here, the alarm starts the next one.
        this.#arm();
        if ((this.#active?.pump.inFlight().length ?? 0) === 0 || this.#host.wall() >= until) break;
        const untilDue = Math.max(MIN_WAIT_MS, this.#clock.wallAt(this.#nextWake() ?? 0) - this.#host.wall());
        await within(this.#host.after, untilDue, changed, () => undefined);
      }
      this.#prune();
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
    if (!state || !this.#active) return;
    const { pump } = this.#active;
    if (isOverdue(state.run, pump, this.#clock.read().now)) this.#applier.apply({ type: "Tick", inFlight: pump.inFlight() });
    pump.sync();
  }
  /** On the session's clock; undefined: nothing waits for time to pass. */
  #nextWake(): number | undefined {
    const state = this.#applier.state;
    return state && this.#active && nextWake(state.run, this.#active.pump, this.#clock.read().now);
  }
  /** Lazily (D4): a write only when no alarm is set or one is needed earlier. */
  #arm(): void {
    const next = this.#nextWake();
    if (next === undefined) return;
    const { wall: current, now } = this.#clock.read();
    const wall = current + Math.max(MIN_WAIT_MS, Math.ceil(next - now));
    if (this.#alarmAt === undefined || wall < this.#alarmAt) this.#setAlarm(wall);
  }
  #setAlarm(wall: number): void {
    this.#alarmAt = wall;
    this.#clock.expect(wall);
    this.#host.setAlarm(wall);
  }
  /** Prunes old rows in one bounded step, only while the session is idle. */
  #prune(): void {
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
