import assert from "node:assert/strict";
import { test } from "node:test";
import { DenialCounter } from "./audit-denials.ts";

const times = <T>(count: number, each: () => T): T[] => Array.from({ length: count }, each);

test("ten denials of an actor in a minute are entries, the rest is a number in its next entry", () => {
  const denials = new DenialCounter();
  assert.deepEqual(
    times(12, () => denials.count("a", 60_000)),
    [...times(10, () => 0), "drop", "drop"],
  );
  // The other actor has a count of its own, and the minute goes on to its end.
  assert.equal(denials.count("b", 60_000), 0);
  assert.equal(denials.count("a", 119_999), "drop");
  assert.equal(denials.count("a", 120_000), 3);
  assert.deepEqual(
    times(10, () => denials.count("a", 120_001)),
    [...times(9, () => 0), "drop"],
  );
});
test("as many actors are counted as fit; one more begins again, and one that is known does not", () => {
  const denials = new DenialCounter();
  for (let actor = 0; actor < 256; actor++) times(11, () => denials.count(`a${actor}`, 0));
  assert.equal(denials.count("a0", 60_000), 1);
  assert.equal(denials.count("a1", 60_000), 1);
  assert.equal(denials.count("new", 60_000), 0);
  assert.equal(denials.count("a2", 60_000), 0);
});
