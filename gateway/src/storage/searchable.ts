/**
 * What of a message can be found: its text, what is said in its recordings, and what its tool calls were asked to do. PURE, and
 * trusts nothing: archives come from the bucket, where anyone may have put them. Thoughts and bytes of files are not searched.
 */

export interface SearchableMessage {
  /** user, assistant or toolResult. */
  readonly role: string;
  /** Epoch ms; 0 when the message does not say. */
  readonly at: number;
  readonly text: string;
}
/** More of one message is not searched. */
export const MAX_MESSAGE_CHARS = 65_536;
/** Arguments can be a whole file; its beginning is enough to find the call. */
const MAX_ARGUMENT_CHARS = 2_000;
const ROLES = ["user", "assistant", "toolResult"];

type Fields = Readonly<Record<string, unknown>>;
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);
const textIn = (value: unknown): string[] => (typeof value === "string" && value !== "" ? [value] : []);

/** Undefined: this is no message. */
export function searchable(message: unknown): SearchableMessage | undefined {
  if (!isFields(message)) return undefined;
  const { role, content, timestamp } = message;
  if (typeof role !== "string" || !ROLES.includes(role)) return undefined;
  const parts = typeof content === "string" ? [content] : Array.isArray(content) ? content.flatMap(blockText) : [];
  return {
    role,
    at: typeof timestamp === "number" && Number.isSafeInteger(timestamp) && timestamp >= 0 ? timestamp : 0,
    text: parts.join("\n").slice(0, MAX_MESSAGE_CHARS).toWellFormed(),
  };
}
function blockText(block: unknown): string[] {
  if (!isFields(block)) return [];
  switch (block["type"]) {
    case "text":
      return textIn(block["text"]);
    case "toolCall": {
      const args = isFields(block["arguments"]) ? JSON.stringify(block["arguments"]).slice(0, MAX_ARGUMENT_CHARS) : "";
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
