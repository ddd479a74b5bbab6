/** Splits a long text into parts that each fit an answer. PURE. Offsets are bytes of UTF-8 between two characters. */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { utf8Bytes } from "../../../protocol/runtime/utf8.ts";

/** Limit for an answer's content, so that the answer with its envelope fits a frame. */
export const ANSWER_BYTES = LIMITS.frameBytes - 65_536;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** Bytes of the value in a frame. */
export const answerBytes = (value: unknown): number => utf8Bytes(JSON.stringify(value) ?? "");
const isInside = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

export interface TextPage {
  readonly content: string;
  /** Undefined for the last part. */
  readonly nextOffset: number | undefined;
}
/** Undefined when the offset is beyond the end or inside a character. */
export function textPage(text: string, offset: number, maxBytes: number = LIMITS.pageBytes): TextPage | undefined {
  const bytes = encoder.encode(text);
  if (offset > bytes.length || isInside(bytes[offset])) return undefined;
  // Control characters take six bytes each in a frame.
  for (let size = maxBytes; ; size = Math.ceil(size / 2)) {
    let end = Math.min(offset + size, bytes.length);
    while (isInside(bytes[end])) end--;
    const content = decoder.decode(bytes.subarray(offset, end));
    if (answerBytes(content) > ANSWER_BYTES) continue;
    return { content, nextOffset: end < bytes.length ? end : undefined };
  }
}
