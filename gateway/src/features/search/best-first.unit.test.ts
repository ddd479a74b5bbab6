import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { bestFirst } from "./best-first.ts";

test("[SE3] the best come first, in the order of a plain sort by steps and then by what is given", () => {
  const text = fc.record({ score: fc.double({ min: 0, max: 0.2, noNaN: true }), at: fc.nat(5) });
  fc.assert(
    fc.property(fc.array(text, { maxLength: 200 }), (texts) => {
      const later = (left: number, right: number): number => (texts[right]?.at ?? 0) - (texts[left]?.at ?? 0) || right - left;
      const step = (index: number): number => Math.trunc((texts[index]?.score ?? 0) * 100);
      const sorted = texts.map((_, index) => index).sort((left, right) => step(right) - step(left) || later(left, right));
      assert.deepEqual(
        [
          ...bestFirst(
            Float64Array.from(texts, ({ score }) => score),
            100,
            later,
          ),
        ],
        sorted,
      );
    }),
  );
});
