/** `emit_event` (gateway/spec/events.md). Whose event it is follows from the identity of the session, never from an argument. */
import type { Taint } from "../../ports/taint.ts";
import { type Field, text } from "../../tools/arguments.ts";
import { outcome, type Tool, tool } from "../../tools/tool.ts";

const TOPIC_CHARS = 64;
const QUESTION_CHARS = 2000;
const OWN_WORDS: Taint = { label: "self", source: "the agent's own words" };
/** Any JSON: the schema of the topic says what fits. */
const data: Field<unknown> = (_name, value) => ({ ok: true, value });

export const EVENT_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "emit_event",
      description:
        "Hands an event to what handles its topic; returns at once. human_review asks your human for a decision: {question, reason?, details?}.",
      policyClass: "write_workspace",
      properties: { topic: { type: "string" }, payload: { type: "object", description: "As the topic's schema has it." } },
    },
    { topic: text(TOPIC_CHARS), payload: data },
    async ({ topic, payload }, { identity, callId, runId, origin, taint, now, gateway }) => {
      const emitted = await gateway.emitEvent({
        agentId: identity.agentId,
        topic,
        payload,
        sessionKey: identity.key,
        callId,
        taint: taint ?? OWN_WORDS,
        now,
        ...(runId === undefined ? {} : { runId }),
        ...(origin === undefined ? {} : { origin }),
      });
      return outcome(emitted, ({ id, needsApproval }) => ({
        id,
        status: needsApproval ? "It waits for your human's word." : "It is queued.",
      }));
    },
  ),
  tool(
    {
      name: "report_low_confidence",
      description: "Tells your human that you are not sure of your result. Use it before you answer; the work goes on.",
      policyClass: "write_workspace",
      properties: {
        question: { type: "string", description: "What your human should check or decide." },
        reason: { type: "string", description: "Why you are not sure." },
      },
    },
    { question: text(QUESTION_CHARS), reason: text(QUESTION_CHARS) },
    async ({ question, reason }, { identity, callId, runId, origin, taint, now, gateway }) => {
      const emitted = await gateway.emitEvent({
        agentId: identity.agentId,
        topic: "",
        escalation: "low_confidence",
        payload: { question, reason, details: { cause: "low_confidence" } },
        sessionKey: identity.key,
        callId,
        taint: taint ?? OWN_WORDS,
        now,
        ...(runId === undefined ? {} : { runId }),
        ...(origin === undefined ? {} : { origin }),
      });
      return outcome(emitted, ({ id }) => ({ id, status: "Your human is told. Say in your answer what you are not sure of." }));
    },
  ),
];
