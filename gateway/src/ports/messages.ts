/** Messages in the format of pi-ai. The session log and the archives (JSON Lines) store them unchanged. */
import type { Usage } from "../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";

export type TextBlock = { readonly type: "text"; readonly text: string };

/** All text of a message's content, which may come from a stored row or from the wire. */
export const textOf = (content: unknown): string =>
  typeof content === "string"
    ? content
    : Array.isArray(content)
      ? content.map((block: unknown) => (isText(block) ? block.text : "")).join("")
      : "";
const isText = (block: unknown): block is TextBlock => isJsonObject(block) && block["type"] === "text" && typeof block["text"] === "string";

export type ImageBlock = { readonly type: "image"; readonly data: string; readonly mimeType: string };

/** A reference to a stored file (P5.6). An ImageBlock has no `r2Key`; see `isMediaBlock`. */
export type MediaBlock = {
  readonly type: "image" | "audio" | "video" | "document";
  readonly r2Key: string;
  readonly mimeType: string;
  readonly filename?: string;
  readonly sizeBytes?: number;
  /** The transcript of a recording, or why there is none. Never changes once it is set. */
  readonly transcript?: string;
};

/** The blocks of a user's message and of a tool's result. Inline images occur only in old rows and in tests. */
export type ContentBlock = TextBlock | ImageBlock | MediaBlock;

export const isMediaBlock = (block: { readonly type: string }): block is MediaBlock => "r2Key" in block;

export type ThinkingBlock = {
  readonly type: "thinking";
  readonly thinking: string;
  readonly thinkingSignature?: string;
  readonly redacted?: boolean;
};

export type ToolCallBlock = {
  readonly type: "toolCall";
  readonly id: string;
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly thoughtSignature?: string;
};

export type UserMessage = {
  readonly role: "user";
  readonly content: string | readonly ContentBlock[];
  readonly timestamp: number;
};

export type AssistantMessage = {
  readonly role: "assistant";
  readonly content: readonly (TextBlock | ThinkingBlock | ToolCallBlock)[];
  readonly api: string;
  readonly provider: string;
  readonly model: string;
  readonly usage: Usage;
  readonly stopReason: "stop" | "length" | "toolUse";
  readonly timestamp: number;
};

export type ToolResultMessage = {
  readonly role: "toolResult";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly content: readonly ContentBlock[];
  readonly isError: boolean;
  readonly timestamp: number;
};

export type Message = UserMessage | AssistantMessage | ToolResultMessage;
