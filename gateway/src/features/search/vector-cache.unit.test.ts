/** [LM11] The mirror of the vectors in memory finds exactly what a comparison with each vector finds, whatever was put and removed. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { seeded } from "../../../../test/seeded.ts";
import { shortened } from "../../embeddings/answer.ts";
import type { Vector } from "../../ports/embeddings.ts";
import { dots } from "./dots.ts";
import { cosine } from "./static-embeddings.ts";
import { VectorCache } from "./vector-cache.ts";

const SIZE = 192;
function vectorOf(random: () => number, like?: Vector): Vector {
  // As in the table, the first numbers are the largest.
  const numbers = Float64Array.from(
    { length: SIZE },
    (_, index) => (random() - 0.5) / (1 + index / 8) + (like?.bytes[index] ?? 0) / 127 / 2,
  );
  const vector = shortened(numbers);
  assert.ok(vector);
  return vector;
}

/** The types are those of the Workers runtime, which compiles nothing. */
const compiled: WebAssembly.Module = Reflect.construct(WebAssembly.Module, [readFileSync(join(import.meta.dirname, "dots.wasm"))]);
for (const [name, module] of [
  ["JavaScript", undefined],
  ["WebAssembly", compiled],
] as const)
  describe(`[LM11] the vectors in memory, compared in ${name}`, () => {
    test("random histories: the nearest are those of a plain comparison", () => {
      for (let seed = 0; seed < 20; seed++) {
        const random = seeded(seed);
        const cache = new VectorCache(SIZE, 2_000, module);
        const known = new Map<number, { readonly source: number; readonly vector: Vector }>();
        const query = vectorOf(random);
        for (let step = 0; step < 3_000; step++) {
          const doc = Math.floor(random() * 2_000);
          if (random() < 0.3) {
            cache.remove(doc);
            known.delete(doc);
          } else {
            const row = { source: doc % 7, vector: vectorOf(random, random() < 0.2 ? query : undefined) };
            cache.put(doc, row.source, row.vector);
            known.set(doc, row);
          }
        }
        assert.equal(cache.rows, known.size);
        for (let doc = 0; doc < 2_000; doc++) {
          const vector = known.get(doc)?.vector;
          assert.equal(cache.cosine(query, doc), vector && cosine(query, vector.bytes, vector.scale));
        }
        for (const [limit, least] of [
          [10, 0.3],
          [100, 0],
          [5_000, -1],
        ] as const) {
          const plain = [...known]
            .filter(([, { source }]) => source !== 3)
            .map(([id, { vector }]) => ({ id, cosine: cosine(query, vector.bytes, vector.scale) }))
            .filter(({ cosine: near }) => near > least)
            .sort((left, right) => right.cosine - left.cosine)
            .slice(0, limit);
          const found = cache.nearest(query, (source) => source !== 3, limit, least).best;
          assert.deepEqual(
            found.map(({ cosine: near }) => near.toFixed(9)),
            plain.map(({ cosine: near }) => near.toFixed(9)),
            `seed ${seed}, ${limit}`,
          );
        }
        // Right after a search, and after changes that follow it.
        for (let step = 0; step < 100; step++) {
          const doc = Math.floor(random() * 2_000);
          const expected = known.get(doc)?.vector;
          assert.equal(cache.cosine(query, doc), expected && cosine(query, expected.bytes, expected.scale));
          if (step < 40 || step % 3 > 0) continue;
          const vector = vectorOf(random);
          if (step % 2 === 0) {
            cache.remove(doc);
            known.delete(doc);
          } else if (cache.put(doc, 1, vector)) known.set(doc, { source: 1, vector });
          if (step === 72) cache.nearest(query, () => true, 10, 0);
          const changed = known.get(doc)?.vector;
          assert.equal(cache.cosine(query, doc), changed && cosine(query, changed.bytes, changed.scale));
        }
      }
    });
    test("the memory is taken once: a vector without a place is not put, and one in the place of another is", () => {
      const cache = new VectorCache(SIZE, 2, module);
      const random = seeded(1);
      assert.deepEqual(
        [1, 2, 3, 2].map((doc) => cache.put(doc, 1, vectorOf(random))),
        [true, true, false, true],
      );
      assert.deepEqual([cache.rows, cache.cosine(vectorOf(random), 3)], [2, undefined]);
      cache.remove(1);
      assert.equal(cache.put(3, 1, vectorOf(random)), true);
    });
    test("a removed vector is in no byte of the memory", () => {
      const cache = new VectorCache(SIZE, 2, module);
      const random = seeded(1);
      const [one, two] = [vectorOf(random), vectorOf(random)];
      cache.put(1, 1, one);
      cache.put(2, 1, two);
      cache.remove(1);
      cache.remove(1);
      assert.deepEqual(
        cache.nearest(one, () => true, 10, -1).best.map(({ id }) => id),
        [2],
      );
      cache.remove(2);
      assert.deepEqual(cache.nearest(one, () => true, 10, -1).best, []);
    });
  });

test("[LM11] sums of the largest numbers do not overflow, and a size that WebAssembly does not take is compared in JavaScript", () => {
  for (const size of [16, 256, 1_536, 100]) {
    const [plain, fast] = [dots(size, 3), dots(size, 3, compiled)];
    const query = new Int8Array(size).fill(-127);
    for (const { bytes } of [plain, fast])
      bytes
        .fill(-127, 0, size)
        .fill(127, size, 2 * size)
        .fill(5, 2 * size);
    const of = (one: typeof plain): readonly number[] => [...one.of(query, 3)];
    assert.deepEqual(of(fast), of(plain));
    assert.equal(of(plain)[0], size * 127 * 127);
  }
});

test("[LM11] the committed WebAssembly is what its text says: plain sums for every size, at every address, and nothing else is written", () => {
  const random = seeded(7);
  const memory = new WebAssembly.Memory({ initial: 2 });
  const run = new WebAssembly.Instance(compiled, { env: { memory } }).exports["dots"] as (...numbers: readonly number[]) => void;
  const [bytes, view] = [new Int8Array(memory.buffer), new DataView(memory.buffer)];
  for (let size = 16; size <= 1_536; size += 16)
    for (let shift = 0; shift < 16; shift++) {
      const count = Math.floor(random() * 5);
      const rows = shift;
      const query = rows + 5 * size + ((size / 16 + shift * 3) % 16);
      const out = query + size + shift;
      const end = out + count * 4;
      for (let at = 0; at < end + 16; at++) bytes[at] = Math.floor(random() * 256) - 128;
      const before = bytes.slice(0, end + 16);
      run(rows, query, count, size, out);
      for (let row = 0; row < count; row++) {
        let sum = 0;
        for (let index = 0; index < size; index++) sum += (before[rows + row * size + index] ?? 0) * (before[query + index] ?? 0);
        assert.equal(view.getInt32(out + row * 4, true), sum, `size ${size}, address ${rows}`);
      }
      assert.deepEqual(bytes.slice(0, out), before.slice(0, out));
      assert.deepEqual(bytes.slice(end, end + 16), before.slice(end));
    }
});
