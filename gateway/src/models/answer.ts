/**
 * Turns pi-ai's events into one answer. PURE. Collects the parts and decides at the end whether the answer is valid. Never
 * yields a tool call whose arguments are incomplete (promise P5).
 */
import type { AssistantMessage as PiAssistant, AssistantMessageEvent, Usage as PiUsage } from "@mariozechner/pi-ai";
import { repairJson } from "@mariozechner/pi-ai/utils/json-parse";
import type { Usage } from "../../../protocol/gen/types.ts";
import { valueNestsDeeper } from "../../../protocol/runtime/depth.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import type { AssistantMessage, TextBlock, ThinkingBlock, ToolCallBlock } from "../ports/messages.ts";
import type { ModelOutcome, ModelRequest } from "../ports/model.ts";
import { badAnswer, overflowed, refused } from "./failure.ts";
import { INVALID_ARGUMENTS, MAX_DEPTH } from "./invalid-arguments.ts";
import type { Target } from "./resolve.ts";

/** Limit for the text, thinking and arguments of one answer together, in UTF-16 units. */
export const MAX_ANSWER_CHARS = 8 * 1024 * 1024;
const INVALID_CHARS = 2000;

export type Arguments =
  | { readonly kind: "valid"; readonly value: Record<string, unknown> }
  | { readonly kind: "invalid"; readonly raw: string }
  | { readonly kind: "cut" };

/** Whether brackets or a string are still open at the end, which means that the JSON was cut off. */
function isCut(json: string): boolean {
  let depth = 0;
  let inString = false;
  let escaped = false;
  for (const c of json) {
    if (escaped) escaped = false;
    else if (inString) {
      if (c === "\\") escaped = true;
      else if (c === '"') inString = false;
    } else if (c === '"') inString = true;
    else if (c === "{" || c === "[") depth++;
    else if (c === "}" || c === "]") depth--;
  }
  return inString || depth > 0;
}
/** Strict, except for raw control characters in strings: small models write them, and their meaning is unambiguous. */
export function parseArguments(raw: string): Arguments {
  if (raw.trim() === "") return { kind: "valid", value: {} };
  for (const read of [(text: string) => text, repairJson]) {
    try {
      const value: unknown = JSON.parse(read(raw));
      return isJsonObject(value) && !valueNestsDeeper(value, MAX_DEPTH) ? { kind: "valid", value } : { kind: "invalid", raw };
    } catch {
      // Try the next way to parse it.
    }
  }
  return isCut(raw) ? { kind: "cut" } : { kind: "invalid", raw };
}

export function toUsage(usage: PiUsage, priced: boolean): Usage {
  const whole = (n: number): number => (Number.isFinite(n) ? Math.min(Math.max(0, Math.round(n)), Number.MAX_SAFE_INTEGER) : 0);
  const [input, output, cacheRead, cacheWrite] = [whole(usage.input), whole(usage.output), whole(usage.cacheRead), whole(usage.cacheWrite)];
  // The sum of what is not negative: a provider that counts less than nothing gives no credit.
  const { total, ...parts } = usage.cost;
  const possible = (part: number): number => (Number.isFinite(part) ? Math.max(0, part) : 0);
  const cost = Math.max(
    possible(total),
    Object.values(parts).reduce((sum, part) => sum + possible(part), 0),
  );
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    total: input + output + cacheRead + cacheWrite,
    ...(priced ? { costUsd: cost } : {}),
  };
}

export class AnswerCollector {
  readonly #onText: (text: string) => void;
  readonly #onThought: ((text: string) => void) | undefined;
  readonly #onArguments: ((length: number) => void) | undefined;
  /** The block of the last thought. */
  #thinking: number | undefined;
  /** Raw arguments by block, and whether the block was closed. */
  #raw = new Map<number, string[]>();
  #closed = new Set<number>();
  #chars = 0;
  /** Characters of arguments: reported, passed on as events, and held back by the guard of the stream. */
  #reported = 0;
  #passed = 0;
  #held = 0;

  constructor({ onText, onThought, onArguments }: Pick<ModelRequest, "onText" | "onThought" | "onArguments">) {
    this.#onText = onText;
    this.#onThought = onThought;
    this.#onArguments = onArguments;
  }
  get tooLarge(): boolean {
    return this.#chars > MAX_ANSWER_CHARS;
  }
  take(event: AssistantMessageEvent): void {
    switch (event.type) {
      case "text_delta":
        return this.#text(event.delta);
      case "thinking_delta":
        this.#thought(event.contentIndex, event.delta);
        return;
      case "toolcall_delta": {
        this.#chars += event.delta.length;
        this.#passed += event.delta.length;
        this.#report();
        const pieces = this.#raw.get(event.contentIndex);
        if (pieces) pieces.push(event.delta);
        else this.#raw.set(event.contentIndex, [event.delta]);
        return;
      }
      case "toolcall_end":
        this.#closed.add(event.contentIndex);
        return;
      default:
        return;
    }
  }
  /** A piece of arguments came and is held back. It counts at once, and not again when it is passed on. */
  hold(length: number): void {
    this.#held += length;
    this.#report();
  }
  #report(): void {
    const more = Math.max(this.#held, this.#passed) - this.#reported;
    if (more <= 0) return;
    this.#reported += more;
    this.#onArguments?.(more);
  }
  #thought(index: number, text: string): void {
    this.#chars += text.length;
    if (text === "" || this.tooLarge) return;
    const isNext = this.#thinking !== undefined && this.#thinking !== index;
    this.#thinking = index;
    this.#onThought?.(isNext ? `\n\n${text}` : text);
  }
  #text(text: string): void {
    this.#chars += text.length;
    if (text !== "" && !this.tooLarge) this.#onText(text);
  }

  /** The outcome of an answer that is complete. */
  finish(
    target: Target,
    message: PiAssistant,
    context: { now: number; nameOf: (wire: string) => string; extraOf: (id: string) => string | undefined; maxTokens: number },
  ): ModelOutcome {
    const usage = toUsage(message.usage, target.info.price !== undefined);
    const content: (TextBlock | ThinkingBlock | ToolCallBlock)[] = [];
    const calls: { providerId: string; name: string; arguments: Readonly<Record<string, unknown>> }[] = [];
    const ids = new Set<string>();
    const wrong = (text: string, more: Parameters<typeof badAnswer>[1]): ModelOutcome => ({ ...badAnswer(text, more), usage });

    for (const [index, block] of message.content.entries()) {
      if (block.type === "text") {
        if (block.text !== "") content.push({ type: "text", text: block.text });
      } else if (block.type === "thinking") {
        content.push({
          type: "thinking",
          thinking: block.thinking,
          ...(block.thinkingSignature ? { thinkingSignature: block.thinkingSignature } : {}),
          ...(block.redacted ? { redacted: true } : {}),
        });
      } else {
        if (message.stopReason === "length") {
          return wrong(`${target.id} reached its limit of ${context.maxTokens} tokens in the middle of a tool call.`, {
            hints: { hint: "Ask for less at once, or raise `model.maxTokens`." },
          });
        }
        const args = this.#closed.has(index) ? parseArguments((this.#raw.get(index) ?? []).join("")) : ({ kind: "cut" } as const);
        if (args.kind === "cut") return wrong(`The answer of ${target.providerName} broke off inside a tool call.`, { retryable: true });
        let providerId = block.id === "" ? `call_${index}` : block.id;
        for (let n = 2; ids.has(providerId); n++) providerId = `${block.id.slice(0, 56)}_${n}`;
        ids.add(providerId);
        const name = context.nameOf(block.name);
        const value = args.kind === "valid" ? args.value : { [INVALID_ARGUMENTS]: args.raw.slice(0, INVALID_CHARS) };
        const signature = context.extraOf(block.id) ?? block.thoughtSignature;
        content.push({ type: "toolCall", id: providerId, name, arguments: value, ...(signature ? { thoughtSignature: signature } : {}) });
        calls.push({ providerId, name, arguments: value });
      }
    }
    const says = content.some((block) => block.type === "text" && block.text.trim() !== "");
    if (calls.length === 0 && !says) {
      const filled = usage.input + (usage.cacheRead ?? 0) >= target.info.contextWindow * 0.99;
      if (message.stopReason === "length" && filled) return { ...overflowed(target), usage };
      if (message.stopReason === "length")
        return wrong(`${target.id} used up its ${context.maxTokens} tokens before it answered.`, {
          hints: {
            hint: "Raise `model.maxTokens`, or lower the thinking level (`/think low`).",
            taskHint: "Raise `model.maxTokens`, or lower the thinking level: `gsv config set model.thinkLevel low`.",
          },
        });
      return wrong(`${target.id} sent an empty answer.`, { retryable: true });
    }
    const stopReason: AssistantMessage["stopReason"] = calls.length > 0 ? "toolUse" : message.stopReason === "length" ? "length" : "stop";
    return {
      kind: "replied",
      message: {
        role: "assistant",
        content,
        api: target.wire,
        provider: target.provider,
        model: target.id,
        usage,
        stopReason,
        timestamp: context.now,
      },
      calls,
      usage,
    };
  }
}

const REFUSALS = new Set(["refusal", "content_filter", "sensitive"]);
/** A refusal that pi-ai reports as an error of the answer. */
export function refusalOf(target: Target, message: PiAssistant): ModelOutcome | undefined {
  if (message.rawStopReason === undefined || !REFUSALS.has(message.rawStopReason)) return undefined;
  const why = message.errorMessage ?? "";
  return {
    ...refused(target, /finish_reason|stopped with|refused to complete/.test(why) ? "" : why),
    usage: toUsage(message.usage, target.info.price !== undefined),
  };
}
