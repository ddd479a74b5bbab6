/**
 * Extracts a message's searchable text: its text, its transcribed recordings, and the arguments of its tool calls. PURE. Must not
 * trust archives: anyone with access to the bucket can write them. Thinking and the bytes of files are not searchable.
 */
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";

export interface SearchableMessage {
  /** user, assistant or toolResult. */
  readonly role: string;
  /** Epoch ms; 0 when the message does not say. */
  readonly at: number;
  readonly text: string;
}
/** Limit for the searchable text of one message. */
export const MAX_MESSAGE_CHARS = 65_536;
/** Arguments can contain a whole file; the beginning is enough to find the call. */
const MAX_ARGUMENT_CHARS = 2_000;
const ROLES = ["user", "assistant", "toolResult"];

const textIn = (value: unknown): string[] => (typeof value === "string" && value !== "" ? [value] : []);

/** Undefined when the value is not a message. */
export function searchable(message: unknown): SearchableMessage | undefined {
  if (!isJsonObject(message)) return undefined;
  const { role, content, timestamp } = message;
  if (typeof role !== "string" || !ROLES.includes(role)) return undefined;
  const parts = typeof content === "string" ? [content] : Array.isArray(content) ? content.flatMap(blockText) : [];
  return {
    role,
    at: typeof timestamp === "number" && Number.isSafeInteger(timestamp) ? Math.max(0, timestamp) : 0,
    text: parts.join("\n").slice(0, MAX_MESSAGE_CHARS).toWellFormed(),
  };
}
function blockText(block: unknown): string[] {
  if (!isJsonObject(block)) return [];
  switch (block["type"]) {
    case "text":
      return textIn(block["text"]);
    case "toolCall": {
      const args = isJsonObject(block["arguments"]) ? JSON.stringify(block["arguments"]).slice(0, MAX_ARGUMENT_CHARS) : "";
      return textIn(block["name"]).map((name) => `${name} ${args}`);
    }
    case "image":
    case "audio":
    case "video":
    case "document":
      return [...textIn(block["filename"]), ...textIn(block["transcript"])];
    default:
      return [];
  }
}
