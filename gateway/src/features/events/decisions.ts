/**
 * The owner's word on events (rules EV7, EV12): the question about one, and what the conversation that emitted it is told of the decision.
 * Decides nothing.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { afterTimeout, within } from "../../../../protocol/runtime/within.ts";
import { visible } from "../../calls/shown-call.ts";
import { isNoWord, NO_ONE } from "../../events/expiry.ts";
import type { Topic, Topics } from "../../events/topics.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import { actorName } from "../../ports/actor.ts";
import type { AgentSubscribersPort } from "../../ports/agents.ts";
import type { EventQuestion, EventQuestionsPort } from "../../ports/approvals.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import { isForeign, taintMark } from "../../ports/taint.ts";
import type { EventLog, EventRow } from "./d1-store.ts";

export interface DecisionPorts
  extends AgentSubscribersPort,
    EventQuestionsPort,
    NotifyPort,
    SessionsPort,
    Pick<KernelPorts, "config" | "scrub"> {
  readonly events: Pick<EventLog, "decisionTold">;
  readonly topics: Topics;
}
const TEXT_CHARS = 2000;
const QUOTED_CHARS = 300;
/** Agents in one question. */
const NAMED = 8;
const ANSWER_MS = 10_000;
const HANDED_ON = "Approved, it goes to its handler; rejected, nothing happens. The agent is told of both.";
const askKey = (id: string): string => `event:${id}:asks`;

export class Decisions {
  readonly #ports: DecisionPorts;

  constructor(ports: DecisionPorts) {
    this.#ports = ports;
  }

  /** The owner sees the question once, also when this is repeated. */
  async ask({ envelope, sessionKey, taint }: EventRow, topic: Topic): Promise<void> {
    const { eventQuestions, notify, scrub, subscribersOf } = this.#ports;
    const { id, agent_id: agentId, task_id: runId, payload } = envelope;
    const why = `An event of the agent ${agentId} (${topic.name}${taintMark(taint)}) waits for your word. ${meaningOf(topic, subscribersOf(topic.name))}`;
    const question: EventQuestion = { id, agentId, sessionKey, runId, topic: topic.name, text: questionOf(topic, payload), why };
    const code = await eventQuestions.ask(question);
    const answers = `Code ${code}: answer in your direct chat with "allow ${code}" or "deny ${code}" and a word to the agent, or with \`gsv approval allow ${code}\`. By its id: \`gsv events resolve ${id} approve\`, or \`reject\`.`;
    const key = askKey(id);
    const text = `${visible(scrub(topic.text(payload))).slice(0, TEXT_CHARS)}\n\n${why} ${answers}`;
    notify.tell({ kind: "approval", key, cause: key, text, agentId, question: code });
  }

  /** The question is over. Undefined: its event was removed. */
  over(id: string, { decision, decidedBy = NO_ONE }: Pick<EventRow, "decision" | "decidedBy"> = {}): void {
    const { eventQuestions, notify } = this.#ports;
    const outcome = isNoWord(decidedBy) ? "expired" : decision === "approve" ? "allowed" : "denied";
    eventQuestions.end(id, { outcome, by: decidedBy });
    notify.over(askKey(id));
  }

  /** Once: the question is over, and the conversation is told. Throws when the conversation does not answer. */
  async tell({ envelope, sessionKey, taint, decision, decidedBy = "", word, decisionToldAt }: EventRow): Promise<void> {
    if (decision === undefined || decisionToldAt !== undefined) return;
    const { events, sessions, ask, config, topics, scrub } = this.#ports;
    const { id, topic: name, payload } = envelope;
    this.over(id, { decision, decidedBy });
    const named = canonicalKey(sessionKey, config.mainKey());
    const record = named.ok ? sessions.find(named.key) : undefined;
    // A conversation that was deleted is not made again.
    if (named.ok && record !== undefined) {
      const asked = visible(scrub(topics.get(name)?.text(payload) ?? "")).slice(0, QUOTED_CHARS);
      const said = word === undefined ? "" : ` They said: ${visible(word)}`;
      const decided = decision === "approve" ? "approved" : "rejected";
      const how =
        decidedBy === NO_ONE ? `${decided}: no one decided in ${LIMITS.eventWaitDays} days` : `${decided} by ${actorName(decidedBy)}`;
      const noteOf = (event: string): string => `Your event ${id} (${event}) was ${how}.${said}`;
      const text = noteOf(`${name}: ${JSON.stringify(asked)}`);
      // A note has no label, and the conversation may have lost its own by a reset, so the model gets no text of others.
      const forModel = isForeign(taint) ? noteOf(name) : true;
      const identity = sessions.lookUp(named, record.ref);
      const noted = ask(named.key, (session) => session.note({ identity, key: `event:${id}:decision`, text, forModel }));
      await within(afterTimeout, ANSWER_MS, noted, () => {
        throw new Error("the conversation does not answer");
      });
    }
    const stored = await events.decisionTold(id);
    if (!stored.ok) throw new Error(stored.error.message);
  }
}
/** What the owner's answer does: the handler's part, and the agents that get a job (rule EV10). */
function meaningOf({ approval }: Topic, subscribers: ReturnType<DecisionPorts["subscribersOf"]>): string {
  const said = approval ?? HANDED_ON;
  const [one, ...others] = subscribers.map(({ name }) => name);
  if (one === undefined) return approval === undefined ? said : `${said} Nothing else is done.`;
  const listed = [one, ...others].slice(0, NAMED).join(", ");
  const more = others.length >= NAMED ? ` and ${others.length + 1 - NAMED} more` : "";
  return `${said} Approved, it also gives a job to ${others.length === 0 ? "the agent" : "the agents"} ${listed}${more}.`;
}
/** The payload as a person reads it, and below it what the text leaves out. */
function questionOf(topic: Topic, payload: unknown): string {
  return `${topic.text(payload)}\n${JSON.stringify(payload, null, 1)}`;
}
