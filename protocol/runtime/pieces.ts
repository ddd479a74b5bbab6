/**
 * Reads long streams of bytes in large pieces, with a pause after each. A piece costs the same few turns of the event loop whatever its size,
 * and while one stream always has more, the runtime looks at no socket and no timer.
 */

/** A hash of so much takes some milliseconds. */
const PIECE_BYTES = 1024 * 1024;

/** Lets other work of this thread go first. */
export const pause = (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, 0));

/**
 * Each piece has `PIECE_BYTES`, the last one fewer. A piece is valid until the one after the next is asked for: two buffers serve the whole
 * stream. Ends with the stream; a reader that stops early cancels it. `free` has the buffers of an earlier stream whose pieces are not used
 * any more, and has those of this one at its end: the next stream can have them.
 */
export async function* pieces(
  stream: ReadableStream<Uint8Array>,
  free: ArrayBuffer[] = [],
): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void> {
  const reader = stream.getReader({ mode: "byob" });
  let isOver = false;
  try {
    for (;;) {
      const again = free.length > 1 ? free.shift() : undefined;
      const { value, done } = await reader.readAtLeast(PIECE_BYTES, new Uint8Array(again ?? new ArrayBuffer(PIECE_BYTES)));
      if (value !== undefined && value.length > 0) yield value;
      if (value !== undefined && value.buffer.byteLength === PIECE_BYTES) free.push(value.buffer);
      if (done || value === undefined || value.length < PIECE_BYTES) break;
      await pause();
    }
    isOver = true;
  } finally {
    if (!isOver) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}
