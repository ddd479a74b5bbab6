/** Reads what the queue delivers (rule EV4): anything may stand there, also what an older or a newer version has sent. PURE. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { EventEnvelope } from "../../../protocol/gen/types.ts";
import { checkEventEnvelope } from "../../../protocol/gen/validators/checks.js";
import { nestsDeeper } from "../../../protocol/runtime/codec.ts";
import { explainText } from "../../../protocol/runtime/explain.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import type { Topic, Topics } from "./topics.ts";

export type ReadEnvelope =
  | { readonly ok: true; readonly envelope: EventEnvelope; readonly generation: number; readonly topic: Topic }
  /** `id`: where the message says which event it is. */
  | { readonly ok: false; readonly reason: string; readonly id?: string; readonly unknownTopic?: string };
/** The payload is one level below the message. */
const MAX_DEPTH = LIMITS.valueDepth + 1;
const ID = /^[0-9a-f]{32}$/;

export function readEnvelope(text: string, topics: Topics, tenantId: string): ReadEnvelope {
  const { value, generation } = apart(parsed(text));
  const id = isJsonObject(value) && typeof value["id"] === "string" && ID.test(value["id"]) ? { id: value["id"] } : {};
  // Nothing below could walk through it.
  if (nestsDeeper(text, MAX_DEPTH)) return { ok: false, reason: `The message is nested more than ${MAX_DEPTH} levels deep.`, ...id };
  if (!checkEventEnvelope(value)) return { ok: false, reason: `The message is no event: ${explainText("EventEnvelope", value)}.`, ...id };
  if (value.tenant_id !== tenantId) return { ok: false, reason: "The message is of another tenant." };
  const topic = topics.get(value.topic);
  const reason = topic === undefined ? `There is no topic ${value.topic}.` : problemOf(topic, value.version, value.payload);
  return topic === undefined || reason !== undefined
    ? { ok: false, reason: reason ?? "There is no such topic.", ...id, ...(topic === undefined ? { unknownTopic: value.topic } : {}) }
    : { ok: true, envelope: value, generation, topic };
}
/** Why this version of the gateway cannot handle a payload. */
export function problemOf(topic: Topic, version: number, payload: unknown): string | undefined {
  if (version !== topic.version)
    return `The event has version ${version} of the topic ${topic.name}; this gateway knows version ${topic.version}.`;
  return topic.problem(payload);
}
/** The event of a message, and the generation that the message is of. */
function apart(message: unknown): { readonly value: unknown; readonly generation: number } {
  const whole = { value: message, generation: 0 };
  if (!isJsonObject(message)) return whole;
  const { generation, ...value } = message;
  return typeof generation === "number" && Number.isSafeInteger(generation) && generation > 0 ? { value, generation } : whole;
}
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
