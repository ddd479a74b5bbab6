/**
 * The log: one JSON object per line. Redacts by key name and by value before anything leaves the process; that can't be
 * turned off. Callers must not log message texts or tool arguments, only names, counts and reasons.
 */
import { HIDDEN, hideSecrets, hideValues, isSecretName, spellingsOf } from "../../../protocol/runtime/secret-shapes.ts";
import type { Clock } from "./clock.ts";

export type Level = "debug" | "info" | "warn" | "error";
export type Fields = Readonly<Record<string, unknown>>;
export interface Logger {
  debug(event: string, fields?: Fields): void;
  info(event: string, fields?: Fields): void;
  warn(event: string, fields?: Fields): void;
  error(event: string, fields?: Fields): void;
}

const MAX_TEXT = 2000;
const MAX_ITEMS = 50;
const MAX_DEPTH = 6;
/** Shorter values are too likely to be ordinary words, and too weak to be secrets. */
const MIN_SECRET = 6;

/** The values that must never be logged, under any name. */
export class SecretValues {
  #values: readonly string[] = [];
  #spelled: readonly string[] = [];

  /** Replaces the whole set. */
  set(values: Iterable<string>): void {
    this.#values = [...new Set(values)].filter((value) => value.length >= MIN_SECRET);
    this.#spelled = spellingsOf(this.#values);
  }
  all(): readonly string[] {
    return this.#values;
  }
  /** With the usual encodings of each, longest first, so that a secret that contains another is masked whole. */
  spelled(): readonly string[] {
    return this.#spelled;
  }

  /** The text with every registered secret masked, also where it is encoded. */
  scrub(text: string): string {
    return hideValues(text, this.#spelled);
  }
}

/** A copy that is safe to show: secrets masked, long texts and lists cut, errors as their message. Idempotent. */
export function redact(value: unknown, secrets: SecretValues, depth = 0): unknown {
  if (typeof value === "string") return scrubText(value, secrets);
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "function") return String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth >= MAX_DEPTH) return "[deep]";
  if (value instanceof Error)
    return { name: value.name, message: scrubText(value.message, secrets), stack: scrubText(value.stack ?? "", secrets) };
  // Bytes may be a key, as numbers.
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS).map((item) => redact(item, secrets, depth + 1));
  const entries = Object.entries(value).slice(0, MAX_ITEMS);
  return Object.fromEntries(
    entries.map(([key, item]) => [scrubText(key, secrets), hides(key, item) ? HIDDEN : redact(item, secrets, depth + 1)]),
  );
}

/** Counts under a secret-looking name (`token: 12`) are not secrets; the public names of sessions are not either. */
function hides(key: string, value: unknown): boolean {
  if (value === null || !isSecretName(key)) return false;
  if (typeof value === "number" || typeof value === "bigint") return String(value).length >= MIN_SECRET;
  if (typeof value !== "string" && typeof value !== "object") return false;
  return !(key === "session" && typeof value === "string" && value.startsWith("agent:"));
}

function scrubText(text: string, secrets: SecretValues): string {
  const clean = hideSecrets(secrets.scrub(text));
  return clean.length <= MAX_TEXT ? clean : `${clean.slice(0, MAX_TEXT)}... (${clean.length} characters)`;
}

export interface LoggerOptions {
  readonly component: string;
  readonly clock: Clock;
  readonly secrets: SecretValues;
  readonly sink: (level: Level, line: string) => void;
}

export function createLogger({ component, clock, secrets, sink }: LoggerOptions): Logger {
  const write = (level: Level, event: string, fields: Fields = {}): void => {
    const safe = redact(fields, secrets) as Fields;
    sink(level, JSON.stringify({ ts: new Date(clock.now()).toISOString(), level, event, component, ...safe }));
  };
  return {
    debug: (event, fields) => write("debug", event, fields),
    info: (event, fields) => write("info", event, fields),
    warn: (event, fields) => write("warn", event, fields),
    error: (event, fields) => write("error", event, fields),
  };
}

/** Writes a Worker's log. The only use of console in the gateway. */
export const consoleSink = (level: Level, line: string): void => {
  console[level](line);
};
