/**
 * Gives agents jobs for events of their topics (rules EV10, EV11). A job is named after the event and the agent, so that an event that comes
 * again finds it. What is in the event is data of the job, never its instructions.
 */
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { hopsOfRun } from "../../kernel/routing/hops.ts";
import type { AgentSubscribersPort } from "../../ports/agents.ts";
import type { Emission } from "../../ports/events.ts";
import type { EventJobsPort } from "../../ports/jobs.ts";
import { MAX_HOPS } from "../../ports/origin.ts";
import { type Result, sentence } from "../../ports/result.ts";
import { higher, SOURCE_CHARS, type Taint } from "../../ports/taint.ts";
import type { EventLog, EventRow } from "./d1-store.ts";

export interface StartPorts extends AgentSubscribersPort, EventJobsPort, Pick<KernelPorts, "ids" | "log"> {
  readonly events: Pick<EventLog, "starts" | "started">;
}
/**
 * Why an event could not be handled. `isFinal`: no later attempt could do it. `isLimit`: nothing failed; a limit has stopped it, and to send
 * it again changes nothing.
 */
export interface Problem {
  readonly reason: string;
  readonly isFinal: boolean;
  readonly isLimit: boolean;
}
const ID_CHARS = 26;
const SELF: Taint = { label: "self", source: "" };

/** How far the chain has come that an emission belongs to. */
export function hopsOfEmission({ origin, hops, sessionKey }: Pick<Emission, "origin" | "hops" | "sessionKey">, mainKey: string): number {
  return hops ?? hopsOfRun({ sessionKey, ...(origin === undefined ? {} : { origin }) }, mainKey);
}

export class EventStarts {
  readonly #ports: StartPorts;

  constructor(ports: StartPorts) {
    this.#ports = ports;
  }

  has(topic: string): boolean {
    return this.#ports.subscribersOf(topic).length > 0;
  }

  /** Each agent once. When the job of one can't be stored, the others still get theirs. */
  async start(row: EventRow): Promise<readonly Problem[]> {
    const subscribers = this.#ports.subscribersOf(row.envelope.topic);
    if (subscribers.length === 0) return [];
    const begun = await this.#ports.events.starts(row.envelope.id);
    if (!begun.ok) return [{ reason: sentence(begun.error), isFinal: false, isLimit: false }];
    const problems: Problem[] = [];
    for (const subscriber of subscribers) {
      if (begun.value.some(({ agentId }) => agentId === subscriber.agentId)) continue;
      const problem = await this.#startOne(row, subscriber);
      if (problem !== undefined) problems.push(problem);
    }
    return problems;
  }

  async #startOne({ envelope, taint, hops, decision }: EventRow, subscriber: { readonly agentId: string; readonly name: string }) {
    const { ids, events, eventJobs, log } = this.#ports;
    const { id, topic, agent_id: from, emitted_at, payload } = envelope;
    if (hops + 1 > MAX_HOPS)
      return {
        reason: `Stopped by a limit: the agent ${subscriber.agentId} got no job, because it would be number ${hops + 1} in a chain of events and conversations that start each other, and a chain ends after ${MAX_HOPS}. Nothing failed.`,
        isFinal: true,
        isLimit: true,
      };
    const jobId = (await ids.sha256(JSON.stringify(["event", id, subscriber.agentId]))).slice(0, ID_CHARS);
    const request = {
      agent_name: subscriber.name,
      instructions: `An event of the topic ${topic} has come from the agent ${from}. Handle it as your role says.`,
      payload: { topic, event_id: id, emitted_by: from, emitted_at, ...(decision === undefined ? {} : { decision }), payload },
    };
    const label = higher(SELF, taint).label;
    const read = label === "self" ? "" : `, which has read ${taint.source}`;
    const source = `an event of the agent ${from}${read}`.slice(0, SOURCE_CHARS);
    try {
      const started = await eventJobs.start(jobId, request, { id, hops: hops + 1, taint: { label, source } });
      if (!started.ok) return failed(started, subscriber.agentId);
      const noted = await events.started(id, subscriber.agentId, jobId);
      return noted.ok ? undefined : failed(noted, subscriber.agentId);
    } catch (error) {
      log.error("event_job_failed", { id, agent: subscriber.agentId, error });
      return { reason: `${noJob(subscriber.agentId)} the job could not be stored.`, isFinal: false, isLimit: false };
    }
  }
}
const noJob = (agentId: string): string => `The agent ${agentId} got no job:`;
const failed = ({ error }: Extract<Result<void>, { readonly ok: false }>, agentId: string): Problem => ({
  reason: `${noJob(agentId)} ${sentence(error)}`,
  isFinal: !ERRORS[error.reason].retryable,
  isLimit: false,
});
