/** Measuring, counting and cutting text so that everything fits its row and the model's window. PURE. Never splits a surrogate pair. */
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import {
  type AssistantMessage,
  type ContentBlock,
  type TextBlock,
  textOf,
  type ThinkingBlock,
  type ToolCallBlock,
} from "../../ports/messages.ts";

export const jsonBytes = (value: unknown): number => utf8Bytes(JSON.stringify(value));

/** `1 message`, `2 messages`. */
export const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? "" : "s"}`;

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit < 0xdc00;
/** The first `chars` characters at most. */
export const head = (text: string, chars: number): string => text.slice(0, isHigh(text.charCodeAt(chars - 1)) ? chars - 1 : chars);
/** The last `chars` characters at most. */
export function tail(text: string, chars: number): string {
  const from = Math.max(0, text.length - chars);
  return text.slice(isHigh(text.charCodeAt(from - 1)) ? from + 1 : from);
}
/** Cuts the middle, so that about `chars` remain; the note stands in its place. */
export function cutMiddle(text: string, chars: number, note: (missing: number) => string): string {
  if (text.length <= chars) return text;
  const first = head(text, Math.ceil(chars / 2));
  const last = tail(text, Math.floor(chars / 2));
  return `${first}\n${note(text.length - first.length - last.length)}\n${last}`;
}

const CUT_NOTE = (missing: number): string => `[... ${missing} characters were left out ...]`;

/**
 * An answer that fits its row. Removes thinking first (a cut block would have a wrong signature), then arguments that are too large,
 * then the middle of the text. `lost` are the indexes of calls whose arguments were removed.
 */
export function fitAssistant(
  message: AssistantMessage,
  maxBytes: number,
): { readonly message: AssistantMessage; readonly lost: readonly number[] } {
  if (jsonBytes(message) <= maxBytes) return { message, lost: [] };
  let content: readonly (TextBlock | ThinkingBlock | ToolCallBlock)[] = message.content.filter((block) => block.type !== "thinking");
  const lost: number[] = [];
  if (jsonBytes(content) > maxBytes) {
    const share = Math.floor(maxBytes / 2 / Math.max(1, content.filter((block) => block.type === "toolCall").length));
    let index = -1;
    content = content.map((block) => {
      if (block.type !== "toolCall") return block;
      index += 1;
      if (jsonBytes(block) <= share) return block;
      lost.push(index);
      const { thoughtSignature: _signature, ...rest } = block;
      return { ...rest, arguments: {} };
    });
  }
  if (jsonBytes(content) > maxBytes) {
    // A character is at most six bytes of JSON (\u0000).
    const text = cutMiddle(textOf(content), Math.floor(maxBytes / 2 / 6), CUT_NOTE);
    content = [...(text === "" ? [] : [{ type: "text" as const, text }]), ...content.filter((block) => block.type === "toolCall")];
  }
  return { message: { ...message, content }, lost };
}

/** Blocks that fit a row. The text was cut before, so only inline images can be too large. */
export function fitImages(content: readonly ContentBlock[], maxBytes: number): readonly ContentBlock[] {
  let left = maxBytes;
  return content.map((block) => {
    if (block.type !== "image" || !("data" in block)) return block;
    left -= block.data.length;
    if (left >= 0) return block;
    left += block.data.length;
    return { type: "text", text: `[An image (${block.mimeType}) was left out, because it is too large.]` };
  });
}
