/** Domain events: agents emit them, a queue carries them, handlers get each once (gateway/spec/events.md). */
import { escalationOf } from "../../agents/definition.ts";
import type { Topics } from "../../events/topics.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { AgentDefinitionsPort, AgentSubscribersPort } from "../../ports/agents.ts";
import type { EventQuestionsPort } from "../../ports/approvals.ts";
import type { EventConsumerPort, EventHandler, EventHandlersPort, EventPort, EventQueue, EventsAgainPort } from "../../ports/events.ts";
import type { TaskEndsPort } from "../../ports/tasks.ts";
import { TENANT_ID } from "../../ports/tenant.ts";
import type { EventJobsPort } from "../../ports/jobs.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { SessionsPort, StopPort } from "../../ports/sessions.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { PacksPort } from "../../ports/packs.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import { eventOfFailed } from "./failed-task.ts";
import { eventMethods } from "./methods.ts";
import { type EventParts, ownerDecision, recordDecision, takenOf } from "./owner-decisions.ts";
import { EVENT_MIGRATIONS } from "./migrations.ts";
import { OutboxStore } from "./outbox-store.ts";
import { EVENT_TOOLS } from "./tools.ts";
import { CORE_TOPICS, HUMAN_REVIEW } from "./topics.ts";

export interface EventPorts
  extends AgentDefinitionsPort,
    AgentSubscribersPort,
    EventJobsPort,
    EventQuestionsPort,
    NotifyPort,
    SessionsPort,
    StopPort,
    TaskEndsPort,
    PacksPort,
    Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "database" | "ids" | "log" | "now" | "scrub"> {
  /** Undefined: the deployment has none. */
  readonly rowDatabase: RowDatabase | undefined;
  readonly eventQueue: (name?: string) => EventQueue | undefined;
  readonly topics: Topics;
}
/** The consumer of the queue asks again when the part that handles events can't be loaded. */
const RETRY_SECONDS = 30;
const UNBOUND_MS = 600_000;
const NOT_BOUND = fail(
  "storage.failed",
  "This deployment has no queue or no database for events.",
  "Bind a D1 database as DB and the queue domain-events as EVENTS in the deployment's configuration.",
);

export const eventsFeature: FeatureDefinition<
  EventPorts,
  EventHandlersPort & EventsAgainPort & { readonly eventsRpc: EventPort & EventConsumerPort }
> = {
  name: "events",
  migrations: EVENT_MIGRATIONS,
  tools: EVENT_TOOLS,
  topics: CORE_TOPICS,
  create(ports) {
    const { rowDatabase, eventQueue, now, topics } = ports;
    const outbox = new OutboxStore(ports.database);
    const handlers = new Map<string, EventHandler>();
    const add = (topic: string, handler: EventHandler): void => {
      if (!topics.has(topic)) throw new Error(`There is no topic ${topic} to handle.`);
      if (handlers.has(topic)) throw new Error(`The topic ${topic} has a handler already.`);
      handlers.set(topic, handler);
    };
    // The owner's decision is all that this topic is for.
    add(HUMAN_REVIEW, async () => succeed(undefined));
    const load = once(async (): Promise<Result<EventParts>> => {
      if (rowDatabase === undefined || eventQueue() === undefined) return NOT_BOUND;
      const { Decisions, EventLog, EventKeeper, EventStarts } = await import("./events.lazy.ts");
      const events = new EventLog(rowDatabase, {
        tenantId: TENANT_ID,
        now,
        scrub: ports.scrub,
        failed: (what, error) => ports.log.error("event_rows_failed", { what, error }),
      });
      const starts = new EventStarts({ ...ports, events });
      const handlerOf = (topic: string): EventHandler | undefined => handlers.get(topic) ?? ports.packs.handlerOf(topic);
      const decisions = new Decisions({ ...ports, events });
      const keeper = new EventKeeper({
        ...ports,
        events,
        outbox,
        handlerOf,
        queueOf: eventQueue,
        offPackOf: ports.packs.offPackOf,
        isStopped: () => ports.stopped() !== undefined,
        starts,
        decisions,
      });
      return succeed({ events, keeper });
    });
    const resolve = ownerDecision(ports, load);
    ports.eventQuestions.answeredBy(async (id, decided) => {
      const done = await resolve(id, decided);
      if (done.ok) return succeed(takenOf(done.value));
      const parts = await load();
      const found = parts.ok ? await parts.value.keeper.find(id) : parts;
      if (!found.ok || found.value.status === "waiting_approval") return done;
      // It was decided by its id, and the question is a moment behind.
      ports.eventQuestions.end(id, { outcome: takenOf(found.value).outcome, by: found.value.decidedBy ?? "" });
      return succeed({ ...takenOf(found.value), endedAt: found.value.decidedAt ?? now() });
    });
    ports.taskEnds.toldTo({
      takes: (agentId) => ports.definitionOf(agentId)?.escalation?.some(({ when }) => when !== "low_confidence") === true,
      failed: async (task) => {
        if (escalationOf(ports.definitionOf(task.agentId), task.cause) === undefined) return true;
        const parts = await load();
        return parts.ok && (await parts.value.keeper.emit(eventOfFailed(task, now(), ports.scrub))).ok;
      },
    });
    return {
      offers: {
        eventHandlers: { add },
        sendQueuedAgain: async () => {
          const parts = await load();
          if (!parts.ok) return;
          const queued = await parts.value.events.queuedIds();
          if (!queued.ok) throw new Error(queued.error.message);
          for (const id of queued.value) outbox.put(id, now());
          ports.arm();
        },
        eventsRpc: {
          emitEvent: async (emission) => {
            const parts = await load();
            return parts.ok ? parts.value.keeper.emit(emission) : parts;
          },
          consumeEvent: async (text, isDead) => {
            const parts = await load();
            return parts.ok ? parts.value.keeper.consume(text, isDead) : { kind: "retry", delaySeconds: RETRY_SECONDS };
          },
        },
      },
      methods: eventMethods(ports, load, resolve),
      alarms: [
        {
          name: "events",
          // Events that wait while everything is stopped are sent after the resume.
          next: () => (ports.stopped() === undefined ? outbox.next() : undefined),
          run: async () => {
            if (ports.stopped() !== undefined || (outbox.next() ?? Number.MAX_SAFE_INTEGER) > now()) return;
            const parts = await load();
            if (parts.ok) return parts.value.keeper.sweep();
            // The deployment has lost its queue: the events wait for the next one.
            for (const { id } of outbox.due(now())) outbox.again(id, now() + UNBOUND_MS);
          },
        },
        {
          name: "event_questions",
          next: () => ports.eventQuestions.nextExpiry(),
          run: async (at) => {
            const expired = ports.eventQuestions.expired(at);
            const parts = expired.length === 0 ? undefined : await load();
            // The alarm tries again, with growing pauses.
            if (parts?.ok === false) throw new Error(parts.error.message);
            await parts?.value.keeper.expire(expired, (id, by) => recordDecision(ports, id, { decision: "reject", by }, true));
          },
        },
      ],
    };
  },
};
