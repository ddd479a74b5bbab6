/** Encodes and strictly decodes base64 (RFC 4648, section 4). PURE; invalid base64 is refused, never repaired. */

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The decoded size, if the text is base64. */
export const decodedBytes = (text: string): number =>
  Math.floor((text.length / 4) * 3) - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);

/** Undefined when the text is not base64: no white space, no URL alphabet, correct padding, no stray bits at the end. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (text.length % 4 !== 0) return undefined;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  // The unused bits of the last character before the padding must be zero.
  const last = ALPHABET.indexOf(text.charAt(text.length - padding - 1));
  if (padding > 0 && (last < 0 || (last & (padding === 2 ? 15 : 3)) !== 0)) return undefined;
  for (let at = 0; at < text.length - padding; at++) if (!isDigit(text.charCodeAt(at))) return undefined;
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}
const isDigit = (unit: number): boolean =>
  (unit >= 97 && unit <= 122) || (unit >= 65 && unit <= 90) || (unit >= 48 && unit <= 57) || unit === 43 || unit === 47;

const CODES = Uint8Array.from(ALPHABET, (sign) => sign.charCodeAt(0));
const PAD = 61;
export function encodeBase64(bytes: Uint8Array): string {
  const out = new Uint8Array(Math.ceil(bytes.length / 3) * 4);
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 4) {
    const b = bytes[from + 1];
    const c = bytes[from + 2];
    const group = ((bytes[from] ?? 0) << 16) | ((b ?? 0) << 8) | (c ?? 0);
    out[to] = CODES[group >> 18] ?? PAD;
    out[to + 1] = CODES[(group >> 12) & 63] ?? PAD;
    out[to + 2] = b === undefined ? PAD : (CODES[(group >> 6) & 63] ?? PAD);
    out[to + 3] = c === undefined ? PAD : (CODES[group & 63] ?? PAD);
  }
  return new TextDecoder().decode(out);
}
