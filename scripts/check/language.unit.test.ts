import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { languageFindings } from "./language.ts";

const found = (text: string, file = "a.ts"): number => languageFindings(new Map([[file, text]])).length;

describe("words that make the text hard to read", () => {
  it("are found in comments, messages and documents, whatever their case", () => {
    for (const text of [
      "// Nobody answers",
      '"Run it anew."',
      "It mends the link",
      "what was put away",
      "kept for ever",
      "what is no key",
      "The truth about one channel",
      "A retry goes where it went",
      "secrets that go where they went",
    ])
      assert.equal(found(text), 1, text);
    assert.equal(found("one line: nobody and somebody"), 2);
  });

  it("ordinary words pass, and so do generated files and the list itself", () => {
    for (const text of ["a recommendation to amend", "no one answers", "forever", "makes forward progress"])
      assert.equal(found(text), 0, text);
    assert.equal(found("nobody", "protocol/gen/types.ts"), 0);
    assert.equal(found("nobody", "docs/glossary.md"), 0);
  });
});
