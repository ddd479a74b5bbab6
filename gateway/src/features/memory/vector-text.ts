/** Vectors as the database keeps them, in base64: D1 gives bytes as a list of numbers, which is several times longer. PURE. */
import type { Vector } from "../../ports/embeddings.ts";
import { decodeBase64, encodeBase64 } from "../../storage/base64.ts";

const SCALE_BYTES = 8;

/** The scale, then the numbers. */
export function packed({ bytes, scale }: Vector): string {
  const all = new Uint8Array(SCALE_BYTES + bytes.length);
  new DataView(all.buffer).setFloat64(0, scale, true);
  all.set(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength), SCALE_BYTES);
  return encodeBase64(all);
}
/** Undefined: the text is damaged. */
export function unpacked(text: string): Vector | undefined {
  const all = decodeBase64(text);
  if (all === undefined || all.length <= SCALE_BYTES) return undefined;
  return { scale: new DataView(all.buffer).getFloat64(0, true), bytes: new Int8Array(all.buffer.slice(SCALE_BYTES)) };
}
