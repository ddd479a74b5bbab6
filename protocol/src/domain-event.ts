/** Domain events: what agents hand to handlers over a queue, and what the owner may do with them. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { AgentId, SessionKey } from "./ids.ts";

const o = t.optional;
const EventId = t.string(32, { minLength: 32, pattern: "^[0-9a-f]+$" });
const Topic = t.string(64, { minLength: 1, pattern: "^[a-z][a-z0-9_]*$" });
export const EventStatus = enumOf(
  "EventStatus",
  "How an event stands. `queued`: it waits for its handler, also for a new attempt. `waiting_approval`: it waits for the owner's word. The last three are ends; `dead` is the dead letter, with a reason.",
  ["queued", "waiting_approval", "done", "rejected", "dead"],
);
export const EventDecision = enumOf("EventDecision", "The owner's word on an event.", ["approve", "reject"]);
/** The names of fields are those of the queue. */
export const EventEnvelope = struct("EventEnvelope", "An event as the queue `domain-events` carries it.", {
  /** Made from the conversation, the run and the call, so that a call that is made again emits the same event. */
  id: EventId,
  topic: Topic,
  /** The version of the topic's schema. */
  version: t.int(1),
  tenant_id: t.string(64, { minLength: 1 }),
  agent_id: t.string(64, { minLength: 1 }),
  /** The run that emitted it. */
  task_id: t.string(1024, { minLength: 1 }),
  emitted_at: t.time(),
  /** For handlers that change something outside: each change is made once for a key. */
  idempotency_key: t.string(64, { minLength: 1 }),
  payload: t.json(),
});
export const HumanReviewPayload = struct("HumanReviewPayload", "The payload of the topic `human_review`.", {
  /** What the owner is asked, in one paragraph. */
  question: t.string(2000, { minLength: 1 }),
  /** Why the agent does not decide it. */
  reason: o(t.string(2000)),
  /** What the owner needs for the decision. */
  details: o(t.json()),
});
const SUMMARY = {
  id: t.string(32, { minLength: 1 }),
  /** Empty: the message could not be read. */
  topic: t.string(64),
  status: EventStatus,
  agentId: AgentId,
  emittedAt: t.time(),
  /** Attempts of its handler that failed. */
  attempts: t.int(),
  /** Why the last attempt failed, or why it is a dead letter. */
  reason: o(t.string(1024)),
};
const EventSummary = struct("EventSummary", "An event, in a list.", SUMMARY);
const EventStart = struct("EventStart", "A job that an event has given an agent.", {
  agentId: AgentId,
  /** For `job.get`. */
  jobId: t.string(64, { minLength: 1, pattern: "^[a-z0-9]+$" }),
  startedAt: t.time(),
});
const DomainEvent = struct("DomainEvent", "An event and what has become of it.", {
  ...SUMMARY,
  version: t.int(),
  taskId: t.string(1024),
  sessionKey: o(SessionKey),
  /** As JSON. Stored secrets in it are masked. */
  payload: t.string(131072),
  /** What the conversation had read when it was emitted: `owner`, `self`, `files`, `peer` or `world`. */
  label: t.string(16),
  /** What raised the label. */
  labelSource: t.string(512),
  decision: o(EventDecision),
  decidedBy: o(t.string(512)),
  decidedAt: o(t.time()),
  /** What the owner said with the decision. */
  word: o(t.string(2048)),
  /** While it waits for the owner's word: the code of the question, for `approval.resolve`. */
  code: o(t.string(16)),
  endedAt: o(t.time()),
  /** Absent: none. */
  started: o(t.array(EventStart, 256)),
});
const id = t.string(32, { minLength: 1 });
method("events.list", {
  doc: "Lists events, the newest first.",
  params: {
    status: o(EventStatus),
    topic: o(t.string(64, { minLength: 1 })),
    /** Only events that are older than this one. */
    before: o(id),
    limit: o(t.int(1, 100)),
  },
  result: { events: t.array(EventSummary, 100), more: t.bool() },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["storage.failed", "event.not_found"],
  idempotent: true,
});
method("events.show", {
  doc: "Returns one event with its payload.",
  params: { id },
  result: { event: DomainEvent },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["storage.failed", "event.not_found"],
  idempotent: true,
});
method("events.resolve", {
  doc: "Gives the owner's word on an event that waits for it. The first decision counts; the same one again changes nothing.",
  params: { id, decision: EventDecision },
  result: { event: DomainEvent },
  callers: ["client"],
  scope: "operate",
  audit: "own",
  errors: ["storage.failed", "event.not_found", "event.wrong_state"],
  idempotent: true,
});
method("events.replay", {
  doc: "Sends a dead letter, or an event that waits, to its handler again. An event that was handled is not handled a second time.",
  params: { id },
  result: { event: DomainEvent },
  callers: ["client"],
  scope: "operate",
  audit: "own",
  errors: ["storage.failed", "event.not_found", "event.wrong_state"],
});
