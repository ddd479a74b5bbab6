/**
 * Estimates tokens when no provider has reported them (product P5.3: characters / 4 x 1.2). PURE, and cheap enough
 * for every model call. Never used for costs.
 */
import { LIMITS } from "../../../protocol/gen/limits.ts";
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import { isTextLike } from "../storage/media-kinds.ts";
import type { ContentBlock, MediaBlock, Message, TextBlock, ThinkingBlock, ToolCallBlock } from "../ports/messages.ts";

/** What providers count for one image of usual size, independent of its bytes. */
export const IMAGE_TOKENS = 1_600;
/** Role, ids and separators of one message on the wire. */
const MESSAGE_CHARS = 16;
const IMAGE_CHARS = Math.round((IMAGE_TOKENS * 4) / 1.2);

/** Characters (UTF-16 units) as tokens. */
export const tokensOfChars = (chars: number): number => Math.ceil((chars / 4) * 1.2);
export const tokensOfText = (text: string): number => tokensOfChars(text.length);

function charsOfBlock(block: ContentBlock | TextBlock | ThinkingBlock | ToolCallBlock): number {
  switch (block.type) {
    case "text":
      return block.text.length;
    case "thinking":
      return block.thinking.length;
    case "toolCall":
      return block.name.length + JSON.stringify(block.arguments).length;
    case "image":
      return IMAGE_CHARS;
    // Text files and transcribed recordings go to the model as text; other files as a note with their name.
    default:
      return (block.transcript?.length ?? 0) + (block.filename?.length ?? 0) + MESSAGE_CHARS + charsInside(block);
  }
}
const charsInside = ({ type, mimeType, filename, sizeBytes = 0 }: MediaBlock): number =>
  type === "document" && isTextLike(mimeType, filename) ? Math.min(sizeBytes, LIMITS.inlineDocumentBytes) : 0;
/** The size of a message in the model's window, in characters. */
export function charsOfMessage({ content }: Message): number {
  if (typeof content === "string") return content.length + MESSAGE_CHARS;
  let chars = MESSAGE_CHARS;
  for (const block of content) chars += charsOfBlock(block);
  return chars;
}
export const tokensOfMessage = (message: Message): number => tokensOfChars(charsOfMessage(message));
export function tokensOfMessages(messages: Iterable<Message>): number {
  let chars = 0;
  for (const message of messages) chars += charsOfMessage(message);
  return tokensOfChars(chars);
}
export const tokensOfTool = ({ name, description, inputSchema }: ToolDefinition): number =>
  tokensOfChars(name.length + description.length + JSON.stringify(inputSchema).length);
