/**
 * The log of events in D1 (rules EV2 to EV6): how each event stands. Each change names the state that it leaves, so that the same
 * change made twice happens once. Decides nothing.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { EventDecision, EventEnvelope, EventStatus } from "../../../../protocol/gen/types.ts";
import { fail } from "../../kernel/outcome.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { SOURCE_CHARS, type Taint, TAINT_LABELS } from "../../ports/taint.ts";
import { once } from "../../../../protocol/runtime/once.ts";
import { DAY_MS } from "../../../../protocol/runtime/day.ts";
import { guardedRows, migrateRows, type RowDatabase } from "../../storage/rows.ts";
import { EVENT_ROWS } from "./migrations.ts";

export interface EventRow {
  readonly envelope: EventEnvelope;
  readonly sessionKey: string;
  readonly taint: Taint;
  readonly status: EventStatus;
  readonly attempts: number;
  readonly replays: number;
  /** Rises with each replay, from 0 when this column was added; `replays` counts all. Messages and attempts of an older one count no more. */
  readonly generation: number;
  readonly reason?: string;
  /** The reason is a limit: nothing failed. */
  readonly isLimit: boolean;
  readonly decision?: EventDecision;
  readonly decidedBy?: string;
  readonly decidedAt?: number;
  readonly endedAt?: number;
  /** What the owner said with the decision. */
  readonly word?: string;
  /** When its conversation was told of the decision. */
  readonly decisionToldAt?: number;
  /** Events and conversations that its chain has come through (rule EV11). */
  readonly hops: number;
  /** When its handler was done with it. Its jobs may not all have begun. */
  readonly handledAt?: number;
}
/** Why it was not handled. */
export type Unhandled = Pick<EventRow, "isLimit"> & { readonly reason: string };
/** A job that an event has given an agent. */
export interface StartRow {
  readonly agentId: string;
  readonly jobId: string;
  readonly startedAt: number;
}
/** The owner's word on an event. */
export interface Decided {
  readonly decision: EventDecision;
  readonly by: string;
  readonly word?: string;
}
export type NewEvent = Pick<EventRow, "envelope" | "sessionKey" | "taint" | "hops">;
export interface EventsAsked {
  readonly status?: EventStatus;
  readonly topic?: string;
  readonly before?: string;
  readonly limit: number;
}
type Row = {
  id: string;
  tenant_id: string;
  agent_id: string;
  task_id: string;
  session_key: string;
  topic: string;
  version: number;
  payload: string;
  taint: string;
  taint_source: string;
  emitted_at: number;
  status: string;
  attempts: number;
  replays: number;
  generation: number;
  reason: string | null;
  is_limit: number;
  decision: string | null;
  decided_by: string | null;
  decided_at: number | null;
  ended_at: number | null;
  hops: number;
  handled_at: number | null;
  word: string | null;
  decision_told_at: number | null;
};
const OLD = "SELECT id FROM event_log WHERE ended_at IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT ?";
const REASON_CHARS = 1000;
const PRUNED = 100;

export interface EventLogOptions {
  readonly tenantId: string;
  readonly now: () => number;
  /** Masks stored secrets. A reason, and a message that could not be read, are texts of others. */
  readonly scrub: (text: string) => string;
  /** Gets the exceptions of the database. */
  readonly failed: (what: string, error: unknown) => void;
}
export class EventLog {
  readonly #db: RowDatabase;
  readonly #now: () => number;
  readonly #failed: (what: string, error: unknown) => void;
  readonly #tenantId: string;
  readonly #scrub: (text: string) => string;
  readonly #ready = once(() => migrateRows(this.#db, "events", EVENT_ROWS, this.#now()));

  constructor(db: RowDatabase, { tenantId, now, scrub, failed }: EventLogOptions) {
    this.#db = db;
    this.#scrub = scrub;
    this.#tenantId = tenantId;
    this.#now = now;
    this.#failed = failed;
  }

  /** Once for an id. Removes what ended long ago. */
  add(event: NewEvent): Promise<Result<EventRow>> {
    return this.#guarded("store the event", async () => {
      const endedBefore = this.#now() - LIMITS.eventDays * DAY_MS;
      await this.#db.batch([
        this.#db.prepare(`DELETE FROM event_starts WHERE event_id IN (${OLD})`).bind(endedBefore, PRUNED),
        this.#db.prepare(`DELETE FROM event_log WHERE id IN (${OLD})`).bind(endedBefore, PRUNED),
        this.#insert(event, "queued", undefined),
      ]);
      const kept = await this.#find(event.envelope.id);
      return kept === undefined
        ? fail("limit.events", `${LIMITS.eventsOpen.toLocaleString("en-US")} events wait, which is the limit.`)
        : succeed(kept);
    });
  }
  /** A message that is no event of this log: its text is kept as it came. */
  addBroken(id: string, text: string, reason: string): Promise<Result<void>> {
    return this.#guarded("store the event", async () => {
      const payload = this.#clean(text, LIMITS.eventPayloadBytes);
      const now = this.#now();
      const envelope = { id, topic: "", version: 0, tenant_id: this.#tenantId, agent_id: "", task_id: "", emitted_at: now };
      const event = { envelope: { ...envelope, idempotency_key: id, payload }, sessionKey: "", taint: UNKNOWN, hops: 0 };
      await this.#insert(event, "dead", reason).run();
      return succeed(undefined);
    });
  }
  #insert({ envelope, sessionKey, taint, hops }: NewEvent, status: EventStatus, reason: string | undefined) {
    const { id, agent_id, task_id, topic, version, payload, emitted_at } = envelope;
    return this.#db
      .prepare(
        `INSERT INTO event_log(id, tenant_id, agent_id, task_id, session_key, topic, version, payload, taint, taint_source, emitted_at, status, reason, ended_at, hops)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?16
         WHERE ?14 IS NOT NULL OR (SELECT count(*) FROM event_log WHERE tenant_id = ?2 AND status IN ('queued', 'waiting_approval')) < ?15
         ON CONFLICT(id) DO NOTHING`,
      )
      .bind(
        id,
        this.#tenantId,
        agent_id,
        task_id,
        sessionKey,
        topic,
        version,
        JSON.stringify(payload),
        taint.label,
        taint.source.slice(0, SOURCE_CHARS),
        emitted_at,
        status,
        reason === undefined ? null : this.#clean(reason, REASON_CHARS),
        reason === undefined ? null : this.#now(),
        LIMITS.eventsOpen,
        hops,
      );
  }
  get(id: string): Promise<Result<EventRow | undefined>> {
    return this.#guarded("read the event", async () => succeed(await this.#find(id)));
  }
  async #find(id: string): Promise<EventRow | undefined> {
    const row = await this.#db.prepare("SELECT * FROM event_log WHERE id = ? AND tenant_id = ?").bind(id, this.#tenantId).first<Row>();
    return row === null ? undefined : eventOf(row);
  }

  /** Its handler is not called again. */
  handled(id: string): Promise<Result<void>> {
    return this.#change("UPDATE event_log SET handled_at = ? WHERE id = ? AND handled_at IS NULL", this.#now(), id);
  }
  starts(id: string): Promise<Result<readonly StartRow[]>> {
    return this.#guarded("read the jobs of the event", async () => {
      const { results } = await this.#db
        .prepare("SELECT agent_id, job_id, started_at FROM event_starts WHERE event_id = ? ORDER BY agent_id")
        .bind(id)
        .all<{ agent_id: string; job_id: string; started_at: number }>();
      return succeed(results.map((row) => ({ agentId: row.agent_id, jobId: row.job_id, startedAt: row.started_at })));
    });
  }
  started(id: string, agentId: string, jobId: string): Promise<Result<void>> {
    return this.#change(
      "INSERT INTO event_starts(event_id, agent_id, job_id, started_at) VALUES(?, ?, ?, ?) ON CONFLICT DO NOTHING",
      id,
      agentId,
      jobId,
      this.#now(),
    );
  }

  /** The newest first. */
  list({ status, topic, before, limit }: EventsAsked): Promise<Result<{ readonly events: readonly EventRow[]; readonly more: boolean }>> {
    return this.#guarded("list the events", async () => {
      if (before !== undefined && (await this.#find(before)) === undefined)
        return fail("event.not_found", `There is no event ${JSON.stringify(before)}.`);
      const { results } = await this.#db
        .prepare(
          `SELECT * FROM event_log WHERE tenant_id = ?1 AND (?2 = '' OR status = ?2) AND (?3 = '' OR topic = ?3)
           AND (?4 = '' OR (emitted_at, id) < (SELECT emitted_at, id FROM event_log WHERE id = ?4))
           ORDER BY emitted_at DESC, id DESC LIMIT ?5`,
        )
        .bind(this.#tenantId, status ?? "", topic ?? "", before ?? "", limit + 1)
        .all<Row>();
      return succeed({ events: results.slice(0, limit).map(eventOf), more: results.length > limit });
    });
  }

  /** Events that the queue has, or should have. There are at most `LIMITS.eventsOpen`. */
  queuedIds(): Promise<Result<readonly string[]>> {
    return this.#guarded("list the events", async () => {
      const { results } = await this.#db.prepare("SELECT id FROM event_log WHERE status = 'queued'").all<{ id: string }>();
      return succeed(results.map(({ id }) => id));
    });
  }
  /** It waits for the owner. */
  wait(id: string): Promise<Result<void>> {
    return this.#change("UPDATE event_log SET status = 'waiting_approval' WHERE id = ? AND status = 'queued' AND decision IS NULL", id);
  }
  done(id: string): Promise<Result<void>> {
    return this.#change(
      "UPDATE event_log SET status = 'done', reason = NULL, is_limit = 0, ended_at = ?2 WHERE id = ?1 AND status = 'queued'",
      id,
      this.#now(),
    );
  }
  /** An attempt of `generation`; without effect when the event was replayed meanwhile. */
  failed(id: string, generation: number, attempts: number, { reason, isLimit }: Unhandled): Promise<Result<void>> {
    return this.#change(
      "UPDATE event_log SET attempts = ?, reason = ?, is_limit = ? WHERE id = ? AND generation = ? AND status = 'queued'",
      attempts,
      this.#clean(reason, REASON_CHARS),
      Number(isLimit),
      id,
      generation,
    );
  }
  /** Dead letter; not when the event was replayed since `generation`. */
  bury(id: string, generation: number, { reason, isLimit }: Unhandled): Promise<Result<void>> {
    return this.#change(
      "UPDATE event_log SET status = 'dead', reason = ?, is_limit = ?, ended_at = ? WHERE id = ? AND generation = ? AND status = 'queued'",
      this.#clean(reason, REASON_CHARS),
      Number(isLimit),
      this.#now(),
      id,
      generation,
    );
  }
  /** The first decision counts. */
  decide(id: string, { decision, by, word }: Decided): Promise<Result<void>> {
    const now = this.#now();
    const isApproved = decision === "approve";
    return this.#change(
      `UPDATE event_log SET status = ?, decision = ?, decided_by = ?, word = ?, decided_at = ?, ended_at = ?
       WHERE id = ? AND status = 'waiting_approval' AND decision IS NULL`,
      isApproved ? "queued" : "rejected",
      decision,
      by,
      word ?? null,
      now,
      isApproved ? null : now,
      id,
    );
  }
  decisionTold(id: string): Promise<Result<void>> {
    return this.#change("UPDATE event_log SET decision_told_at = ? WHERE id = ? AND decision_told_at IS NULL", this.#now(), id);
  }
  replay(id: string): Promise<Result<void>> {
    return this.#change(
      `UPDATE event_log SET status = 'queued', attempts = 0, reason = NULL, is_limit = 0, ended_at = NULL, replays = replays + 1, generation = generation + 1
       WHERE id = ? AND status IN ('dead', 'queued')`,
      id,
    );
  }

  /** Secrets are masked before the text is cut: a part of one would not be found. */
  #clean(text: string, chars: number): string {
    return this.#scrub(text).toWellFormed().slice(0, chars);
  }
  #change(sql: string, ...values: readonly (string | number | null)[]): Promise<Result<void>> {
    return this.#guarded("change the event", async () => {
      await this.#db
        .prepare(sql)
        .bind(...values)
        .run();
      return succeed(undefined);
    });
  }
  #guarded<T>(what: string, work: () => Promise<Result<T>>): Promise<Result<T>> {
    const ready = async (): Promise<Result<T>> => {
      await this.#ready();
      return work();
    };
    return guardedRows(what, ready, this.#failed);
  }
}
const UNKNOWN: Taint = { label: "world", source: "a message of the queue" };
/** The gateway wrote the row. A label that this version does not know counts as the highest one. */
const eventOf = (row: Row): EventRow => ({
  envelope: {
    id: row.id,
    topic: row.topic,
    version: row.version,
    tenant_id: row.tenant_id,
    agent_id: row.agent_id,
    task_id: row.task_id,
    emitted_at: row.emitted_at,
    idempotency_key: row.id,
    payload: JSON.parse(row.payload),
  },
  sessionKey: row.session_key,
  taint: { label: TAINT_LABELS.find((label) => label === row.taint) ?? "world", source: row.taint_source },
  status: row.status as EventStatus,
  attempts: row.attempts,
  replays: row.replays,
  generation: row.generation,
  ...(row.reason === null ? {} : { reason: row.reason }),
  isLimit: row.is_limit === 1,
  ...(row.decision === null ? {} : { decision: row.decision as EventDecision }),
  ...(row.decided_by === null ? {} : { decidedBy: row.decided_by }),
  ...(row.decided_at === null ? {} : { decidedAt: row.decided_at }),
  ...(row.ended_at === null ? {} : { endedAt: row.ended_at }),
  hops: row.hops,
  ...(row.word === null ? {} : { word: row.word }),
  ...(row.decision_told_at === null ? {} : { decisionToldAt: row.decision_told_at }),
  ...(row.handled_at === null ? {} : { handledAt: row.handled_at }),
});
