/**
 * Starts the open effects of the outbox, each at most once per incarnation; effects that were lost with an earlier incarnation start
 * again. Does not know the effects: it gets their interpreters.
 */
import { backoffMs } from "../../../protocol/runtime/backoff.ts";
import type { Effect } from "./machine/effect.ts";

export interface Flight {
  /** Fires when the effect is no longer wanted. */
  readonly signal: AbortSignal;
  /** The effect was open when this incarnation began, so an earlier one may have started it. */
  readonly inherited: boolean;
  /** Earlier starts in this incarnation. */
  readonly tries: number;
}
/** `done`: not started again in this incarnation, also when it stays open. */
export type FlightEnd = "done" | { readonly retryInMs: number };
export type StartEffect = (effect: Effect, flight: Flight) => Promise<FlightEnd>;

export interface PumpPorts {
  readonly outbox: () => readonly Effect[];
  /** The session's clock. */
  readonly now: () => number;
  readonly start: StartEffect;
  /** Keeps the object alive until the promise ends. Never rejects. */
  readonly keep: (work: Promise<void>) => void;
  /** An interpreter threw, which none should. */
  readonly failed: (effect: Effect, error: unknown) => void;
  /** A flight ended: deadlines may be others now. */
  readonly landed: () => void;
}

interface Entry {
  readonly stop: Stop;
  running: boolean;
  /** Started again not before this. */
  retryAt: number | undefined;
  tries: number;
}
/** An abort signal that is made when it is first asked for: most effects never look at it, and each end of an effect fires it. */
class Stop {
  #controller: AbortController | undefined;
  isDone = false;

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.isDone) this.#controller.abort();
    return this.#controller.signal;
  }
  now(): void {
    this.isDone = true;
    this.#controller?.abort();
  }
}
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 300_000;
/** 1, 2, 4 s and so on, at most `maxMs`. `tries`: starts before the one that failed. */
export const backoff = (tries: number, maxMs = MAX_RETRY_MS): FlightEnd => ({
  retryInMs: backoffMs(tries + 1, FIRST_RETRY_MS, maxMs),
});

export class Pump {
  readonly #ports: PumpPorts;
  readonly #inherited: ReadonlySet<string>;
  readonly #entries = new Map<string, Entry>();

  /** Create it when the state is loaded: the effects that are open then come from an earlier incarnation. */
  constructor(ports: PumpPorts) {
    this.#ports = ports;
    this.#inherited = new Set(ports.outbox().map((effect) => effect.id));
  }

  /** Brings memory in line with the outbox: stops what was settled, starts what is due. */
  sync(): void {
    const open = new Set(this.#ports.outbox().map((effect) => effect.id));
    for (const [id, entry] of this.#entries) {
      if (open.has(id)) continue;
      this.#entries.delete(id);
      if (entry.running) entry.stop.now();
    }
    const now = this.#ports.now();
    for (const effect of this.#ports.outbox()) if (this.#isDue(effect, now)) this.#launch(effect);
  }
  #isDue(effect: Effect, now: number): boolean {
    const startAt = this.#startAt(effect);
    return startAt !== undefined && startAt <= now;
  }
  /** Undefined: it is running, or done in this incarnation. */
  #startAt(effect: Effect): number | undefined {
    const entry = this.#entries.get(effect.id);
    const notBefore = "notBefore" in effect ? effect.notBefore : 0;
    if (!entry) return notBefore;
    return entry.running || entry.retryAt === undefined ? undefined : Math.max(notBefore, entry.retryAt);
  }
  #launch(effect: Effect): void {
    const tries = this.#entries.get(effect.id)?.tries ?? 0;
    const stop = new Stop();
    const entry: Entry = { stop, running: true, retryAt: undefined, tries: tries + 1 };
    this.#entries.set(effect.id, entry);
    const flight: Flight = {
      get signal() {
        return stop.signal;
      },
      inherited: this.#inherited.has(effect.id),
      tries,
    };
    this.#ports.keep(this.#fly(effect, entry, flight));
  }
  async #fly(effect: Effect, entry: Entry, flight: Flight): Promise<void> {
    let end: FlightEnd;
    try {
      // Not inside the commit that opened it: an interpreter may commit at once itself.
      await Promise.resolve();
      end = entry.stop.isDone ? "done" : await this.#ports.start(effect, flight);
    } catch (error) {
      this.#ports.failed(effect, error);
      end = backoff(flight.tries);
    }
    entry.running = false;
    if (end !== "done") entry.retryAt = this.#ports.now() + end.retryInMs;
    this.#ports.landed();
  }

  /** Ids under way now. */
  inFlight(): readonly string[] {
    return [...this.#entries].filter(([, entry]) => entry.running).map(([id]) => id);
  }
  isRunning(id: string): boolean {
    return this.#entries.get(id)?.running === true;
  }
  /** When the next effect that waits may start, on the session's clock. */
  nextStart(): number | undefined {
    const times = this.#ports.outbox().flatMap((effect) => this.#startAt(effect) ?? []);
    return times.length === 0 ? undefined : Math.min(...times);
  }
}
