/** Messages as pi-ai keeps them; the session log stores these as they are (r2-storage-layout, JSONL format). */
import type { Usage } from "../../../protocol/gen/types.ts";

/** Messages as pi-ai keeps them; the session log stores these as they are (r2-storage-layout, JSONL format). */
export type TextBlock = { readonly type: "text"; readonly text: string };

export type ImageBlock = { readonly type: "image"; readonly data: string; readonly mimeType: string };

/** A stored file in the place of its bytes (P5.6). Told from an ImageBlock by `r2Key`; see `isMediaBlock`. */
export type MediaBlock = {
  readonly type: "image" | "audio" | "video" | "document";
  readonly r2Key: string;
  readonly mimeType: string;
  readonly filename?: string;
  readonly sizeBytes?: number;
  /** What is said in it, or why that is not known. Once it is there it never changes. */
  readonly transcript?: string;
};

/** What a user's message and a tool's result are made of. Image bytes inline only where no bucket was asked (old rows, small tests). */
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
