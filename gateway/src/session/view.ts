/**
 * The conversation as the model sees it: a summary stands for archived messages, and the largest texts lose their middles when the
 * context can't become smaller in another way. PURE. The log keeps everything.
 */
import { tokensOfMessage } from "../models/estimate.ts";
import type { AssistantMessage, ContentBlock, Message, TextBlock, ToolCallBlock, UserMessage } from "../ports/messages.ts";
import { fence } from "../prompt/fence.ts";
import type { Summary } from "./machine/state.ts";
import { cutMiddle } from "./machine/text.ts";

/** The marked message that stands for the messages of earlier compactions. */
export function summaryMessage({ text, task, count, at }: Summary): UserMessage {
  const about = `[Summary made by GSV, not written by the user: it stands for ${count} earlier messages of this conversation. They are archived; gsv__Search finds them.]`;
  const parts = [
    about,
    text === "" ? "(They were archived without a summary.)" : fence("summary of the conversation so far", text),
    ...(task === undefined ? [] : [`[The newest message of the user, word for word; the work on it goes on below:]\n${task}`]),
  ];
  return { role: "user", content: parts.join("\n\n"), timestamp: at };
}

/** Texts are cut to no less than this. */
const LEAST_CHARS = 200;
const note = (missing: number): string =>
  `[... ${missing} characters were left out here, because the conversation is too long for the model; the log has them ...]`;
const IMAGE_GONE: TextBlock = { type: "text", text: "[An image was left out here, because the conversation is too long for the model.]" };

/**
 * The messages in at most `budget` tokens, if that is possible: the largest texts lose their middles first, the user's newest message
 * last, and then thinking and images are removed. Calls keep their results. Messages that fit are returned unchanged.
 */
export function fitView(messages: readonly Message[], budget: number): readonly Message[] {
  let total = 0;
  for (const message of messages) total += tokensOfMessage(message);
  if (total <= budget) return messages;
  const newest = messages.findLastIndex((message) => message.role === "user");
  let view = messages;
  // Each cap is half of the one before, so few rounds are enough, and only the largest texts are cut.
  for (const spare of [newest, -1]) {
    for (let cap = longest(view, spare) / 2; ; cap /= 2) {
      const chars = Math.max(LEAST_CHARS, Math.floor(cap));
      view = messages.map((message, index) => (index === spare ? message : shortened(message, chars)));
      if (weigh(view) <= budget) return view;
      if (chars === LEAST_CHARS) break;
    }
  }
  const bare = view.map((message, index) => (index === newest ? message : stripped(message)));
  return weigh(bare) <= budget ? bare : bare.map(stripped);
}
const weigh = (messages: readonly Message[]): number => messages.reduce((sum, message) => sum + tokensOfMessage(message), 0);

function longest(messages: readonly Message[], spare: number): number {
  let most = 0;
  const see = (value: unknown): void => {
    if (typeof value === "string") most = Math.max(most, value.length);
    else if (typeof value === "object" && value !== null) for (const inner of Object.values(value)) see(inner);
  };
  for (const [index, { content }] of messages.entries()) {
    if (index === spare) continue;
    if (typeof content === "string") see(content);
    else for (const block of content) see(block.type === "text" ? block.text : block.type === "toolCall" ? block.arguments : "");
  }
  return most;
}

function shortened(message: Message, chars: number): Message {
  const text = (whole: string): string => (whole.length <= chars + 160 ? whole : cutMiddle(whole, chars, note));
  const inContent = (block: ContentBlock): ContentBlock => (block.type === "text" ? { ...block, text: text(block.text) } : block);
  switch (message.role) {
    case "user":
      return { ...message, content: typeof message.content === "string" ? text(message.content) : message.content.map(inContent) };
    case "toolResult":
      return { ...message, content: message.content.map(inContent) };
    case "assistant":
      return {
        ...message,
        content: message.content.map((block): AssistantMessage["content"][number] =>
          block.type === "text" ? { ...block, text: text(block.text) } : block.type === "toolCall" ? shortCall(block, text) : block,
        ),
      };
  }
}
/** Arguments keep their shape. The signature covers the whole call, so it is removed when something was cut. */
function shortCall(block: ToolCallBlock, text: (whole: string) => string): ToolCallBlock {
  let cut = false;
  const inner = (value: unknown): unknown => {
    if (typeof value === "string") {
      const short = text(value);
      cut ||= short !== value;
      return short;
    }
    if (Array.isArray(value)) return value.map(inner);
    if (typeof value === "object" && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, inner(held)]));
    return value;
  };
  const args = Object.fromEntries(Object.entries(block.arguments).map(([name, held]) => [name, inner(held)]));
  if (!cut) return block;
  const { thoughtSignature: _signature, ...rest } = block;
  return { ...rest, arguments: args };
}
function stripped(message: Message): Message {
  if (typeof message.content === "string") return message;
  if (message.role === "assistant") {
    const content = message.content.filter((block) => block.type !== "thinking");
    return { ...message, content: content.length === 0 ? [{ type: "text", text: "(thoughts)" }] : content };
  }
  return { ...message, content: message.content.map((block) => (block.type === "image" ? IMAGE_GONE : block)) };
}
