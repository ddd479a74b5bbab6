/**
 * Converts text messages to frames and back, and enforces every limit before it parses. The TypeScript twin of
 * `crates/gsv-protocol/src/codec.rs`. Returns failures as values that never repeat the input. It must not open a socket.
 */
import type { ErrorReason } from "../gen/errors.ts";
import { LIMITS } from "../gen/limits.ts";
import type { Frame } from "../gen/types.ts";
import { checkFrame } from "../gen/validators/checks.js";
import { explainText } from "./explain.ts";
import { utf8Bytes } from "./utf8.ts";

export interface CodecError {
  readonly reason: Extract<ErrorReason, `protocol.${string}`>;
  readonly message: string;
  /** The id of the request, when it is readable: the answer needs it. */
  readonly id?: string;
}
export type Decoded = { readonly ok: true; readonly frame: Frame } | { readonly ok: false; readonly error: CodecError };
export type Encoded = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly error: CodecError };
const FRAME_TYPES: readonly unknown[] = ["req", "res", "evt"] satisfies readonly Frame["type"][];

const failed = (reason: CodecError["reason"], message: string, id?: string): { readonly ok: false; readonly error: CodecError } => ({
  ok: false,
  error: id === undefined ? { reason, message } : { reason, message, id },
});

/** Reads one text message. `maxBytes` is a smaller limit for some senders, such as those without hello-ok. */
export function decodeFrame(text: string, maxBytes: number = LIMITS.frameBytes): Decoded {
  const problem = checkText(text, maxBytes);
  if (problem) return problem;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The engine's message quotes the input.
    return failed("protocol.invalid_json", "the frame is not valid JSON");
  }
  if (checkFrame(value)) return { ok: true, frame: value };
  const { type, id } = headOf(value);
  if (typeof type === "string" && !FRAME_TYPES.includes(type))
    return failed("protocol.unsupported", "this kind of frame is not supported here", id);
  return failed("protocol.invalid_frame", `the frame does not fit the contract: ${explainText("Frame", value)}`, id);
}

/** Writes one text message. Broken surrogate pairs, which strict readers refuse, become U+FFFD. */
export function encodeFrame(frame: Frame, maxBytes: number = LIMITS.frameBytes): Encoded {
  let text = JSON.stringify(frame);
  // A broken pair is the only thing that is written as \ud8.. to \udf..; the text of such an escape may match too, which costs a pass.
  if (/\\ud[89a-f]/.test(text)) text = JSON.stringify(frame, (_key, value: unknown) => wellFormed(value));
  return checkText(text, maxBytes) ?? { ok: true, text };
}

/** Keys can be broken as well as values. */
function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  if (Object.keys(value).every((key) => key.isWellFormed())) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), item]));
}

function checkText(text: string, maxBytes: number): { readonly ok: false; readonly error: CodecError } | undefined {
  // UTF-8 takes one to three bytes for a UTF-16 unit: only texts between need counting.
  if (text.length > maxBytes || (text.length * 3 > maxBytes && utf8Bytes(text) > maxBytes)) {
    return failed("protocol.too_large", `the frame is larger than ${maxBytes} bytes; send less, or use a transfer`);
  }
  if (nestsDeeper(text, LIMITS.frameDepth)) return failed("protocol.too_deep", `the frame is nested deeper than ${LIMITS.frameDepth}`);
  return undefined;
}

/** Whether arrays and objects nest deeper than `limit`; `{}` is 1. Exact for JSON, harmless for anything else. */
export function nestsDeeper(text: string, limit: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case 0x22: // "
        at = endOfString(text, at + 1);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > limit) return true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        if (depth > 0) depth--;
        break;
      default:
    }
  }
  return false;
}

/** Position of the quote that closes a string, or the end of the text. */
function endOfString(text: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x5c) at++;
    else if (unit === 0x22) return at;
  }
  return text.length;
}

/** What can still be read of a frame that does not fit. */
function headOf(value: unknown): { readonly type?: unknown; readonly id?: string } {
  if (typeof value !== "object" || value === null) return {};
  const type: unknown = Reflect.get(value, "type");
  const id: unknown = Reflect.get(value, "id");
  const usable = typeof id === "string" && id !== "" && [...id].length <= 128;
  return usable ? { type, id } : { type };
}
