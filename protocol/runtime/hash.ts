/**
 * Hashes that tell texts apart; they resist no attacker. Stored names and ids contain them, so their values never change. PURE.
 */

/** Two 32-bit hashes of the text's UTF-16 units, both non-negative. The first is FNV-1a when there is no salt. */
export function hashPair(text: string, salt = 0): readonly [number, number] {
  let a = 0x811c9dc5 ^ salt;
  let b = 0x9e3779b9;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    a = Math.imul(a ^ unit, 0x01000193);
    b = Math.imul(b ^ unit, 0x85ebca6b) ^ (b >>> 13);
  }
  return [a >>> 0, b >>> 0];
}

/** A 32-bit hash in 8 hex digits. */
export const hex32 = (hash: number): string => hash.toString(16).padStart(8, "0");
