import assert from "node:assert/strict";
import { test } from "node:test";
import { WantedThoughts } from "./wanted-thoughts.ts";

test("[CT13] only the runs that were asked about are wanted, and the oldest of too many are forgotten", () => {
  const wanted = new WantedThoughts();
  assert.equal(wanted.has("a"), false);
  wanted.add("a");
  for (let at = 0; at < 63; at++) wanted.add(`r${at}`);
  assert.equal(wanted.has("a"), true);
  wanted.add("a");
  wanted.add("b");
  assert.deepEqual(
    ["a", "b", "r0", "r1"].map((run) => wanted.has(run)),
    [true, true, false, true],
  );
});
