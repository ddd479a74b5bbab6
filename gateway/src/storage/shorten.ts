/** Shortens a message that is too large for an answer: cuts its long texts visibly. PURE. */
import { answerBytes } from "./text-page.ts";

const STEPS = [65_536, 8_192, 1_024, 128] as const;
const MAX_DEPTH = 32;

function cut(value: unknown, maxChars: number, depth: number): unknown {
  if (typeof value === "string") {
    if (value.length <= maxChars) return value;
    return `${value.slice(0, maxChars).toWellFormed()} [... ${value.length - maxChars} characters are left out here]`;
  }
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return "[left out here]";
  if (Array.isArray(value)) return value.map((item) => cut(item, maxChars, depth + 1));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, cut(item, maxChars, depth + 1)]));
}

/** The unchanged message if its JSON has at most `maxBytes`, else a shortened copy that fits. */
export function fitting(message: object, maxBytes: number): { readonly message: unknown; readonly bytes: number } {
  const bytes = answerBytes(message);
  if (bytes <= maxBytes) return { message, bytes };
  for (const maxChars of STEPS) {
    const shorter = cut(message, maxChars, 0);
    const now = answerBytes(shorter);
    if (now <= maxBytes) return { message: shorter, bytes: now };
  }
  const role: unknown = Reflect.get(message, "role");
  const note = { role: typeof role === "string" ? role.slice(0, 64) : "user", content: `[A message of ${bytes} bytes is left out here]` };
  return { message: note, bytes: answerBytes(note) };
}
