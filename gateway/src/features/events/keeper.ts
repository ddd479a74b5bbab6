/**
 * Emits, handles, decides and replays events (rules EV2 to EV8). The log is changed before anything else happens, and everything here can
 * be repeated: what is killed in between goes on with the next delivery, or with the outbox.
 */
import { backoffMs } from "../../../../protocol/runtime/backoff.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { EventEnvelope } from "../../../../protocol/gen/types.ts";
import { valueNestsDeeper } from "../../../../protocol/runtime/depth.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import { canonicalJson } from "../../calls/approval.ts";
import { escalationOf, isListed } from "../../agents/definition.ts";
import { problemOf, type ReadEnvelope, readEnvelope } from "../../events/envelope.ts";
import { AGENT_GONE, NO_ONE } from "../../events/expiry.ts";
import type { Topic, Topics } from "../../events/topics.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { AgentDefinitionsPort } from "../../ports/agents.ts";
import type { Emission, Emitted, EventHandler, EventQueue, QueuedEvent, Settled } from "../../ports/events.ts";
import { TENANT_ID } from "../../ports/tenant.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import { failure, type Result, sentence, succeed } from "../../ports/result.ts";
import type { Decided, EventLog, EventRow } from "./d1-store.ts";
import type { Decisions } from "./decisions.ts";
import { overrideIn } from "../../prompt/task.ts";
import type { OutboxStore, Unsent } from "./outbox-store.ts";
import { type EventStarts, hopsOfEmission, type Problem } from "./starts.ts";

export interface KeeperPorts extends AgentDefinitionsPort, NotifyPort, Pick<KernelPorts, "arm" | "config" | "ids" | "log" | "now"> {
  readonly events: EventLog;
  readonly outbox: Pick<OutboxStore, "put" | "again" | "remove" | "due">;
  readonly topics: Topics;
  readonly handlerOf: (topic: string) => EventHandler | undefined;
  /** The queue with this name, for the topics of a pack with a queue of its own. Undefined: the deployment has no queue. */
  readonly queueOf: (name: string | undefined) => EventQueue | undefined;
  /** About the pack that has the topic and is off. */
  readonly offPackOf: (topic: string) => Promise<string | undefined>;
  /** Everything is stopped. */
  readonly isStopped: () => boolean;
  readonly starts: Pick<EventStarts, "has" | "start">;
  readonly decisions: Pick<Decisions, "ask" | "tell" | "over">;
}
/** Pauses before the second, third and fourth attempt. */
export const RETRY_SECONDS = [10, 60, 300] as const;
/** The log did not answer: this is no attempt of the handler. */
const LOG_RETRY_SECONDS = 30;
const OUTBOX_MS = 30_000;
const OUTBOX_MAX_MS = 600_000;
const ID_CHARS = 32;
const ACK: Settled = { kind: "ack" };
const AGAIN: Settled = { kind: "retry", delaySeconds: LOG_RETRY_SECONDS };

export class EventKeeper {
  readonly #ports: KeeperPorts;
  /** Deliveries and decisions of one event wait for each other, so that copies are handled once. After a kill there are none. */
  readonly #handling = new Map<string, Promise<unknown>>();

  constructor(ports: KeeperPorts) {
    this.#ports = ports;
  }

  async emit(emission: Emission): Promise<Result<Emitted>> {
    const { definitionOf, topics, ids, events, outbox, config } = this.#ports;
    const { agentId, escalation, payload, sessionKey, runId, callId, taint, now } = emission;
    const definition = definitionOf(agentId);
    const chosen = escalation === undefined ? undefined : escalationOf(definition, escalation);
    if (escalation !== undefined && chosen === undefined)
      return fail(
        "event.not_allowed",
        `The agent's definition has no escalation for ${escalation}.`,
        "Say in your answer what you are not sure of.",
      );
    const name = chosen ?? emission.topic;
    const allowed = chosen === undefined ? definition?.events?.emit : [chosen];
    const topic = topics.get(name);
    const offered = [...topics.keys()].filter((known) => isListed(allowed, known));
    if (topic === undefined) return fail("event.topic_unknown", `There is no topic ${JSON.stringify(name.slice(0, 64))}.`, listed(offered));
    if (!isListed(allowed, name)) return fail("event.not_allowed", `The agent may not emit events of the topic ${name}.`, listed(offered));
    const problem = payload === undefined ? "The payload is missing." : (depthProblem(payload) ?? topic.problem(payload));
    if (problem !== undefined) return fail("event.invalid", problem, topic.doc);
    // Its subscribers' tasks would be refused, after the owner was asked (rules RT5, EV10).
    const higher = this.#ports.starts.has(name) ? overrideIn(payload) : undefined;
    if (higher !== undefined) return fail("event.invalid", `\`${higher}\` is a key of a higher layer of the prompt.`, topic.doc);
    if (utf8Bytes(JSON.stringify(payload)) > LIMITS.eventPayloadBytes)
      return fail("event.invalid", `The payload has more than ${LIMITS.eventPayloadBytes.toLocaleString("en-US")} bytes.`);
    const taskId = runId ?? sessionKey;
    const id = (await ids.sha256(JSON.stringify([TENANT_ID, sessionKey, taskId, callId]))).slice(0, ID_CHARS);
    const envelope: EventEnvelope = {
      id,
      topic: name,
      version: topic.version,
      tenant_id: TENANT_ID,
      agent_id: agentId,
      task_id: taskId,
      emitted_at: now,
      idempotency_key: id,
      payload,
    };
    const dueAt = this.#expect(id);
    const kept = await events.add({ envelope, sessionKey, taint, hops: hopsOfEmission(emission, config.mainKey()) });
    if (!kept.ok) {
      // After any other failure the log may have the event, so the alarm looks for it.
      if (kept.error.reason === "limit.events") outbox.remove(id, dueAt);
      return kept;
    }
    await this.#send(kept.value, { tries: 0, dueAt });
    return succeed({ id, needsApproval: topic.needsApproval });
  }
  /** Before the log is changed: the alarm sends what a kill leaves unsent. */
  #expect(id: string): number {
    const { outbox, now, arm } = this.#ports;
    const dueAt = now() + OUTBOX_MS;
    outbox.put(id, dueAt);
    arm();
    return dueAt;
  }
  /** What is to be done once the log has changed: the queue gets the event, and its conversation learns of a decision. */
  async #send(row: EventRow, { tries, dueAt }: Unsent): Promise<void> {
    const { queueOf, topics, outbox, now, log, arm, decisions } = this.#ports;
    const { envelope, status } = row;
    try {
      const queue = queueOf(topics.get(envelope.topic)?.queue);
      if (queue === undefined) throw new Error("the deployment has no queue for events");
      if (status === "queued") await queue.send(messageOf(row), { contentType: "json" });
      await decisions.tell(row);
      outbox.remove(envelope.id, dueAt);
    } catch (error) {
      log.warn("event_not_sent", { id: envelope.id, error });
      outbox.again(envelope.id, now() + backoffMs(tries + 1, OUTBOX_MS, OUTBOX_MAX_MS));
      arm();
    }
  }
  /** Sends what a kill, or a queue that did not answer, has left. */
  async sweep(): Promise<void> {
    const { outbox, events, now } = this.#ports;
    for (const { id, ...unsent } of outbox.due(now())) {
      const row = await events.get(id);
      if (!row.ok) outbox.again(id, now() + backoffMs(unsent.tries + 1, OUTBOX_MS, OUTBOX_MAX_MS));
      else if (row.value === undefined) outbox.remove(id, unsent.dueAt);
      else await this.#send(row.value, unsent);
    }
  }

  async consume(text: string, isDead: boolean): Promise<Settled> {
    const read = readEnvelope(text, this.#ports.topics, TENANT_ID);
    if (!read.ok) {
      const off = read.unknownTopic === undefined ? undefined : await this.#ports.offPackOf(read.unknownTopic);
      return this.#broken(text, off === undefined ? read.reason : `${read.reason} ${off}`, read.id);
    }
    return this.#inTurn(read.envelope.id, () => this.#deliver(read, isDead));
  }
  async #inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    // It runs also when the work before it failed.
    const handling = (this.#handling.get(id) ?? Promise.resolve()).then(work, work);
    this.#handling.set(id, handling);
    try {
      return await handling;
    } finally {
      if (this.#handling.get(id) === handling) this.#handling.delete(id);
    }
  }
  /** The event in the log decides what happens. The message only names the event. */
  async #deliver({ envelope, generation }: Delivered, isDead: boolean): Promise<Settled> {
    const { events, topics } = this.#ports;
    const { id } = envelope;
    const found = await events.get(id);
    if (!found.ok) return AGAIN;
    const row = found.value;
    if (row === undefined) return this.#broken(JSON.stringify(envelope), "The log of events does not have this event.", id);
    const topic = topics.get(row.envelope.topic);
    if (topic === undefined || canonicalJson(envelope) !== canonicalJson(row.envelope))
      return this.#broken(JSON.stringify(envelope), "The message of the queue differs from the event in the log.", id);
    // The event was replayed, and has a newer message.
    if (generation < row.generation) return ACK;
    if (row.status === "dead") return this.#tellDead(row);
    if (row.status === "waiting_approval") return this.#ask(row, topic);
    if (row.status !== "queued") return ACK;
    if (isDead) return this.#bury(row, row.reason ?? "It was delivered as often as the queue allows, and nothing answered.");
    if (topic.needsApproval && row.decision === undefined) {
      const waits = await events.wait(id);
      return waits.ok ? this.#ask(row, topic) : AGAIN;
    }
    return this.#handle(row, topic);
  }
  async #handle(row: EventRow, topic: Topic): Promise<Settled> {
    const { events, isStopped } = this.#ports;
    if (isStopped()) return this.#hold(row);
    const { id } = row.envelope;
    const problem = await this.#problemOf(row, topic);
    if (problem === undefined) return (await events.done(id)).ok ? ACK : AGAIN;
    const delaySeconds = RETRY_SECONDS[row.attempts];
    const noted = await events.failed(id, row.generation, row.attempts + 1, problem);
    if (!noted.ok) return AGAIN;
    if (delaySeconds === undefined || problem.isFinal)
      return this.#bury({ ...row, attempts: row.attempts + 1, isLimit: problem.isLimit }, problem.reason);
    return { kind: "retry", delaySeconds };
  }
  /** The queue would give up during a long stop. The log has the event, and the alarm sends it to the queue again after the resume (ST7). */
  #hold({ envelope: { id } }: EventRow): Settled {
    this.#ports.outbox.put(id, this.#ports.now());
    return ACK;
  }
  /** Why its handler failed, or an agent of its topic got no job. Neither holds up the other, and none of them gets the event twice. */
  async #problemOf(row: EventRow, topic: Topic): Promise<Problem | undefined> {
    const { starts, events } = this.#ports;
    const problems = [...(await this.#callHandler(row, topic))];
    const isHandled = problems.length === 0;
    problems.push(...(await starts.start(row)));
    if (problems.length === 0) return undefined;
    const noted = isHandled && row.handledAt === undefined ? await events.handled(row.envelope.id) : succeed(undefined);
    return {
      reason: problems.map(({ reason }) => reason).join(" "),
      isFinal: noted.ok && problems.every(({ isFinal }) => isFinal),
      isLimit: problems.every(({ isLimit }) => isLimit),
    };
  }
  async #callHandler({ envelope, handledAt }: EventRow, topic: Topic): Promise<readonly Problem[]> {
    const { handlerOf, starts, log } = this.#ports;
    const handler = handlerOf(topic.name);
    const failed = (reason: string): readonly Problem[] => [{ reason, isFinal: false, isLimit: false }];
    if (handledAt !== undefined || (handler === undefined && starts.has(topic.name))) return [];
    if (handler === undefined) return failed(`Nothing handles the topic ${topic.name}.`);
    try {
      const handled = await within(afterTimeout, LIMITS.eventHandlerMs, handler(envelope), () => undefined);
      if (handled === undefined) return failed(`The handler did not answer in ${LIMITS.eventHandlerMs / 60_000} minutes.`);
      return handled.ok ? [] : failed(sentence(handled.error));
    } catch (error) {
      log.error("event_handler_failed", { id: envelope.id, topic: topic.name, error });
      return failed("The handler failed inside GSV.");
    }
  }
  async #ask(row: EventRow, topic: Topic): Promise<Settled> {
    await this.#ports.decisions.ask(row, topic);
    return ACK;
  }

  async #bury(row: EventRow, reason: string): Promise<Settled> {
    const { events } = this.#ports;
    const { id } = row.envelope;
    const buried = await events.bury(id, row.generation, { reason, isLimit: row.isLimit });
    if (!buried.ok) return AGAIN;
    const now = await events.get(id);
    if (!now.ok) return AGAIN;
    // It may have been replayed during the attempt.
    return now.value?.status === "dead" ? this.#tellDead({ ...now.value, reason }) : ACK;
  }
  #tellDead({ envelope, replays, reason = "", isLimit }: EventRow): Settled {
    const { id, topic, agent_id: agentId } = envelope;
    const what = topic === "" ? "A message of the event queue" : `An event of the agent ${agentId} (${topic})`;
    const end = isLimit
      ? `began no further work. ${reason}\n\nLook at it: \`gsv events show ${id}\`. If the work should go on, give it to the agent yourself: \`gsv job submit AGENT TEXT\`.`
      : `could not be handled: ${reason}\n\nLook at it: \`gsv events show ${id}\`. Send it again: \`gsv events replay ${id}\`.`;
    const text = `${what} ${end}`;
    const cause = `event:${topic}`;
    this.#ports.notify.tell({ kind: "job", key: `event:${id}:dead:${replays}`, cause, text, ...(agentId === "" ? {} : { agentId }) });
    return ACK;
  }
  /** Never delivered again: no later attempt could read it. */
  async #broken(text: string, reason: string, known: string | undefined): Promise<Settled> {
    const { events, ids } = this.#ports;
    const id = known ?? (await ids.sha256(text)).slice(0, ID_CHARS);
    const found = await events.get(id);
    if (!found.ok) return AGAIN;
    if (found.value === undefined) {
      const added = await events.addBroken(id, text, reason);
      if (!added.ok) return AGAIN;
    } else if (found.value.status === "queued") return this.#bury({ ...found.value, isLimit: false }, reason);
    const row = await events.get(id);
    if (!row.ok || row.value === undefined) return AGAIN;
    return row.value.status === "dead" ? this.#tellDead(row.value) : ACK;
  }

  async resolve(id: string, decided: Decided): Promise<Result<EventRow>> {
    const found = await this.find(id);
    return found.ok ? this.#inTurn(found.value.envelope.id, () => this.#resolve(found.value.envelope.id, decided)) : found;
  }
  async #resolve(id: string, decided: Decided): Promise<Result<EventRow>> {
    const found = await this.find(id);
    if (!found.ok) return found;
    const { decision } = decided;
    if (found.value.status !== "waiting_approval" && found.value.decision !== decision)
      return fail("event.wrong_state", `The event does not wait for your word: it is ${standing(found.value)}.`);
    // Approved, it would only become a dead letter.
    const { topic } = found.value.envelope;
    if (decision === "approve" && found.value.status === "waiting_approval" && !this.#ports.topics.has(topic)) {
      const off = await this.#ports.offPackOf(topic);
      return fail(
        "event.wrong_state",
        `The event can't be handled: ${noTopic(off)}`,
        off === undefined
          ? `Reject it: \`gsv events resolve ${id} reject\`.`
          : "Turn the pack on, then approve the event again. It waits until then.",
      );
    }
    const dueAt = this.#expect(id);
    const written = await this.#ports.events.decide(id, decided);
    if (!written.ok) return written;
    const row = await this.find(id);
    if (!row.ok) return row;
    if (row.value.decision !== decision)
      return fail("event.wrong_state", `Another decision came first: the event is ${standing(row.value)}.`);
    await this.#send(row.value, { tries: 0, dueAt });
    return row;
  }
  /** No one has decided in time, or the agent is gone. The question ends whatever became of the event, so that the alarm does not find it again. */
  async expire(ids: readonly string[], rejected: (id: string, by: string) => void): Promise<void> {
    for (const id of ids) {
      const known = await this.find(id);
      const by = known.ok && !this.#ports.config.hasAgent(known.value.envelope.agent_id) ? AGENT_GONE : NO_ONE;
      const expired = await this.resolve(id, { decision: "reject", by });
      if (expired.ok) rejected(id, by);
      const found = expired.ok ? expired : await this.find(id);
      if (!found.ok && found.error.reason !== "event.not_found") throw new Error(found.error.message);
      if (found.ok && found.value.status === "waiting_approval") throw new Error("the event still waits");
      this.#ports.decisions.over(id, found.ok ? found.value : undefined);
    }
  }
  async replay(id: string): Promise<Result<EventRow>> {
    const { events, topics } = this.#ports;
    const found = await this.find(id);
    if (!found.ok) return found;
    const { envelope, status } = found.value;
    if (status !== "dead" && status !== "queued")
      return fail(
        "event.wrong_state",
        `Only a dead letter or an event that waits for its handler can be sent again: this one is ${standing(found.value)}.`,
      );
    const topic = topics.get(envelope.topic);
    const problem =
      topic === undefined ? noTopic(await this.#ports.offPackOf(envelope.topic)) : problemOf(topic, envelope.version, envelope.payload);
    if (problem !== undefined) return fail("event.wrong_state", `The event can't be handled: ${problem}`);
    const dueAt = this.#expect(envelope.id);
    const again = await events.replay(envelope.id);
    if (!again.ok) return again;
    const row = await this.find(envelope.id);
    if (row.ok) await this.#send(row.value, { tries: 0, dueAt });
    return row;
  }
  async find(id: string): Promise<Result<EventRow>> {
    const found = await this.#ports.events.get(id.trim().toLowerCase());
    if (!found.ok) return found;
    return found.value === undefined
      ? failure("event.not_found", `There is no event ${JSON.stringify(id.slice(0, 32))}.`)
      : succeed(found.value);
  }
}
type Delivered = Extract<ReadEnvelope, { readonly ok: true }>;
const messageOf = ({ envelope, generation }: EventRow): QueuedEvent => (generation === 0 ? envelope : { ...envelope, generation });
const depthProblem = (payload: unknown): string | undefined =>
  valueNestsDeeper(payload, LIMITS.valueDepth) ? `The payload is nested more than ${LIMITS.valueDepth} levels deep.` : undefined;
const listed = (topics: readonly string[]): string =>
  topics.length === 0 ? "The agent may emit no events." : `Topics of this agent: ${topics.join(", ")}.`;
const standing = ({ status }: EventRow): string => status.replace("_", " ");
/** `off`: a sentence about the pack that has the topic and is off. */
const noTopic = (off: string | undefined): string => `It names no topic of this gateway. ${off ?? ""}`.trim();
