/** Short ids that derive from longer ones, so that a retry gets the same id. PURE. */

const NONCE_CHARS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** 24 characters of `[0-9A-Za-z]`; each depends on every character of the id. */
export function nonceOf(partId: string): string {
  let out = "";
  for (let round = 0; round < 4; round++) {
    let a = 0x811c9dc5 ^ round;
    let b = 0x9e3779b9 + round;
    for (let at = 0; at < partId.length; at++) {
      a = Math.imul(a ^ partId.charCodeAt(at), 0x01000193) >>> 0;
      b = (Math.imul(b ^ partId.charCodeAt(at), 0x85ebca6b) ^ (b >>> 13) ^ a) >>> 0;
    }
    let mixed = BigInt(a) * 0x100000000n + BigInt(b);
    for (let n = 0; n < 6; n++, mixed /= 62n) out += NONCE_CHARS[Number(mixed % 62n)] ?? "0";
  }
  return out;
}

/** A part's id is its delivery's id and its number. */
export const deliveryOf = (partId: string): string => partId.replace(/\/\d+$/, "");
/** The nonce of the message that shows an answer while it is generated. */
export const liveNonce = (deliveryId: string): string => nonceOf(`live:${deliveryId}`);
