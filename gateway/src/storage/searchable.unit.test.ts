import assert from "node:assert/strict";
import { test } from "node:test";
import { searchable } from "./searchable.ts";

const textOf = (content: unknown): string | undefined => searchable({ role: "user", content })?.text;
test("only messages with a known role are searchable", () => {
  for (const role of ["user", "assistant", "toolResult"]) assert.equal(searchable({ role, content: "x" })?.role, role);
  for (const value of [null, 5, "x", [], {}, { role: 5, content: "x" }, { role: "system", content: "x" }])
    assert.equal(searchable(value), undefined);
});
test("a message has its time, or 0 when it says none", () => {
  const at = (timestamp: unknown): number | undefined => searchable({ role: "user", content: "x", timestamp })?.at;
  assert.deepEqual([at(7), at(0), at(-1), at(1.5), at("7"), at(undefined)], [7, 0, 0, 0, 0, 0]);
});
test("texts, names of tools with their arguments, and names and transcripts of files are found", () => {
  assert.equal(textOf("plain"), "plain");
  assert.equal(textOf({ type: "text", text: "x" }), "");
  assert.equal(
    textOf([
      { type: "text", text: "one" },
      { type: "text", text: "" },
      { type: "text", text: 5 },
      { type: "toolCall", name: "Bash", arguments: { command: "ls" } },
      { type: "toolCall", name: "Read", arguments: "x" },
      { type: "audio", filename: "a.ogg", transcript: "hello" },
      { type: "image", data: "AAAA" },
      { type: "thinking", thinking: "private" },
      "text",
      null,
    ]),
    'one\nBash {"command":"ls"}\nRead \na.ogg\nhello',
  );
});
