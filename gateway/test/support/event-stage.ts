/** Domain events for tests: a log in SQLite, a queue that the test delivers, and jobs that are only counted. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { AgentDefinition, EventEnvelope, RunRequest } from "../../../protocol/gen/types.ts";
import { TopicList, type Topic } from "../../src/events/topics.ts";
import { EventLog } from "../../src/features/events/d1-store.ts";
import { Decisions } from "../../src/features/events/decisions.ts";
import { EventKeeper } from "../../src/features/events/keeper.ts";
import { EventStarts } from "../../src/features/events/starts.ts";
import { CORE_TOPICS } from "../../src/features/events/topics.ts";
import type { Emission } from "../../src/ports/events.ts";
import type { NotifyPort, Tell } from "../../src/ports/notify.ts";
import { type Result, succeed } from "../../src/ports/result.ts";
import type { SessionNote } from "../../src/ports/session.ts";
import type { NamedTask } from "../../src/ports/tasks.ts";
import { sqliteRows } from "./rows.ts";

/** As the configuration has it. */
export const STORED_SECRET = "shpat_0123456789abcdef";
const scrub = (text: string): string => text.replaceAll(STORED_SECRET, "[redacted]");
export const PARCEL: Topic = {
  name: "parcel",
  version: 1,
  doc: "parcel: {to}.",
  needsApproval: false,
  problem: (payload) => (JSON.stringify(payload).includes('"to"') ? undefined : "The payload does not fit: to is missing."),
  text: () => "A parcel.",
};
export class EventStage {
  now = 1_000_000;
  hasHandler = true;
  /** The core's topics are gone. */
  withoutReview = false;
  /** What is said of a pack that is off. */
  offPack: string | undefined;
  isStopped = false;
  /** What the log does before each statement. */
  before: (sql: string) => void = () => undefined;
  sending: () => Promise<void> = () => Promise.resolve();
  handler: (event: EventEnvelope) => Promise<Result<void>> = () => Promise.resolve(succeed(undefined));
  readonly sent: string[] = [];
  readonly handled: string[] = [];
  /** Agents of the topic. */
  subscribers: readonly string[] = [];
  subscribedTopic = "parcel";
  starting: (id: string) => Promise<Result<void>> = () => Promise.resolve(succeed(undefined));
  readonly jobs = new Map<string, { readonly request: RunRequest; readonly event: NamedTask["event"] }>();
  /** How the questions about events stand. */
  readonly questions = new Map<string, string>();
  /** The conversation of the event. */
  isDeleted = false;
  readonly notes = new Map<string, string>();
  noting = ({ key, text }: SessionNote): Promise<void> => Promise.resolve(void this.notes.set(key, text));
  readonly told = new Map<string, Tell>();
  readonly unsent = new Map<string, { dueAt: number; tries: number }>();
  readonly #db = sqliteRows((sql) => this.before(sql));
  keeper = this.#start();

  #log(): EventLog {
    return new EventLog(this.#db, {
      tenantId: "default",
      now: () => this.now,
      scrub,
      failed: () => undefined,
    });
  }
  #start(): EventKeeper {
    const handle = (event: EventEnvelope): Promise<Result<void>> => {
      this.handled.push(event.idempotency_key);
      return this.handler(event);
    };
    const escalation = [{ when: "low_confidence", to: "human_review" }];
    const definition = { events: { emit: ["parcel", "human_*"] }, escalation } as AgentDefinition;
    const ids = {
      name: () => "",
      bytes: () => new Uint8Array(),
      sha256: async (text: string) => createHash("sha256").update(text).digest("hex"),
    };
    const log = { warn: () => undefined, error: () => undefined };
    const events = this.#log();
    const notify: NotifyPort["notify"] = {
      tell: (tell) => (this.told.has(tell.key) ? undefined : this.told.set(tell.key, tell).size),
      over: () => undefined,
      bounced: () => false,
    };
    const topics = new TopicList()
      .add("events", this.withoutReview ? [] : CORE_TOPICS)
      .add("test", [PARCEL])
      .close();
    const subscribersOf = (topic: string) =>
      topic === this.subscribedTopic ? this.subscribers.map((agentId) => ({ agentId, name: `${agentId}_name` })) : [];
    const config = { mainKey: () => "main", hasAgent: () => true } as never;
    return new EventKeeper({
      definitionOf: (agentId) => (agentId === "mail" ? definition : undefined),
      notify,
      arm: () => undefined,
      ids,
      config,
      log: log as never,
      now: () => this.now,
      events,
      starts: new EventStarts({
        ids,
        log: log as never,
        events,
        subscribersOf,
        eventJobs: {
          start: async (id, request, event) => {
            const started = await this.starting(id);
            if (started.ok) this.jobs.set(id, { request, event });
            return started;
          },
        },
      }),
      outbox: {
        put: (id, dueAt) => void this.unsent.set(id, { dueAt, tries: this.unsent.get(id)?.tries ?? 0 }),
        again: (id, dueAt) => {
          const known = this.unsent.get(id);
          if (known !== undefined) this.unsent.set(id, { dueAt, tries: known.tries + 1 });
        },
        remove: (id, dueAt) => void (this.unsent.get(id)?.dueAt === dueAt && this.unsent.delete(id)),
        due: (now) => [...this.unsent].flatMap(([id, { dueAt, tries }]) => (dueAt <= now ? [{ id, tries, dueAt }] : [])),
      },
      topics,
      offPackOf: async () => this.offPack,
      isStopped: () => this.isStopped,
      decisions: new Decisions({
        scrub,
        notify,
        topics,
        config,
        events,
        subscribersOf,
        eventQuestions: {
          ask: async ({ id }) => {
            if (!this.questions.has(id)) this.questions.set(id, "waiting");
            return "K7Q2A";
          },
          end: (id, { outcome }) => void this.questions.set(id, outcome),
          codeOf: () => undefined,
          expired: () => [],
          agentGone: () => undefined,
          nextExpiry: () => undefined,
          answeredBy: () => undefined,
        },
        sessions: {
          find: (key: string) => (this.isDeleted ? undefined : { key, ref: "ref" }),
          lookUp: ({ key }: { readonly key: string }) => ({ key }),
        } as never,
        ask: (_key, ask) => ask({ note: (note: SessionNote) => this.noting(note) } as never),
      }),
      handlerOf: (topic) => (topic === "human_review" || (topic === "parcel" && this.hasHandler) ? handle : undefined),
      queueOf: () => ({
        send: async (envelope) => {
          await this.sending();
          this.sent.push(JSON.stringify(envelope));
        },
      }),
    });
  }
  /** What is in memory is lost. */
  kill(): void {
    this.keeper = this.#start();
  }
  /** What a kill has left is sent by the alarm. */
  async recover(): Promise<void> {
    this.sending = () => Promise.resolve();
    this.kill();
    this.now += 700_000;
    await this.keeper.sweep();
  }
  /** The log as it is on disk. */
  rows = async (): Promise<readonly object[]> => (await this.#db.prepare("SELECT * FROM event_log").all<object>()).results;
  async emit(more: Partial<Emission> = {}): Promise<string> {
    const emitted = await this.tryEmit(more);
    assert.ok(emitted.ok, JSON.stringify(emitted));
    return emitted.value.id;
  }
  tryEmit(more: Partial<Emission> = {}) {
    const taint = { label: "self", source: "the agent's own words" } as const;
    const given = { agentId: "mail", topic: "parcel", payload: { to: "Anna" }, sessionKey: "agent:mail:main", runId: "r1", callId: "c1" };
    return this.keeper.emit({ ...given, taint, now: this.now, ...more });
  }
  /** Makes copies of the first event until so many are open. */
  async fill(open: number): Promise<void> {
    await this.#db
      .prepare(
        `INSERT INTO event_log(id, tenant_id, agent_id, task_id, session_key, topic, version, payload, taint, taint_source, emitted_at, status, hops)
          WITH RECURSIVE copies(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < ?1 - 1)
          SELECT id || '-' || n, tenant_id, agent_id, task_id, session_key, topic, version, payload, taint, taint_source, emitted_at, status, hops
          FROM copies, (SELECT * FROM event_log LIMIT 1)`,
      )
      .bind(open)
      .run();
  }
  review = (callId = "c1"): Promise<string> =>
    this.emit({ topic: "human_review", payload: { question: "Refund 49 SEK?", reason: "Above my limit." }, callId });
  async starts(id: string): Promise<readonly string[]> {
    const found = await this.#log().starts(id);
    assert.ok(found.ok);
    return found.value.map(({ agentId, jobId }) => `${agentId} ${jobId}`);
  }
  async status(id: string) {
    const found = await this.keeper.find(id);
    assert.ok(found.ok);
    const { status, attempts, reason } = found.value;
    return [status, attempts, reason];
  }
  deliver = (text = this.sent.at(-1) ?? "", isDead = false) => this.keeper.consume(text, isDead);
}
