/**
 * The receivers (sinks) of each session's events. A sink is a socket that follows the session (`followers.ts`) or a waiter for the end of
 * a run. In memory only; knows no socket and no rule of who may subscribe.
 */
import type { EventName } from "../../../protocol/gen/methods.ts";

/** An event before it has a number. */
export interface NewEvent {
  readonly event: EventName;
  readonly payload: unknown;
}
export interface Sink {
  /** Events of one session, in order. Must not throw. */
  deliver(sessionKey: string, events: readonly NewEvent[]): void;
}
/** More than all sockets and all waiters of a gateway together. */
export const MAX_SINKS_PER_SESSION = 1024;

export class Subscriptions {
  readonly #bySession = new Map<string, Set<Sink>>();

  /** False: the session has as many sinks as it may have. */
  add(sessionKey: string, sink: Sink): boolean {
    const sinks = this.#bySession.get(sessionKey);
    if (sinks === undefined) {
      this.#bySession.set(sessionKey, new Set([sink]));
      return true;
    }
    if (sinks.size >= MAX_SINKS_PER_SESSION && !sinks.has(sink)) return false;
    sinks.add(sink);
    return true;
  }
  remove(sessionKey: string, sink: Sink): void {
    const sinks = this.#bySession.get(sessionKey);
    if (sinks?.delete(sink) === true && sinks.size === 0) this.#bySession.delete(sessionKey);
  }
  /** Hands the events to every sink that is there now. A sink that is removed meanwhile gets none. */
  publish(sessionKey: string, events: readonly NewEvent[]): void {
    const sinks = this.#bySession.get(sessionKey);
    for (const sink of sinks === undefined ? [] : [...sinks]) if (sinks?.has(sink) === true) sink.deliver(sessionKey, events);
  }
}
