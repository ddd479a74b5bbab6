import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CHUNK_HEADER_BYTES, readChunkId, writeChunkId } from "../runtime/chunk.ts";

test("[P19] a binary message is a little-endian id and its chunk", () => {
  const message = Uint8Array.of(0, 0, 0, 0, 9, 8);
  writeChunkId(message, 0x01020304);
  assert.deepEqual([...message], [4, 3, 2, 1, 9, 8]);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 0xffffffff }), (id) => {
      writeChunkId(message, id);
      assert.equal(readChunkId(message), id);
      assert.deepEqual([...message.subarray(CHUNK_HEADER_BYTES)], [9, 8]);
    }),
  );
});

test("[P19] an id is read from the middle of a larger buffer, and a torn header has none", () => {
  const whole = Uint8Array.of(0, 0, 0, 5, 0, 0, 0, 7);
  assert.equal(readChunkId(whole.subarray(3)), 5);
  for (let bytes = 0; bytes < CHUNK_HEADER_BYTES; bytes++) assert.equal(readChunkId(new Uint8Array(bytes)), undefined);
});
