import assert from "node:assert/strict";
import { test } from "node:test";
import { Slots } from "./slots.ts";

test("[HK8] [P19] slots are limited for each name and for all names, and a released slot is free again", () => {
  const slots = new Slots(2, 3);
  const first = slots.take("a");
  assert.ok(first && slots.take("a"));
  assert.equal(slots.take("a"), undefined, "both slots of this name are taken");
  assert.ok(slots.take("b"));
  assert.equal(slots.take("c"), undefined, "all slots are taken");
  first();
  assert.ok(slots.take("c"));
  assert.equal(slots.take("a"), undefined, "the released slot belongs to all names");
});
