import assert from "node:assert/strict";
import { test } from "node:test";
import { BoundedCache } from "./bounded-cache.ts";

const keptOf = (cache: BoundedCache<{ readonly bytes: number }>): string =>
  ["a", "b", "c", "d"].filter((key) => cache.get(key) !== undefined).join("");

test("a cache holds exactly its bytes; one more makes the oldest go", () => {
  const cache = new BoundedCache(10, 100);
  cache.keep("a", { bytes: 40 });
  cache.keep("b", { bytes: 60 });
  assert.equal(keptOf(cache), "ab");
  cache.keep("c", { bytes: 1 });
  assert.equal(keptOf(cache), "bc");
  cache.keep("d", { bytes: 101 });
  assert.equal(keptOf(cache), "", "an entry that never fits is not kept");
});
test("a cache holds exactly its number of entries, the latest written", () => {
  const cache = new BoundedCache(2, 100);
  cache.keep("a", { bytes: 1 });
  cache.keep("b", { bytes: 1 });
  cache.keep("a", { bytes: 2 });
  cache.keep("c", { bytes: 1 });
  assert.equal(keptOf(cache), "ac");
  assert.deepEqual(cache.get("a"), { bytes: 2 });
});
