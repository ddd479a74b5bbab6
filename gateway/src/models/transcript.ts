/**
 * Converts our messages to pi-ai's transcript. Shallow: texts, images and arguments are shared, never copied, since a long
 * history is converted at every call. PURE.
 *
 * Tool call ids come from providers, and some use the same id for every answer's first call. A stricter provider
 * would refuse such a history every time, so a repeated id is made unique here, together with its result.
 */
import type { JsonObject, Message as PiMessage, Model, Tool, TranscriptContext } from "@mariozechner/pi-ai";
import { normalizeContext } from "@mariozechner/pi-ai/utils/transcript";
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import { type ContentBlock, type ImageBlock, isMediaBlock, type Message, type TextBlock } from "../ports/messages.ts";
import { lineUsage } from "../storage/archive-line.ts";
import { wireName } from "./tool-names.ts";

/** The caller hydrates media first. A reference that remains becomes a visible note instead of breaking the call. */
const plain = (block: ContentBlock): TextBlock | ImageBlock =>
  isMediaBlock(block) ? { type: "text", text: `[A file that is not shown here: ${JSON.stringify({ mimeType: block.mimeType })}]` } : block;

export function toTranscript(systemPrompt: string, messages: readonly Message[], tools: readonly ToolDefinition[]): TranscriptContext {
  const seen = new Set<string>();
  /** New ids of the current answer's calls, by the id in the results, in the order of the calls. */
  let renamed = new Map<string, string[]>();
  const out: PiMessage[] = [];
  for (const message of messages) {
    if (message.role === "user") {
      out.push({
        role: "user",
        content: typeof message.content === "string" ? message.content : message.content.map(plain),
        timestamp: message.timestamp,
      });
    } else if (message.role === "assistant") {
      renamed = new Map();
      out.push({
        role: "assistant",
        api: message.api,
        provider: message.provider,
        model: message.model,
        usage: lineUsage(message.usage),
        stopReason: message.stopReason,
        timestamp: message.timestamp,
        content: message.content.map((block) => {
          if (block.type !== "toolCall") return block;
          let id = block.id;
          for (let n = 2; seen.has(id); n++) id = `${block.id.slice(0, 56)}_${n}`;
          seen.add(id);
          const ids = renamed.get(block.id);
          if (ids) ids.push(id);
          else renamed.set(block.id, [id]);
          return { ...block, id, name: wireName(block.name), arguments: block.arguments as JsonObject };
        }),
      });
    } else {
      const ids = renamed.get(message.toolCallId);
      const id = ids && ids.length > 1 ? ids.shift() : ids?.[0];
      out.push({
        role: "toolResult",
        toolCallId: id ?? message.toolCallId,
        toolName: wireName(message.toolName),
        content: message.content.map(plain),
        isError: message.isError,
        timestamp: message.timestamp,
      });
    }
  }
  return normalizeContext({ systemPrompt, messages: out, ...(tools.length === 0 ? {} : { tools: [...tools].sort(byName).map(toTool) }) });
}
/** Machines connect in any order; the order of tools must be fixed, so that providers can cache the prompt. */
const byName = (a: ToolDefinition, b: ToolDefinition): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
const toTool = (tool: ToolDefinition): Tool => ({ name: wireName(tool.name), description: tool.description, parameters: tool.inputSchema });

/** A pi-ai description for a model that pi-ai does not list. */
export type PiModel = Model<"anthropic-messages"> | Model<"openai-completions">;
