import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { answerBytes, ANSWER_BYTES, textPage } from "./text-page.ts";

function whole(text: string, maxBytes?: number): string {
  let out = "";
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const page = textPage(text, offset, maxBytes);
    assert.ok(page);
    assert.ok(answerBytes(page.content) <= ANSWER_BYTES);
    assert.ok(page.nextOffset === undefined || page.nextOffset > offset);
    out += page.content;
    offset = page.nextOffset;
  }
  return out;
}
describe("[WF6][P19] long texts in parts", () => {
  it("the parts join to the text and are cut between characters", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.integer({ min: 8, max: 40 }),
        (text, max) => whole(text.toWellFormed(), max) === text.toWellFormed(),
      ),
    );
  });
  it("the parts of the largest file fit, for any content", () => {
    for (const unit of ["x", "\u0001", "\n", '"', "🌍", "\ufeff"]) {
      const text = unit.repeat(Math.floor(LIMITS.workspaceFileBytes / new TextEncoder().encode(unit).length));
      assert.ok(whole(text) === text, JSON.stringify(unit));
    }
  });
  it("a part fills an answer exactly, and no more", () => {
    const [fits, over] = ["x".repeat(ANSWER_BYTES - 2), "x".repeat(ANSWER_BYTES - 1)];
    assert.equal(textPage(fits, 0, 2 * ANSWER_BYTES)?.nextOffset, undefined);
    assert.ok((textPage(over, 0, 2 * ANSWER_BYTES)?.nextOffset ?? 0) > 0);
  });
  it("refuses an offset beyond the end or inside a character", () => {
    assert.equal(textPage("a🌍", 2), undefined);
    assert.equal(textPage("ab", 3), undefined);
    assert.deepEqual(textPage("ab", 2), { content: "", nextOffset: undefined });
  });
});
