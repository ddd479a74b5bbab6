/**
 * The log of the components that do not have the stored secrets in memory: sessions, search indexes and the Worker. Asks the gateway for
 * the secrets before it writes a line, so that every line masks them by value (promise S17). Lines stay in order. While the gateway does
 * not answer, a line has no texts: only its event, numbers, the names of errors and their places in the code.
 */
import { type After, afterTimeout, within } from "../../../protocol/runtime/within.ts";
import type { Clock } from "./clock.ts";
import { createLogger, type Fields, type Level, type Logger, SecretValues } from "./log.ts";

export interface AskingLogOptions {
  readonly component: string;
  readonly clock: Clock;
  /** The stored secrets. */
  readonly secrets: () => Promise<readonly string[]>;
  /** Keeps the component awake until the lines are written. */
  readonly keep: (work: Promise<void>) => void;
  readonly sink: (level: Level, line: string) => void;
  readonly after?: After;
}
interface Line {
  readonly level: Level;
  readonly event: string;
  readonly fields: Fields;
  readonly at: number;
}

const ANSWER_MS = 5_000;
/** More lines are counted and dropped until the gateway has answered. */
const MAX_LINES = 100;
const MAX_DEPTH = 6;
const UNKNOWN = "[not shown: the stored secrets are not known]";
/** What precedes the message in a stack. */
const HEAD = /^[\w.$]*(?:: )?$/;
/** A position of a stack: `at name (file:line:column)`. */
const POSITION = /^\s+at .*$/;

export function createAskingLog({ component, clock, secrets, keep, sink, after = afterTimeout }: AskingLogOptions): Logger {
  let lines: Line[] = [];
  let dropped = 0;
  let isAsking = false;

  function write(known: readonly string[] | undefined): void {
    const values = new SecretValues();
    values.set(known ?? []);
    const put = ({ level, event, fields, at }: Line): void =>
      createLogger({ component, clock: { now: () => at }, secrets: values, sink })[level](
        event,
        known === undefined ? (withoutTexts(fields) as Fields) : fields,
      );
    const [waiting, lost] = [lines, dropped];
    lines = [];
    dropped = 0;
    for (const line of waiting) put(line);
    if (lost > 0) put({ level: "warn", event: "log_lines_dropped", fields: { lines: lost }, at: clock.now() });
  }
  async function ask(): Promise<void> {
    let known: readonly string[] | undefined;
    try {
      known = await within(after, ANSWER_MS, secrets(), () => undefined);
    } catch {
      // The lines are written without texts.
    }
    isAsking = false;
    write(known);
  }
  function add(level: Level, event: string, fields: Fields = {}): void {
    if (lines.length >= MAX_LINES) {
      dropped += 1;
      return;
    }
    lines.push({ level, event, fields, at: clock.now() });
    if (isAsking) return;
    isAsking = true;
    keep(ask());
  }
  return {
    debug: (event, fields) => add("debug", event, fields),
    info: (event, fields) => add("info", event, fields),
    warn: (event, fields) => add("warn", event, fields),
    error: (event, fields) => add("error", event, fields),
  };
}

function withoutTexts(value: unknown, depth = 0): unknown {
  if (typeof value === "number" || typeof value === "boolean" || value === undefined || value === null) return value;
  if (value instanceof Error) return { error: value.constructor.name, text: UNKNOWN, at: positionsOf(value) };
  if (Array.isArray(value)) return { items: value.length };
  if (typeof value !== "object" || depth >= MAX_DEPTH) return UNKNOWN;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, withoutTexts(item, depth + 1)]));
}
/** Where it was thrown. The message comes first in a stack and may hold anything, so a stack that begins otherwise is not used. */
function positionsOf({ message, stack = "" }: Error): string[] {
  const end = stack.indexOf(message);
  if (end < 0 || !HEAD.test(stack.slice(0, end))) return [];
  const rest = stack.slice(end + message.length);
  return rest
    .split("\n")
    .slice(1)
    .filter((line) => POSITION.test(line))
    .map((line) => line.trim());
}
