/** Generates random names and secrets. They must never be predictable or derived from input. */
import { toHex } from "../../../protocol/runtime/hex.ts";

const BASE32 = "abcdefghijklmnopqrstuvwxyz234567";

/** `length` characters of `[a-z2-7]`, five random bits each. */
export function randomName(length: number): string {
  const bytes = crypto.getRandomValues(new Uint8Array(length));
  let name = "";
  for (const byte of bytes) name += BASE32.charAt(byte & 31);
  return name;
}

/** `bytes` random bytes in hex. */
export const randomHex = (bytes: number): string => toHex(crypto.getRandomValues(new Uint8Array(bytes)));

export async function sha256Hex(text: string): Promise<string> {
  return toHex(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

/** Compares two texts of a known, equal length (digests) in constant time. */
export function sameDigest(left: string, right: string): boolean {
  if (left.length !== right.length) return false;
  let difference = 0;
  for (let at = 0; at < left.length; at++) difference |= left.charCodeAt(at) ^ right.charCodeAt(at);
  return difference === 0;
}
