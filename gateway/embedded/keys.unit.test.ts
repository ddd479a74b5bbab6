import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { compareKeys, decodeSegment, keyProblem, keyToNames } from "./keys.ts";

const segment = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: fc.constantFrom("%", "2", "E", "5", ".", "a", "\n", "%2E") }));
const key = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join("/"));

describe("keys as file names", () => {
  it("decode is the inverse of encode", () => {
    fc.assert(
      fc.property(key, (text) => assert.equal(keyToNames(text).map(decodeSegment).join("/"), text)),
      { numRuns: 2000 },
    );
  });

  it("[S7] two keys never share a file", () => {
    fc.assert(
      fc.property(key, key, (a, b) => {
        if (a !== b) assert.notEqual(keyToNames(a).join("/"), keyToNames(b).join("/"));
      }),
      { numRuns: 2000 },
    );
  });

  it("[S11] no name is hidden, empty, a parent or has a slash or control character", () => {
    fc.assert(
      fc.property(key, (text) =>
        keyToNames(text).every((name) => name !== "" && !name.startsWith(".") && !/[\u0000-\u001f\u007f/]/.test(name)),
      ),
      { numRuns: 2000 },
    );
  });

  it("ordinary names stay as they are", () => {
    for (const name of ["agents/main/SOUL.md", "a b", "100%", "50% off.md", "agent:main:cli:dm:main", "ü😀"])
      assert.equal(keyToNames(name).join("/"), name);
  });

  it("a file name that no key has is no object", () => {
    for (const name of ["%41", "%2e", "%2Fx", "a%25b", ".env"]) assert.equal(decodeSegment(name), null, name);
  });

  it("what can't be stored is said", () => {
    assert.match(keyProblem("") ?? "", /empty/);
    assert.match(keyProblem("a/".repeat(513)) ?? "", /1024/);
    assert.match(keyProblem("x".repeat(201)) ?? "", /file name/);
    assert.match(keyProblem("\ud800") ?? "", /Unicode/);
    assert.equal(keyProblem("x".repeat(200)), null);
  });

  it("keys are ordered by their UTF-8 bytes", () => {
    const encoder = new TextEncoder();
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) =>
        assert.equal(Math.sign(compareKeys(a, b)), Math.sign(Buffer.compare(encoder.encode(a), encoder.encode(b)))),
      ),
      { numRuns: 2000 },
    );
  });
});
