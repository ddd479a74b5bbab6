/**
 * Replaces `whatsapp-rust-bridge`, which has 830 KB of WebAssembly for four functions: the same bytes with node:crypto
 * (bridge.unit.test.ts compares them).
 */
import { createHash, hkdfSync } from "node:crypto";

export const md5 = (bytes: Uint8Array): Uint8Array => createHash("md5").update(bytes).digest();

export function hkdf(
  key: Uint8Array,
  length: number,
  { salt, info }: { readonly salt?: Uint8Array | null; readonly info?: string | null },
): Buffer {
  return Buffer.from(hkdfSync("sha256", key, salt ?? new Uint8Array(32), info ?? "", length));
}
export function expandAppStateKeys(key: Uint8Array): Record<string, Uint8Array> {
  const all = hkdf(key, 160, { info: "WhatsApp Mutation Keys" });
  return {
    indexKey: all.subarray(0, 32),
    valueEncryptionKey: all.subarray(32, 64),
    valueMacKey: all.subarray(64, 96),
    snapshotMacKey: all.subarray(96, 128),
    patchMacKey: all.subarray(128, 160),
  };
}
/** A hash over a set: 64 little-endian sums of 16 bits, so elements can be added and removed in any order. */
export class LTHashAntiTampering {
  subtractThenAdd(base: Uint8Array, subtract: readonly Uint8Array[], add: readonly Uint8Array[]): Uint8Array {
    const sum = new Uint8Array(base);
    const view = new DataView(sum.buffer);
    const mix = (element: Uint8Array, sign: 1 | -1): void => {
      const numbers = hkdf(element, 128, { info: "WhatsApp Patch Integrity" });
      for (let at = 0; at < 128; at += 2) view.setUint16(at, (view.getUint16(at, true) + sign * numbers.readUInt16LE(at)) & 0xffff, true);
    };
    for (const element of subtract) mix(element, -1);
    for (const element of add) mix(element, 1);
    return sum;
  }
}
