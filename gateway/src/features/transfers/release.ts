/** Memory of large buffers. Must not know what they contain. */

/**
 * Gives the memory of bytes back that are needed no more. The engine does it only with its next collection, and 60 MB of buffers without a
 * reference are no reason for one: a relay would keep all that it has passed on since the last. The whole buffer is empty afterwards.
 */
export function release(bytes: Uint8Array<ArrayBuffer>): void {
  bytes.buffer.transfer(0);
}
