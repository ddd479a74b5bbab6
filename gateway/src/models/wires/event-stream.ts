/**
 * AWS's event stream: messages with a length, headers, a payload and checksums, in bytes that arrive in any pieces. Own code because the
 * AWS SDK's reader (`@smithy/core/event-streams`) allocates a message's declared length, up to 4 GiB, before its bytes have arrived.
 */

export interface EventMessage {
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Uint8Array;
}
/** The service's own limit for one message. */
const MAX_MESSAGE_BYTES = 24 * 1024 * 1024;
const PRELUDE_BYTES = 12;
const CRC_BYTES = 4;
/** Bytes of a header's value by its type; texts and bytes have a length before them. */
const VALUE_BYTES: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 };
const TEXT = 7;

/** Throws when the bytes are damaged or end inside of a message. */
export async function* eventMessages(body: AsyncIterable<Uint8Array>): AsyncGenerator<EventMessage> {
  let rest = new Uint8Array(0);
  for await (const piece of body) {
    const held: Uint8Array<ArrayBuffer> = new Uint8Array(rest.length + piece.length);
    held.set(rest);
    held.set(piece, rest.length);
    let at = 0;
    for (let size = sizeAt(held, at); size !== undefined && held.length - at >= size; size = sizeAt(held, at)) {
      yield readMessage(held.subarray(at, at + size));
      at += size;
    }
    rest = held.subarray(at);
  }
  if (rest.length > 0) throw new Error("the event stream ended inside of a message");
}
const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function sizeAt(bytes: Uint8Array, at: number): number | undefined {
  if (bytes.length - at < PRELUDE_BYTES) return undefined;
  const view = viewOf(bytes);
  const size = view.getUint32(at);
  if (size < PRELUDE_BYTES + CRC_BYTES || size > MAX_MESSAGE_BYTES) throw new Error("a message of a wrong size");
  if (view.getUint32(at + 8) !== crc32(bytes.subarray(at, at + 8))) throw new Error("a damaged message");
  return size;
}
function readMessage(bytes: Uint8Array): EventMessage {
  const view = viewOf(bytes);
  const end = bytes.length - CRC_BYTES;
  if (view.getUint32(end) !== crc32(bytes.subarray(0, end))) throw new Error("a damaged message");
  const payloadAt = PRELUDE_BYTES + view.getUint32(4);
  if (payloadAt > end) throw new Error("a message of a wrong size");
  const headers = new Map<string, string>();
  const text = (from: number, length: number): string => new TextDecoder().decode(bytes.subarray(from, from + length));
  for (let at = PRELUDE_BYTES; at < payloadAt; ) {
    const nameLength = view.getUint8(at);
    const name = text(at + 1, nameLength);
    const type = view.getUint8(at + 1 + nameLength);
    at += 2 + nameLength;
    const fixed = VALUE_BYTES[type];
    const length = fixed ?? view.getUint16(at);
    if (type === TEXT) headers.set(name, text(at + 2, length));
    at += fixed ?? length + 2;
  }
  return { headers, payload: bytes.subarray(payloadAt, end) };
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});
function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = (CRC_TABLE[(value ^ byte) & 255] ?? 0) ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}
