/** Texts of frames: events, answers, errors, and the id of a frame that cannot be read. PURE. */
import { ERRORS, isErrorReason } from "../../../protocol/gen/errors.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { EventName } from "../../../protocol/gen/methods.ts";
import type { ErrorShape } from "../../../protocol/gen/types.ts";
import { encodeFrame, nestsDeeper } from "../../../protocol/runtime/codec.ts";
import { utf8Bytes } from "../../../protocol/runtime/utf8.ts";
import type { GsvError, Result } from "../ports/result.ts";

// ------------------------------------------------------------ events

/** An event frame without its number and closing brace: it is written once, and each connection adds its own number. */
export function eventBody(event: EventName, payload: unknown): string {
  const text = `{"type":"evt","event":${JSON.stringify(event)},"payload":${plainJson(payload)}`;
  if (fits(text)) return text;
  return `{"type":"evt","event":${JSON.stringify(event)},"payload":${plainJson(shortened(payload))}`;
}
/** Whether the event fits a frame together with its number. */
const fits = (text: string): boolean => utf8Bytes(text) < LIMITS.frameBytes - 64 && !nestsDeeper(text, LIMITS.frameDepth - 1);

/** JSON that strict readers accept: broken surrogate pairs become U+FFFD. */
function plainJson(value: unknown): string {
  const wellFormed = (_key: string, item: unknown): unknown => (typeof item === "string" ? item.toWellFormed() : item);
  const text = JSON.stringify(value);
  return (/\\ud[89a-f]/.test(text) ? JSON.stringify(value, wellFormed) : text) ?? "null";
}

/** An event that fits no frame, without its content, which is in the session's history. */
function shortened(payload: unknown): unknown {
  if (typeof payload !== "object" || payload === null) return {};
  const small = Object.entries(payload).filter(
    ([, value]) => typeof value === "number" || typeof value === "boolean" || (typeof value === "string" && value.length <= 1024),
  );
  const message = { role: "assistant", content: [{ type: "text", text: "This does not fit a frame. See session.preview." }] };
  return { ...Object.fromEntries(small), ...("message" in payload ? { message } : {}) };
}

// ------------------------------------------------------------ answers

/** An answer that does not fit a frame becomes an error. Undefined: that does not fit either. */
export function answerText(id: string, result: Result<unknown>): string | undefined {
  const sent = result.ok
    ? encodeFrame({ type: "res", id, ok: true, ...(result.value === undefined ? {} : { payload: result.value }) })
    : encodeFrame({ type: "res", id, ok: false, error: errorShape(result.error) });
  if (sent.ok) return sent.text;
  const tooLarge: GsvError = {
    reason: "protocol.too_large",
    message: `The answer does not fit a frame (${sent.error.message}).`,
    hint: "Ask for less at once.",
  };
  const instead = encodeFrame({ type: "res", id, ok: false, error: errorShape(tooLarge) });
  return instead.ok ? instead.text : undefined;
}

// ------------------------------------------------------------ errors

/** An error as it travels. An error that crossed RPC may carry an unknown reason, which is a bug of ours: it becomes `internal`. */
export function errorShape(error: GsvError): ErrorShape {
  const known = isErrorReason(error.reason);
  const info = known ? ERRORS[error.reason] : ERRORS.internal;
  return {
    code: info.code,
    reason: known ? error.reason : "internal",
    message: error.message,
    hint: error.hint ?? info.hint,
    ...(error.details === undefined ? {} : { details: error.details }),
    ...(info.retryable ? { retryable: true } : {}),
  };
}

// ------------------------------------------------------------ ids of broken frames

/** An id further in than this is not searched for. */
const SEARCHED_CHARS = 65_536;
const MAX_ID = 128;
export const UNKNOWN_ID = "0";

/** The string under `id` at the first level of an object, so that the sender of a broken frame gets an answer (wire rule FR1). */
export function peekId(text: string): string {
  const value = peekText(text.slice(0, SEARCHED_CHARS), ["id"]);
  return value !== undefined && value !== "" && [...value].length <= MAX_ID ? value : UNKNOWN_ID;
}

/**
 * The string under the names of `path`, in a text that is too large or too broken to be parsed. Skips other strings without reading
 * them. Undefined: there is none.
 */
export function peekText(text: string, path: readonly string[]): string | undefined {
  /** The names under which the open containers stand. */
  const stack: (string | undefined)[] = [];
  let name: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const unit = text[at];
    if (unit === "{" || unit === "[") {
      stack.push(name);
      name = undefined;
    } else if (unit === "}" || unit === "]") {
      stack.pop();
      name = undefined;
    } else if (unit === ",") name = undefined;
    else if (unit === '"') {
      const close = closing(text, at);
      if (close === undefined) return undefined;
      if (stack.length <= path.length && close - at <= MAX_PEEKED) {
        const value = unquoted(text.slice(at, close + 1));
        const isFound = stack.length === path.length && name === path.at(-1) && stack.every((part, depth) => part === path[depth - 1]);
        if (isFound) return value;
        name = /^\s*:/.test(text.slice(close + 1, close + 32)) ? value : undefined;
      }
      at = close;
    }
  }
  return undefined;
}
/** Longer names and values are not read. */
const MAX_PEEKED = 1024;

function closing(text: string, open: number): number | undefined {
  for (let at = text.indexOf('"', open + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let escapes = 0;
    while (text[at - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return at;
  }
  return undefined;
}

function unquoted(text: string): string | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}
