import assert from "node:assert/strict";
import { test } from "node:test";
import { release } from "./release.ts";

test("[TF15] memory that was passed on is given back at once, and with it every view of the buffer", () => {
  const whole = new Uint8Array(8);
  const view = whole.subarray(4);
  release(view);
  assert.deepEqual([whole.length, view.length, whole.buffer.byteLength], [0, 0, 0]);
});
