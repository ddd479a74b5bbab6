import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cleanName } from "../runtime/clean-name.ts";

test("names lose deceptive characters", () => {
  assert.equal(cleanName("A\u200bn\u202ena\n "), "A n na");
  assert.equal(cleanName("\u200b\u200b"), undefined);
  assert.equal(cleanName("a\u{e0041}b"), "a b");
  assert.equal(cleanName({ toString: () => "a" }), undefined);
  assert.equal(cleanName(undefined), undefined);
});

test("names are cut between characters", () => {
  assert.equal(cleanName("x".repeat(500))?.length, 128);
  assert.equal(cleanName("ab😀", 3), "ab");
  assert.equal(cleanName("ab😀", 4), "ab😀");
  assert.equal(cleanName("ab cd", 3), "ab");
});

test("a clean name is one well-formed line, and cleaning it again changes nothing", () => {
  const text = fc
    .array(fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("\u202e", "\u{e0041}", "\n", "\ud83d", " ")))
    .map((all) => all.join(""));
  fc.assert(
    fc.property(text, fc.integer({ min: 1, max: 40 }), (name, max) => {
      const clean = cleanName(name, max);
      if (clean === undefined) return;
      assert.ok(clean.isWellFormed() && clean.length <= max && clean === clean.trim());
      assert.doesNotMatch(clean, /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
      assert.equal(cleanName(clean, max), clean);
    }),
  );
});
