/** Domain events (gateway/spec/events.md): what sessions, the queue and other features may do with them. Types only. */
import type { EscalationCause, EventEnvelope } from "../../../protocol/gen/types.ts";
import type { Origin } from "./origin.ts";
import type { Result } from "./result.ts";
import type { Taint } from "./taint.ts";

export interface Emission {
  readonly agentId: string;
  readonly topic: string;
  /** The agent's definition names the topic for this cause. Absent: the agent chose the topic itself. */
  readonly escalation?: EscalationCause;
  readonly payload: unknown;
  readonly sessionKey: string;
  /** Absent: a client called the tool itself. */
  readonly runId?: string;
  readonly callId: string;
  /** Who caused the run. */
  readonly origin?: Origin;
  /** Instead of the origin: how far the run's chain has come. */
  readonly hops?: number;
  /** What the conversation has read. */
  readonly taint: Taint;
  readonly now: number;
}
export interface Emitted {
  readonly id: string;
  /** It waits for the owner's word before it is handled. */
  readonly needsApproval: boolean;
}
/** For sessions. Agent and conversation come from the identity of the session, never from a model's arguments. */
export interface EventPort {
  /** Durable when the result is ok. The same call emits the same event. */
  emitEvent(emission: Emission): Promise<Result<Emitted>>;
}
/** What the consumer does with a message: it is settled, or comes again after a pause. */
export type Settled = { readonly kind: "ack" } | { readonly kind: "retry"; readonly delaySeconds: number };
export interface EventConsumerPort {
  /** `isDead`: the queue has given up and the message comes from the dead-letter queue. */
  consumeEvent(text: string, isDead: boolean): Promise<Settled>;
}
/** `generation`: that of the event when the message was sent. Absent: 0. */
export type QueuedEvent = EventEnvelope & { readonly generation?: number };
/** The producer's side of the queue. */
export interface EventQueue {
  send(event: QueuedEvent, options: { readonly contentType: "json" }): Promise<unknown>;
}
/** May get an event more than once when the gateway is killed: it changes nothing twice for one `idempotency_key`. */
export type EventHandler = (event: EventEnvelope) => Promise<Result<void>>;
/** Features and packs that come later in the list give the handlers of their topics. */
export interface EventHandlersPort {
  readonly eventHandlers: { add(topic: string, handler: EventHandler): void };
}

/** After a move: the queue of this gateway has none of the events that the one before had. */
export interface EventsAgainPort {
  readonly sendQueuedAgain: () => Promise<void>;
}
