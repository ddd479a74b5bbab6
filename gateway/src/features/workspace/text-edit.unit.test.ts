import assert from "node:assert/strict";
import { test } from "node:test";
import { edit, readPart } from "./text-edit.ts";

const part = (text: string, more: { offset?: number; limit?: number; column?: number } = {}) =>
  readPart(text, { offset: 1, limit: undefined, column: 0, ...more });
const MOST = 40_000;

test("[WF6] a part is whole lines from the asked one on", () => {
  assert.deepEqual(part("one\ntwo\nthree"), { text: "one\ntwo\nthree", totalLines: 3 });
  assert.deepEqual(part("one\ntwo\n"), { text: "one\ntwo\n", totalLines: 2 });
  assert.deepEqual(part("one\ntwo\nthree", { offset: 2, limit: 1 }), {
    text: "two\n",
    totalLines: 3,
    note: "[There is more: 3 lines in all. Continue with offset 3.]",
  });
  assert.deepEqual(part("one\ntwo\nthree", { offset: 2, limit: 2 }), { text: "two\nthree", totalLines: 3 });
  assert.deepEqual(part("one\ntwo", { offset: 1, column: 2 }), { text: "e\ntwo", totalLines: 2 });
  assert.equal(part("one\ntwo", { offset: 1, column: 99, limit: 1 }).text, "");
});
test("[WF6] a file without text has no lines; beyond the last line there is nothing", () => {
  assert.deepEqual(part(""), { text: "", totalLines: 0 });
  assert.deepEqual(part("", { offset: 2 }), { text: "", totalLines: 0, note: "[The file has 0 lines.]" });
  assert.deepEqual(part("one\ntwo\n", { offset: 3 }), { text: "", totalLines: 2, note: "[The file has 2 lines.]" });
  assert.equal(part("one\ntwo\n", { offset: 2 }).text, "two\n");
});
test("[WF6][P19] a part has at most 40,000 characters, as whole lines if possible", () => {
  const line = `${"x".repeat(99)}\n`;
  assert.equal(part(line.repeat(400)).note, undefined);
  const cut = part(line.repeat(401));
  assert.deepEqual([cut.text.length, cut.note], [MOST, "[There is more: 401 lines in all. Continue with offset 401.]"]);
  assert.equal(part(`${line.repeat(400).slice(1)}yy`).text.length, MOST - 1);
});
test("[WF6][P19] an asked part of exactly the most is whole, and an empty line at its end belongs to it", () => {
  const exact = part(`${"x".repeat(MOST - 1)}\ny\n`, { limit: 1 });
  assert.equal(exact.text.length, MOST);
  // Its last character ends in half of a pair when it is cut; here it is not cut.
  assert.equal(part(`${"x".repeat(MOST - 1)}\ud800`).text.length, MOST);
  const empty = part(`\n${"x".repeat(MOST + 5)}`);
  assert.deepEqual([empty.text, empty.note], ["\n", "[There is more: 2 lines in all. Continue with offset 2.]"]);
  // A line end right behind the most is the next part's.
  assert.equal(part(`a\n${"x".repeat(MOST - 2)}\ny`).text, "a\n");
});
test("[WF6][P19] a longer line is continued by column, and no character is cut in two", () => {
  const one = part("x".repeat(MOST + 5));
  assert.equal(one.note, `[There is more: 1 lines in all. Continue with offset 1 and column ${MOST}.]`);
  const pair = part(`${"x".repeat(MOST - 1)}\u{1f600}y`);
  assert.deepEqual(
    [pair.text.length, pair.note],
    [MOST - 1, `[There is more: 1 lines in all. Continue with offset 1 and column ${MOST - 1}.]`],
  );
  for (const unit of ["\ud7ff", "\udc00", "\ue000"]) assert.equal(part(`${"x".repeat(MOST - 1)}${unit}y`).text.length, MOST);
  const last = part(`${"x".repeat(MOST - 1)}\ud800y`);
  assert.equal(last.text.length, MOST - 1);
  const next = part(`\n${"x".repeat(MOST + 5)}`, { offset: 2 });
  assert.match(next.note ?? "", /offset 2 and column 40000/);
  const rest = part(`ab\n${"x".repeat(MOST + 5)}`, { offset: 2, column: 2 });
  assert.match(rest.note ?? "", /offset 2 and column 40002/);
});
test("an edit replaces one place, or all that are the same", () => {
  assert.deepEqual(edit("a b", "b", "c", false), { ok: true, value: { text: "a c", count: 1 } });
  assert.deepEqual(edit("b b", "b", "c", true), { ok: true, value: { text: "c c", count: 2 } });
  const reason = (...args: Parameters<typeof edit>): string => {
    const found = edit(...args);
    return found.ok ? "" : found.error.reason;
  };
  assert.equal(reason("b b", "b", "c", false), "edit.ambiguous");
  assert.equal(reason("a", "b", "c", true), "edit.no_match");
  assert.equal(reason("a", "", "c", true), "tool.bad_args");
  assert.equal(reason("a", "a", "a", true), "tool.bad_args");
});
