import assert from "node:assert/strict";
import { test } from "node:test";
import { readBody } from "./read-body.ts";

/** A stream of these pieces that counts what was asked of it. */
function streamOf(...pieces: readonly string[]) {
  const asked = { pieces: 0, cancelled: false };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const piece = pieces[asked.pieces];
        asked.pieces += 1;
        if (piece === undefined) controller.close();
        else controller.enqueue(new TextEncoder().encode(piece));
      },
      cancel() {
        asked.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { body, asked };
}
const textOf = (bytes: Uint8Array | undefined): string | undefined => bytes && new TextDecoder().decode(bytes);

test("a body is read whole and in order, up to exactly the limit", async () => {
  assert.equal(textOf(await readBody(streamOf("one ", "two ", "three").body, 13)), "one two three");
  assert.equal(textOf(await readBody(streamOf().body, 13)), "");
  assert.equal(textOf(await readBody(null, 13)), "");
});
test("a body that is larger is not read to its end, and its sender is told", async () => {
  const { body, asked } = streamOf("one ", "two ", "three", "four");
  assert.equal(await readBody(body, 12), undefined);
  assert.deepEqual(asked, { pieces: 3, cancelled: true });
});
