/** `emit_event` (gateway/spec/events.md). Whose event it is follows from the identity of the session, never from an argument. */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { valueNestsDeeper } from "../../../../protocol/runtime/depth.ts";
import type { Emission, Emitted } from "../../ports/events.ts";
import type { NativeToolContext } from "../../ports/native-tools.ts";
import type { Result } from "../../ports/result.ts";
import type { Taint } from "../../ports/taint.ts";
import { bad, type Field, text } from "../../tools/arguments.ts";
import { outcome, type Tool, tool } from "../../tools/tool.ts";

const TOPIC_CHARS = 64;
const QUESTION_CHARS = 2000;
const OWN_WORDS: Taint = { label: "self", source: "the agent's own words" };
/** Any JSON: the schema of the topic says what fits. A deeper value does not reach the gateway. */
const data: Field<unknown> = (name, value) =>
  valueNestsDeeper(value, LIMITS.valueDepth)
    ? bad(`\`${name}\` is nested more than ${LIMITS.valueDepth} levels deep. Send a flatter one.`)
    : { ok: true, value };

/** In the name of the session that makes the call. */
const emit = (
  { identity, callId, runId, origin, taint = OWN_WORDS, now, gateway }: NativeToolContext,
  what: Pick<Emission, "topic" | "payload" | "escalation">,
): Promise<Result<Emitted>> =>
  gateway.emitEvent({
    ...what,
    agentId: identity.agentId,
    sessionKey: identity.key,
    callId,
    taint,
    now,
    ...(runId === undefined ? {} : { runId }),
    ...(origin === undefined ? {} : { origin }),
  });

export const EVENT_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "emit_event",
      description:
        "Hands an event to what handles its topic; returns at once. The Runtime section of the prompt lists your topics and their payloads.",
      policyClass: "write_workspace",
      properties: { topic: { type: "string" }, payload: { type: "object", description: "As the topic's schema has it." } },
    },
    { topic: text(TOPIC_CHARS), payload: data },
    async (given, context) => {
      const emitted = await emit(context, given);
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
    async ({ question, reason }, context) => {
      const cause = "low_confidence";
      const emitted = await emit(context, { topic: "", escalation: cause, payload: { question, reason, details: { cause } } });
      return outcome(emitted, ({ id }) => ({ id, status: "Your human is told. Say in your answer what you are not sure of." }));
    },
  ),
];
