import assert from "node:assert/strict";
import { test } from "node:test";
import { once } from "../runtime/once.ts";

test("[M10] a part is loaded once, by the first call; one that could not be loaded is tried again with the next call", async () => {
  let [loads, isBroken] = [0, true];
  const load = once(async () => {
    loads++;
    if (isBroken) throw new Error("broken");
    return `load ${loads}`;
  });
  assert.equal(loads, 0);
  assert.deepEqual(
    (await Promise.allSettled([load(), load()])).map(({ status }) => status),
    ["rejected", "rejected"],
  );
  assert.equal(loads, 1);
  isBroken = false;
  assert.deepEqual(await Promise.all([load(), load()]), ["load 2", "load 2"]);
  assert.equal(await load(), "load 2");
});
