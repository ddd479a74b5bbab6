/** Domain events: agents emit them, a queue carries them, handlers get each once (gateway/spec/events.md). */
import { asAgentId, asSessionKey, type DomainEvent, type EventSummary } from "../../../../protocol/gen/types.ts";
import { escalationOf } from "../../agents/definition.ts";
import { isNoWord } from "../../events/expiry.ts";
import type { Topics } from "../../events/topics.ts";
import { actorOf } from "../../kernel/authorise.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { AgentDefinitionsPort, AgentSubscribersPort } from "../../ports/agents.ts";
import type { ApprovalTaken, EventQuestionsPort } from "../../ports/approvals.ts";
import type {
  Emission,
  EventConsumerPort,
  EventHandler,
  EventHandlersPort,
  EventPort,
  EventQueue,
  EventsAgainPort,
} from "../../ports/events.ts";
import type { FailedTask, TaskEndsPort } from "../../ports/tasks.ts";
import { TENANT_ID } from "../../ports/tenant.ts";
import type { EventJobsPort } from "../../ports/jobs.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { SessionsPort, StopPort } from "../../ports/sessions.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { PacksPort } from "../../ports/packs.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import type { Decided, EventLog, EventRow, StartRow } from "./d1-store.ts";
import type { EventKeeper } from "./keeper.ts";
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
interface Loaded {
  readonly events: EventLog;
  readonly keeper: EventKeeper;
}
const DEFAULT_LISTED = 50;
/** The consumer of the queue asks again when the part that handles events can't be loaded. */
const RETRY_SECONDS = 30;
const REASON_CHARS = 2000;
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
    let loaded: Promise<Loaded> | undefined;
    const load = async (): Promise<Result<Loaded>> => {
      if (rowDatabase === undefined || eventQueue() === undefined) return NOT_BOUND;
      loaded ??= import("./events.lazy.ts").then(({ Decisions, EventLog, EventKeeper, EventStarts }) => {
        const events = new EventLog(rowDatabase, {
          tenantId: TENANT_ID,
          now,
          scrub: ports.scrub,
          failed: (what, error) => ports.log.error("event_rows_failed", { what, error }),
        });
        const starts = new EventStarts({ ...ports, events });
        const handlerOf = (topic: string): EventHandler | undefined => handlers.get(topic) ?? ports.packs.handlerOf(topic);
        const decisions = new Decisions({ ...ports, events });
        return {
          events,
          keeper: new EventKeeper({
            ...ports,
            events,
            outbox,
            handlerOf,
            queueOf: eventQueue,
            offPackOf: ports.packs.offPackOf,
            isStopped: () => ports.stopped() !== undefined,
            starts,
            decisions,
          }),
        };
      });
      // A part that could not be loaded is tried again with the next call.
      loaded.catch(() => {
        loaded = undefined;
      });
      return succeed(await loaded);
    };
    const resolve = resolver(ports, load);
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
        return parts.ok && (await parts.value.keeper.emit(escalated(task, now(), ports.scrub))).ok;
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
          // What waits while everything is stopped is sent after the resume.
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

/** The event of a task that has failed. The same task makes the same event. */
const escalated = (
  { id, agentId, sessionKey, runId, cause, message, hops, taint }: FailedTask,
  now: number,
  scrub: (text: string) => string,
): Emission => ({
  agentId,
  topic: "",
  escalation: cause,
  payload: {
    question: `The task ${id} of the agent ${agentId} ${cause === "failed" ? "has failed" : "has used up its budget"}. What should happen?`,
    reason: message === "" ? "No reason is known." : scrub(message).toWellFormed().slice(0, REASON_CHARS),
    details: { cause, task_id: id, session_key: sessionKey },
  },
  sessionKey,
  runId,
  callId: `escalation:${cause}`,
  hops,
  taint: taint ?? { label: "self", source: "the agent's own words" },
  now,
});

type Audited = Pick<EventPorts, "audit" | "background">;
type Load = () => Promise<Result<Loaded>>;
type Resolve = (id: string, decided: Decided) => Promise<Result<EventRow>>;
/** The owner's word, however it was given. */
const resolver =
  ({ audit, background }: Audited, load: Load): Resolve =>
  async (id, decided) => {
    const parts = await load();
    if (!parts.ok) return parts;
    const done = await parts.value.keeper.resolve(id, decided);
    recordDecision({ audit, background }, id, decided, done.ok);
    return done;
  };
function recordDecision({ audit, background }: Audited, id: string, { by, decision }: Decided, isDone: boolean): void {
  const entry = { actor: by, action: "events.resolve", target: id, detail: decision } as const;
  background("audit", audit.append({ ...entry, decision: isDone ? "allowed" : "failed" }));
}
function takenOf({ decision, decidedBy }: EventRow): ApprovalTaken & { readonly outcome: "allowed" | "denied" | "expired" } {
  const outcome = decision === "approve" ? "allowed" : isNoWord(decidedBy) ? "expired" : "denied";
  return { outcome, ...(decidedBy === undefined ? {} : { by: decidedBy }) };
}

function eventMethods({ audit, background, config, scrub, eventQuestions }: EventPorts, load: Load, resolve: Resolve): Handlers {
  const summaryOf = ({ envelope, status, attempts, reason }: EventRow): EventSummary => ({
    id: envelope.id,
    topic: envelope.topic,
    status,
    // A message that could not be read names no agent.
    agentId: asAgentId(envelope.agent_id === "" ? config.defaultAgentId() : envelope.agent_id),
    emittedAt: envelope.emitted_at,
    attempts,
    ...(reason === undefined ? {} : { reason: scrub(reason).slice(0, 1024) }),
  });
  const shown = (row: EventRow, starts: readonly StartRow[] = []): DomainEvent => {
    const code = row.status === "waiting_approval" ? eventQuestions.codeOf(row.envelope.id) : undefined;
    const { envelope, sessionKey, taint, decision, decidedBy, decidedAt, word, endedAt } = row;
    return {
      ...summaryOf(row),
      version: envelope.version,
      taskId: envelope.task_id,
      ...(sessionKey === "" ? {} : { sessionKey: asSessionKey(sessionKey) }),
      payload: scrub(JSON.stringify(envelope.payload)).slice(0, 131_072),
      label: taint.label,
      labelSource: scrub(taint.source),
      ...(decision === undefined ? {} : { decision }),
      ...(decidedBy === undefined ? {} : { decidedBy }),
      ...(decidedAt === undefined ? {} : { decidedAt }),
      ...(word === undefined ? {} : { word: scrub(word) }),
      ...(code === undefined ? {} : { code }),
      ...(endedAt === undefined ? {} : { endedAt }),
      ...(starts.length === 0 ? {} : { started: starts.map((start) => ({ ...start, agentId: asAgentId(start.agentId) })) }),
    };
  };
  return {
    "events.list": async (_caller, { limit = DEFAULT_LISTED, before, ...asked }) => {
      const parts = await load();
      if (!parts.ok) return parts;
      const after = before === undefined ? {} : { before: before.trim().toLowerCase() };
      const page = await parts.value.events.list({ ...asked, ...after, limit });
      return page.ok ? succeed({ events: page.value.events.map(summaryOf), more: page.value.more }) : page;
    },
    "events.show": async (_caller, { id }) => {
      const parts = await load();
      if (!parts.ok) return parts;
      const found = await parts.value.keeper.find(id);
      if (!found.ok) return found;
      const starts = await parts.value.events.starts(found.value.envelope.id);
      return starts.ok ? succeed({ event: shown(found.value, starts.value) }) : starts;
    },
    "events.resolve": async ({ connection }, { id, decision }) => {
      const done = await resolve(id, { decision, by: actorOf(connection.principal) });
      return done.ok ? succeed({ event: shown(done.value) }) : done;
    },
    "events.replay": async ({ connection }, { id }) => {
      const parts = await load();
      if (!parts.ok) return parts;
      const done = await parts.value.keeper.replay(id);
      const entry = { actor: actorOf(connection.principal), action: "events.replay", target: id } as const;
      background("audit", audit.append({ ...entry, decision: done.ok ? "allowed" : "failed" }));
      return done.ok ? succeed({ event: shown(done.value) }) : done;
    },
  };
}
