/**
 * The result of a tool call as a person reads it: of a command what it printed, of any other tool the text of its result. PURE. The
 * model gets the result itself; nothing here changes it.
 */
import type { ToolOutput } from "../../../protocol/gen/types.ts";
import { head, tail } from "./machine/text.ts";

/** What an event has of it. */
const HEAD_CHARS = 2_000;
const TAIL_CHARS = 1_000;
const COMMAND_TOOL = /__(?:Bash|Process)$/;
/** Where the middle of a long result was left out; the rest of it is not JSON any more. */
const CUT = /\[\.\.\. \d+ characters were left out here\. .*? \.\.\.\]/s;

/** The whole text, as far as the result has it. */
export function shownText(toolName: string, text: string): string {
  if (!COMMAND_TOOL.test(toolName) || !text.startsWith("{")) return text;
  const cut = CUT.exec(text);
  if (cut === null) {
    const fields = parsed(text);
    // A command that still runs has only the end of its output.
    const printed = fields?.["output"] ?? fields?.["tail"];
    return typeof printed === "string" ? printed : text;
  }
  const begins = /"output":"/.exec(text);
  if (begins === null || begins.index > cut.index) return text;
  const rest = text.slice(cut.index + cut[0].length);
  const ends = /^(?:[^"\\]|\\.)*/s.exec(rest)?.[0] ?? "";
  return `${unescaped(text.slice(begins.index + begins[0].length, cut.index))}\n${cut[0]}\n${unescaped(ends)}`;
}
/** Its beginning, its end and its size. */
export function shownOutput(toolName: string, text: string): ToolOutput {
  const shown = shownText(toolName, text);
  const trimmed = shown.endsWith("\n") ? shown.slice(0, -1) : shown;
  const lines = trimmed === "" ? 0 : trimmed.split("\n").length;
  const begin = head(trimmed, HEAD_CHARS);
  if (begin.length === trimmed.length) return { head: begin, lines };
  return { head: begin, tail: tail(trimmed, Math.min(TAIL_CHARS, trimmed.length - begin.length)), lines };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
/** A piece of a JSON string. The cut may have halved an escape at either end. */
function unescaped(piece: string): string {
  const whole = piece.replace(/\\(?:u[0-9a-f]{0,3})?$/i, "");
  try {
    return String(JSON.parse(`"${whole}"`));
  } catch {
    return whole;
  }
}
