/** What becomes of a model's answer: its text, its calls, and an answer that is none. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { AssistantMessage as PiAssistant, AssistantMessageEvent } from "@mariozechner/pi-ai";
import { configWith } from "../../test/models/support.ts";
import { AnswerCollector, MAX_ANSWER_CHARS, parseArguments, refusalOf } from "./answer.ts";
import { resolveTarget, type Target } from "./resolve.ts";

const targetOf = (id: string): Target => {
  const found = resolveTarget({ provider: "openai", id }, configWith({ provider: "openai", id }), {
    apiKeys: { openai: "k" },
    headers: {},
  });
  assert.ok(found.ok);
  return found.value;
};
const target = targetOf("gpt-4.1");
const WINDOW = target.info.contextWindow;
const event = (type: "text_delta" | "thinking_delta" | "toolcall_delta", delta: string, contentIndex = 0): AssistantMessageEvent =>
  ({ type, contentIndex, delta }) as unknown as AssistantMessageEvent;
const answer = (more: Partial<PiAssistant> = {}, input = 1, cacheRead = 0): PiAssistant =>
  ({
    role: "assistant",
    content: [],
    stopReason: "stop",
    usage: {
      input,
      output: 1,
      cacheRead,
      cacheWrite: 0,
      totalTokens: 0,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0.5 },
    },
    ...more,
  }) as PiAssistant;
const context = { now: 1, nameOf: (wire: string) => wire, extraOf: () => undefined, maxTokens: 100 };
const finished = (message: PiAssistant, of = target) => new AnswerCollector({ onText: () => {} }).finish(of, message, context);
const reasonOf = (message: PiAssistant): string => {
  const outcome = finished(message);
  return outcome.kind === "failed" ? `${outcome.error.reason} ${outcome.retryable}: ${outcome.error.message}` : outcome.kind;
};

describe("arguments of a call", () => {
  it("[P5] are cut when a bracket or a string is still open", () => {
    for (const cut of ['{"a":1', '{"a":"x', '{"a":[1,2}', '{"a":"\\"', '{"a":"\\\\\\"', '{"a":"x}', "[1"])
      assert.equal(parseArguments(cut).kind, "cut", cut);
    for (const wrong of ["{a}", "[1]", "5", '{"a":1}}', '{"a" 1, "b":"\\\\"}', '{"a":"\\u{1f600}" 1}'])
      assert.equal(parseArguments(wrong).kind, "invalid", wrong);
    assert.deepEqual(parseArguments('{"a":"\\"}"}'), { kind: "valid", value: { a: '"}' } });
    assert.deepEqual(parseArguments(" "), { kind: "valid", value: {} });
  });
});

describe("text", () => {
  it("[SP2] arguments count when they come, held back or not, and once", () => {
    const written: number[] = [];
    const collector = new AnswerCollector({ onText: () => {}, onArguments: (length) => written.push(length) });
    collector.hold(3);
    collector.hold(4);
    collector.take(event("toolcall_delta", "1234567"));
    collector.take(event("toolcall_delta", "89"));
    collector.hold(1);
    collector.hold(2);
    assert.deepEqual(written, [3, 4, 2, 1]);
  });
  it("is passed on piece by piece, empty pieces are not, and none behind the limit of an answer", () => {
    const heard: string[] = [];
    const written: number[] = [];
    const onArguments = (length: number) => written.push(length);
    const collector = new AnswerCollector({ onText: (text) => heard.push(text), onArguments });
    collector.take(event("text_delta", "a"));
    collector.take(event("text_delta", ""));
    collector.take(event("thinking_delta", "x".repeat(MAX_ANSWER_CHARS - 2)));
    assert.equal(collector.tooLarge, false);
    collector.take(event("text_delta", "b"));
    assert.deepEqual([collector.tooLarge, heard], [false, ["a", "b"]]);
    collector.take(event("toolcall_delta", "c"));
    assert.equal(collector.tooLarge, true);
    collector.take(event("text_delta", "d"));
    assert.deepEqual([heard, written], [["a", "b"], [1]]);
  });
});

describe("an answer without text and calls", () => {
  it("is too long a conversation when its input fills the window, and too small a limit when it does not", () => {
    const round = { ...target, info: { ...target.info, contextWindow: 200_000 } };
    const exactly = finished(answer({ stopReason: "length" }, 198_000), round);
    assert.equal(exactly.kind === "failed" && exactly.error.reason, "model.context_overflow");
    const nearly = Math.ceil(WINDOW * 0.99);
    for (const full of [answer({ stopReason: "length" }, nearly), answer({ stopReason: "length" }, 0, nearly)])
      assert.match(reasonOf(full), /^model\.context_overflow false: /);
    assert.match(reasonOf(answer({ stopReason: "length" }, nearly - 1)), /^model\.bad_answer false: gpt-4\.1 used up its 100 tokens/);
  });
  it("is empty otherwise, however full the window is", () => {
    for (const input of [1, WINDOW]) assert.match(reasonOf(answer({}, input)), /^model\.bad_answer true: gpt-4\.1 sent an empty answer\./);
    assert.match(reasonOf(answer({ content: [{ type: "text", text: " " }] })), /sent an empty answer/);
    assert.equal(reasonOf(answer({ content: [{ type: "text", text: "a" }] })), "replied");
  });
});

describe("what an answer cost", () => {
  it("[SP3] counts only where the model has a price; a refusal counts too", () => {
    const { price: _price, ...info } = target.info;
    const free = { ...target, info } as Target;
    const message = answer({ content: [{ type: "text", text: "a" }], rawStopReason: "refusal" } as Partial<PiAssistant>);
    for (const [of, cost] of [
      [target, 0.5],
      [free, undefined],
    ] as const) {
      const outcomes = [finished(message, of), refusalOf(of, message)];
      assert.deepEqual(
        outcomes.map((outcome) => outcome?.usage?.costUsd),
        [cost, cost],
      );
    }
    assert.equal(refusalOf(target, answer()), undefined);
  });
});

describe("[CT13] what the model thinks", () => {
  it("is handed on as it arrives, with a blank line between two thoughts, and never as text", () => {
    const [texts, thoughts]: [string[], string[]] = [[], []];
    const collector = new AnswerCollector({ onText: (text) => texts.push(text), onThought: (text) => thoughts.push(text) });
    collector.take(event("thinking_delta", "First", 0));
    collector.take(event("thinking_delta", "", 0));
    collector.take(event("thinking_delta", " this.", 0));
    collector.take(event("text_delta", "So.", 1));
    collector.take(event("thinking_delta", "Then that.", 2));
    assert.deepEqual(thoughts, ["First", " this.", "\n\nThen that."]);
    assert.deepEqual(texts, ["So."]);
  });
  it("is dropped where no one listens", () => {
    const texts: string[] = [];
    new AnswerCollector({ onText: (text) => texts.push(text) }).take(event("thinking_delta", "x"));
    assert.deepEqual(texts, []);
  });
});
