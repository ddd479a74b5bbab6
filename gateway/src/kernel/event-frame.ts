/** The text of event frames. PURE. A payload is written once, however many connections get it; each adds its own number. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { EventName } from "../../../protocol/gen/methods.ts";
import { nestsDeeper, utf8Bytes } from "../../../protocol/runtime/codec.ts";

/** An event frame without its number and closing brace. */
export function eventBody(event: EventName, payload: unknown): string {
  const text = `{"type":"evt","event":${JSON.stringify(event)},"payload":${plainJson(payload)}`;
  if (fits(text)) return text;
  return `{"type":"evt","event":${JSON.stringify(event)},"payload":${plainJson(shortened(payload))}`;
}
/** Room for the number. */
const fits = (text: string): boolean =>
  (text.length * 3 < LIMITS.frameBytes - 64 || utf8Bytes(text) < LIMITS.frameBytes - 64) && !nestsDeeper(text, LIMITS.frameDepth - 1);

/** JSON that strict readers accept: broken surrogate pairs become U+FFFD. */
function plainJson(value: unknown): string {
  const text = JSON.stringify(value) ?? "null";
  if (!/\\ud[89a-f]/.test(text)) return text;
  return JSON.stringify(value, (_key, item: unknown) => (typeof item === "string" ? item.toWellFormed() : item)) ?? "null";
}

/** What is left of an event that fits no frame: who and when, not what. Its text is in the session's history. */
function shortened(payload: unknown): unknown {
  if (typeof payload !== "object" || payload === null) return {};
  const small = Object.entries(payload).filter(
    ([, value]) => typeof value === "number" || typeof value === "boolean" || (typeof value === "string" && value.length <= 1024),
  );
  const message = { role: "assistant", content: [{ type: "text", text: "This does not fit a frame. See session.preview." }] };
  return { ...Object.fromEntries(small), ...("message" in payload ? { message } : {}) };
}
