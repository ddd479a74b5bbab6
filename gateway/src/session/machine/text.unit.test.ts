import assert from "node:assert/strict";
import { test } from "node:test";
import type { AssistantMessage, ContentBlock } from "../../ports/messages.ts";
import { counted, cutMiddle, fitAssistant, fitImages, head, jsonBytes, tail } from "./text.ts";

const SMILE = "\u{1f600}";
test("[P19] a cut text is never longer than asked, and has no half character", () => {
  assert.deepEqual(
    [head("abc", 3), head("abc", 2), head("abc", 0), tail("abc", 3), tail("abc", 2), tail("abc", 0)],
    ["abc", "ab", "", "abc", "bc", ""],
  );
  assert.deepEqual(
    [head(`a${SMILE}b`, 2), head(`a${SMILE}b`, 3), tail(`a${SMILE}b`, 2), tail(`a${SMILE}b`, 3)],
    ["a", `a${SMILE}`, "b", `${SMILE}b`],
  );
  assert.deepEqual([head("abc", 9), tail("abc", 9), tail(`${SMILE}a`, 9)], ["abc", "abc", `${SMILE}a`]);
  // The characters beside the high surrogates.
  for (const unit of ["\ud7ff", "\udc00"]) assert.deepEqual([head(`a${unit}bc`, 2), tail(`a${unit}bc`, 2)], [`a${unit}`, "bc"]);
  for (const unit of ["\ud800", "\udbff"]) assert.deepEqual([head(`a${unit}bc`, 2), tail(`a${unit}bc`, 2)], ["a", "c"]);
});
test("[P19] the middle of a text is left out visibly", () => {
  const note = (missing: number): string => `<${missing}>`;
  assert.equal(cutMiddle("abcde", 5, note), "abcde");
  assert.equal(cutMiddle("abcdef", 5, note), "abc\n<1>\nef");
});
test("numbers of things are written as in speech", () => {
  assert.deepEqual([counted(0, "message"), counted(1, "message"), counted(2, "message")], ["0 messages", "1 message", "2 messages"]);
});

const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const said = (...content: AssistantMessage["content"]): AssistantMessage => ({
  role: "assistant",
  content: [...content],
  api: "a",
  provider: "p",
  model: "m",
  usage,
  stopReason: "toolUse",
  timestamp: 0,
});
const callOf = (id: string, size: number) =>
  ({ type: "toolCall", id, name: "lap__Bash", arguments: { command: "x".repeat(size) }, thoughtSignature: "s" }) as const;
test("[P19] an answer of exactly the row's size is kept; a larger one loses its thinking first", () => {
  const message = said({ type: "thinking", thinking: "y".repeat(500) }, { type: "text", text: "hello" }, callOf("c1", 10));
  assert.equal(fitAssistant(message, jsonBytes(message)).message, message);
  const smaller = fitAssistant(message, jsonBytes(message) - 1);
  assert.deepEqual([smaller.message.content, smaller.lost], [message.content.slice(1), []]);
});
test("[P19] then it loses the arguments of calls that have more than their share, and their signatures", () => {
  const message = said({ type: "text", text: "hello" }, callOf("c1", 10), callOf("c2", 5_000));
  const { message: fitted, lost } = fitAssistant(message, 1_000);
  assert.deepEqual(lost, [1]);
  assert.deepEqual(fitted.content, [
    { type: "text", text: "hello" },
    callOf("c1", 10),
    { type: "toolCall", id: "c2", name: "lap__Bash", arguments: {} },
  ]);
});
test("[P19] calls up to exactly their share keep their arguments", () => {
  const call = callOf("c1", 300);
  const message = said({ type: "text", text: "z".repeat(3_000) }, call);
  assert.deepEqual(fitAssistant(message, 2 * jsonBytes(call)).lost, []);
  assert.deepEqual(fitAssistant(message, 2 * jsonBytes(call) - 2).lost, [0]);
});
test("[P19] last its text loses its middle; without a text there is none", () => {
  const { message, lost } = fitAssistant(said({ type: "text", text: "z".repeat(5_000) }), 1_200);
  assert.deepEqual(lost, []);
  assert.deepEqual(message.content, [
    { type: "text", text: `${"z".repeat(50)}\n[... 4900 characters were left out ...]\n${"z".repeat(50)}` },
  ]);
  const calls = Array.from({ length: 20 }, (_, at) => callOf(`c${at}`, 500));
  const many = fitAssistant(said(...calls), 600);
  assert.deepEqual([many.lost.length, many.message.content.length, many.message.content[0]?.type], [20, 20, "toolCall"]);
});
test("[P19] images fit a row together; one that does not is named instead, and a smaller one after it still fits", () => {
  const image = (size: number): ContentBlock => ({ type: "image", data: "A".repeat(size), mimeType: "image/png" });
  const stored: ContentBlock = { type: "image", r2Key: "media/x/y.png", mimeType: "image/png" };
  const fitted = fitImages([{ type: "text", text: "x" }, stored, image(60), image(41), image(40), image(1)], 100);
  assert.deepEqual(
    fitted.map((block) => (block.type === "image" ? ("data" in block ? block.data?.length : "stored") : block.type)),
    ["text", "stored", 60, "text", 40, "text"],
  );
});
test("[W19] content that fits its row to the last byte is kept as it is", () => {
  const message = said({ type: "text", text: "x".repeat(400) }, callOf("a", 400));
  const bytes = jsonBytes(message.content);
  assert.ok(jsonBytes(message) > bytes);
  assert.deepEqual(fitAssistant(message, bytes), { message, lost: [] });
  assert.deepEqual(fitAssistant(message, bytes - 1).lost, [0]);
});
