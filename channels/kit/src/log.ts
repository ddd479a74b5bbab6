/**
 * The log of a channel: one JSON object a line, with names, numbers and short reasons. Callers pass no message texts, ids of people or
 * keys; values that look like one are hidden all the same.
 */
import { HIDDEN, hideSecrets, isSecretName } from "../../../protocol/runtime/secret-shapes.ts";

export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

const MAX_TEXT = 500;
/** Shorter numbers under a secret's name are counts. */
const SHORTEST_NUMBER = 6;
/** What platforms add: their tokens, long runs of hex or base64, phone numbers and ids of people. */
const PLATFORM_SHAPES: readonly RegExp[] = [
  /\bmfa\.[A-Za-z0-9._-]{8,}/g,
  /\b[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{20,}\b/g,
  /\bbot\s+[A-Za-z0-9._~+/=-]{8,}/gi,
  /[A-Za-z0-9+/]{32,}={0,2}/g,
  /\b[0-9a-f]{24,}\b/gi,
  /\b\d{7,}(?:[:.]\d+)*@[a-z.]+/g,
  /\+\d{7,15}\b/g,
];

export function scrub(text: string): string {
  const clean = hideSecrets(text, PLATFORM_SHAPES);
  return clean.length <= MAX_TEXT ? clean : `${clean.slice(0, MAX_TEXT)}...`;
}
function shown(name: string, value: LogFields[string]): LogFields[string] {
  if (typeof value === "number") return isSecretName(name) && String(value).length >= SHORTEST_NUMBER ? HIDDEN : value;
  if (typeof value !== "string") return value;
  return isSecretName(name) ? HIDDEN : scrub(value);
}
export function logLine(component: string, event: string, fields: LogFields = {}): void {
  const safe = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, shown(name, value)]));
  const level = fields["error"] === undefined ? "info" : "warn";
  console.log(JSON.stringify({ ts: new Date().toISOString(), level, event, component, ...safe }));
}
