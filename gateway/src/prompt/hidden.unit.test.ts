import assert from "node:assert/strict";
import { test } from "node:test";
import { dangerousIn, invisibleIn, visible } from "./hidden.ts";

test("invisible characters are named by their code point and line", () => {
  assert.equal(invisibleIn("plain text"), undefined);
  assert.equal(invisibleIn("a\u200bb"), "U+200B");
  assert.equal(dangerousIn("plain\ntext"), undefined);
  assert.deepEqual(dangerousIn("one\ntwo\nthree\u202e"), { code: "U+202E", line: 3 });
});
test("a shown text has at most its number of characters, and half a character is never shown", () => {
  assert.equal(visible("x".repeat(10), 10), "x".repeat(10));
  assert.equal(visible("x".repeat(11), 10), `${"x".repeat(9)}…`);
  assert.equal(visible(`${"x".repeat(8)}\u{1f600}${"x".repeat(8)}`, 10), `${"x".repeat(8)}…`);
  assert.equal(visible(" a \n b\u200b", 40), "a b[U+200B]");
});
