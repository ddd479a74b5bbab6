/**
 * Converts our messages to pi-ai's transcript. Shallow: texts, images and arguments are shared, never copied, since a long
 * history is converted at every call. PURE.
 *
 * Tool call ids come from providers, and some use the same id for every answer's first call. A stricter provider
 * would refuse such a history every time, so a repeated id is made unique here, together with its result.
 */
import type { JsonObject, Message as PiMessage, Tool, TranscriptContext } from "@mariozechner/pi-ai";
import { normalizeContext } from "@mariozechner/pi-ai/utils/transcript";
import type { ToolDefinition } from "../../../protocol/gen/types.ts";
import { compareTexts } from "../../../protocol/runtime/compare-texts.ts";
import { type ContentBlock, type ImageBlock, isMediaBlock, type Message, type TextBlock } from "../ports/messages.ts";
import { lineUsage } from "../storage/archive-line.ts";
import { wireName } from "./tool-names.ts";

/** The caller hydrates media first. A reference that remains becomes a visible note instead of breaking the call. */
const plain = (block: ContentBlock): TextBlock | ImageBlock =>
  isMediaBlock(block) ? { type: "text", text: `[A file that is not shown here: ${JSON.stringify({ mimeType: block.mimeType })}]` } : block;

/** A call's id that another call has already is made unique; the results of the last answer follow it. */
interface Written {
  readonly messages: PiMessage[];
  readonly ids: Set<string>;
  /** New ids of the last answer's calls, by the id in the results, in the order of the calls. */
  renamed: Map<string, string[]>;
  readonly signed: SignedCall[];
}
/** A call with data of its provider, which the provider wants back. */
export interface SignedCall {
  readonly id: string;
  readonly provider: string;
  readonly signature: string;
}
const nothing = (): Written => ({ messages: [], ids: new Set(), renamed: new Map(), signed: [] });

/**
 * Writes the transcripts of one conversation. A conversation grows at its end, and each call of the model gets all of it: what was
 * written for the call before is kept, and only what follows is converted.
 */
export class TranscriptWriter {
  #source: readonly Message[] = [];
  #written = nothing();

  /** The signed calls of the last written transcript. */
  get signed(): readonly SignedCall[] {
    return this.#written.signed;
  }
  write(systemPrompt: string, messages: readonly Message[], tools: readonly ToolDefinition[]): TranscriptContext {
    const grew = this.#source.length <= messages.length && this.#source.every((message, at) => message === messages[at]);
    if (!grew) this.#written = nothing();
    for (const message of messages.slice(this.#written.messages.length)) this.#written.messages.push(convert(message, this.#written));
    this.#source = [...messages];
    return normalizeContext({
      systemPrompt,
      messages: [...this.#written.messages],
      ...(tools.length === 0 ? {} : { tools: [...tools].sort(byName).map(toTool) }),
    });
  }
}

function convert(message: Message, written: Written): PiMessage {
  if (message.role === "user")
    return {
      role: "user",
      content: typeof message.content === "string" ? message.content : message.content.map(plain),
      timestamp: message.timestamp,
    };
  if (message.role === "assistant") {
    const renamed = new Map<string, string[]>();
    written.renamed = renamed;
    return {
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
        for (let n = 2; written.ids.has(id); n++) id = `${block.id.slice(0, 56)}_${n}`;
        written.ids.add(id);
        if (block.thoughtSignature !== undefined)
          written.signed.push({ id: block.id, provider: message.provider, signature: block.thoughtSignature });
        const ids = renamed.get(block.id);
        if (ids) ids.push(id);
        else renamed.set(block.id, [id]);
        return { ...block, id, name: wireName(block.name), arguments: block.arguments as JsonObject };
      }),
    };
  }
  const ids = written.renamed.get(message.toolCallId);
  const id = ids && ids.length > 1 ? ids.shift() : ids?.[0];
  return {
    role: "toolResult",
    toolCallId: id ?? message.toolCallId,
    toolName: wireName(message.toolName),
    content: message.content.map(plain),
    isError: message.isError,
    timestamp: message.timestamp,
  };
}

/** Machines connect in any order; the order of tools must be fixed, so that providers can cache the prompt. */
const byName = (a: ToolDefinition, b: ToolDefinition): number => compareTexts(a.name, b.name);
const toTool = (tool: ToolDefinition): Tool => ({ name: wireName(tool.name), description: tool.description, parameters: tool.inputSchema });
