import assert from "node:assert/strict";
import { test } from "node:test";
import { fitting } from "./shorten.ts";

const size = (value: unknown): number => new TextEncoder().encode(JSON.stringify(value)).length;

test("[P19] a message that fits is not changed", () => {
  const message = { role: "user", content: [{ type: "text", text: "short" }] };
  assert.equal(fitting(message, 1_000).message, message);
});
test("[P19] a message that is too large keeps its shape, and its long texts are cut visibly", () => {
  const message = {
    role: "user",
    content: [
      { type: "text", text: "x".repeat(20_000) },
      { type: "text", text: "short" },
    ],
  };
  const { message: cut, bytes } = fitting(message, 10_000);
  const { content } = cut as typeof message;
  assert.ok(Array.isArray(content));
  assert.match(content[0]?.text ?? "", /^x{8192} \[\.\.\. 11808 characters are left out here\]$/);
  assert.deepEqual(content[1], { type: "text", text: "short" });
  assert.equal(bytes, size(cut));
});
test("[P19] numbers, flags and null stay unchanged in a message that is cut", () => {
  const plain = { timestamp: 1_700_000_000_000, isError: false, details: null };
  const { message: cut } = fitting({ role: "toolResult", content: "x".repeat(20_000), ...plain }, 10_000);
  assert.deepEqual(cut, { role: "toolResult", content: `${"x".repeat(8_192)} [... 11808 characters are left out here]`, ...plain });
});
test("[P19] a message that stays too large is replaced by a note with its role", () => {
  const message = { role: "toolResult", content: Array.from({ length: 1_000 }, () => ({ type: "text", text: "x".repeat(200) })) };
  const { message: note, bytes } = fitting(message, 1_000);
  assert.deepEqual(note, { role: "toolResult", content: `[A message of ${size(message)} bytes is left out here]` });
  assert.ok(bytes <= 1_000);
});
test("[P19] nesting is kept to 32 levels", () => {
  const nested = (levels: number): object => {
    let value: object = { leaf: "x" };
    for (let level = 1; level < levels; level++) value = { value };
    return { ...value, text: "x".repeat(100_000) };
  };
  const isWhole = (levels: number): boolean => JSON.stringify(fitting(nested(levels), 80_000).message).includes('"leaf":"x"');
  assert.deepEqual([isWhole(32), isWhole(33)], [true, false]);
});
test("[P19] nesting without end is cut", () => {
  let deep: object = { text: "x".repeat(3_000) };
  for (let depth = 0; depth < 100; depth++) deep = { deep };
  assert.match(JSON.stringify(fitting({ role: "user", deep }, 2_000).message), /\[left out here\]/);
});
test("[P19] a message of exactly the limit is not changed; with one byte less it is", () => {
  const message = { role: "user", content: "x".repeat(20_000) };
  assert.equal(fitting(message, size(message)).message, message);
  assert.notEqual(fitting(message, size(message) - 1).message, message);
});
test("[P19] a text of exactly the step's length is kept, and a copy of exactly the limit is used", () => {
  const message = { role: "user", content: ["x".repeat(8_192), "y".repeat(20_000)] };
  const cut = { role: "user", content: ["x".repeat(8_192), `${"y".repeat(8_192)} [... 11808 characters are left out here]`] };
  assert.deepEqual(fitting(message, size(cut)), { message: cut, bytes: size(cut) });
});
test("[P19] 32 levels of lists and objects are kept, deeper ones are cut", () => {
  const nested = (levels: number): unknown =>
    levels === 0 ? "end" : levels % 2 === 0 ? [nested(levels - 1)] : { deep: nested(levels - 1) };
  const cut = (levels: number): string =>
    JSON.stringify(fitting({ role: "user", pad: "x".repeat(9_000), deep: nested(levels) }, 8_900).message);
  assert.match(cut(31), /"end"/);
  assert.doesNotMatch(cut(31), /left out here\]"[\]}]{2}/);
  assert.match(cut(33), /"\[left out here\]"/);
  assert.doesNotMatch(cut(33), /"end"/);
});
