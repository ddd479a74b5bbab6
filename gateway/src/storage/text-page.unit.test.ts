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
  it("the parts are the text, cut between characters", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.integer({ min: 8, max: 40 }),
        (text, max) => whole(text.toWellFormed(), max) === text.toWellFormed(),
      ),
    );
  });
  it("a file of the largest size fits, whatever is in it", () => {
    for (const unit of ["x", "\u0001", "\n", '"', "🌍", "\ufeff"]) {
      const text = unit.repeat(Math.floor(LIMITS.workspaceFileBytes / new TextEncoder().encode(unit).length));
      assert.ok(whole(text) === text, JSON.stringify(unit));
    }
  });
  it("an offset beyond the end or inside a character is none", () => {
    assert.equal(textPage("a🌍", 2), undefined);
    assert.equal(textPage("ab", 3), undefined);
    assert.deepEqual(textPage("ab", 2), { content: "", nextOffset: undefined });
  });
});
