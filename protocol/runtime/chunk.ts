/** The header of a chunk of a transfer in a binary message: the `transferId` of one attempt, a little-endian u32. PURE. */

export const CHUNK_HEADER_BYTES = 4;

const header = (message: Uint8Array): DataView => new DataView(message.buffer, message.byteOffset, CHUNK_HEADER_BYTES);

/** Undefined: the message is too short to have one. */
export const readChunkId = (message: Uint8Array): number | undefined =>
  message.byteLength < CHUNK_HEADER_BYTES ? undefined : header(message).getUint32(0, true);

/** Writes the id in front of the chunk, where the message has room for it. */
export const writeChunkId = (message: Uint8Array, id: number): void => header(message).setUint32(0, id, true);
