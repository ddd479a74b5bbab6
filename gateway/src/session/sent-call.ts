/**
 * Measures what a call of the model is sent, by context layer, when the call begins (rule AU8). The measure is stored with the answer's
 * row, or with the failure's. Estimates: the provider's own counts are in the answer's usage. PURE.
 */
import { tokensOfChars, tokensOfMessage } from "../models/estimate.ts";
import type { Message } from "../ports/messages.ts";
import type { AssembledPrompt } from "../ports/prompt.ts";
import { RECALL } from "../tools/memory-tools.ts";
import type { Item } from "./history.ts";
import type { SentCall } from "./machine/log.ts";

type Sections = readonly Pick<AssembledPrompt["sections"][number], "layer" | "text">[];

/** Tokens of the system prompt by layer. What joins the sections counts as layer 1, so that the sum is that of the whole text. */
export function systemLayers(system: string, sections: Sections): number[] {
  const chars = [0, 0, 0, 0, 0, 0];
  let inSections = 0;
  for (const { layer, text } of sections) {
    chars[layer - 1] = (chars[layer - 1] ?? 0) + text.length;
    inSections += text.length;
  }
  chars[0] = (chars[0] ?? 0) + Math.max(0, system.length - inSections);
  return chars.map(tokensOfChars);
}

/** Definitions of tools belong to the shared layer. */
const TOOLS_AT = 2;

/** The message of a task is layer 4, recalled rows are layer 6, and the rest of the conversation is layer 5. */
const layerOf = (row: Item["row"] | undefined): 4 | 5 | 6 => {
  if (row?.kind === "user" && row.origin.kind === "task") return 4;
  return row?.kind === "toolResult" && row.message.toolName === RECALL ? 6 : 5;
};

export interface SentInput {
  readonly at: number;
  readonly model: { readonly provider: string; readonly id: string };
  /** Tokens of the system prompt by layer. */
  readonly system: readonly number[];
  readonly toolTokens: number;
  readonly items: readonly Item[];
  /** What is sent: the visible items in order, some of them in another form, and before them a summary where there is one. */
  readonly messages: readonly Message[];
}
export function sentCall({ at, model, system, toolTokens, items, messages }: SentInput): SentCall {
  const layers = system.map((tokens, index) => (index === TOOLS_AT ? tokens + toolTokens : tokens));
  const visible = items.filter(({ hidden }) => hidden !== true);
  const first = messages.length - visible.length;
  for (const [index, message] of messages.entries()) {
    const item = visible[index - first];
    const tokens = item?.message === message ? item.tokens : tokensOfMessage(message);
    const layer = layerOf(item?.row);
    layers[layer - 1] = (layers[layer - 1] ?? 0) + tokens;
  }
  return { at, provider: model.provider, model: model.id, layers, tools: toolTokens };
}
