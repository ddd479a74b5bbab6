/**
 * Object keys as file paths, and back. A key reads the same on disk unless it would be unsafe or impossible there:
 *
 *   leading dot of a segment   `.env`  -> `%2Eenv`   (the disk service hides dotfiles; `..` would leave the folder)
 *   control characters         `a\nb`  -> `a%0Ab`
 *   empty segment              `a//b`  -> `a/%/b`
 *   percent before two hex     `a%20`  -> `a%2520`   (so that decoding is exact)
 *
 * `decodeSegment` is the exact inverse; a file name that no key encodes to is not an object (null). PURE.
 */

/** R2's own bound. */
const MAX_KEY_BYTES = 1024;
/** File systems allow 255 bytes a name; the disk service needs some of them for its temporary files. */
export const MAX_SEGMENT_BYTES = 200;

/** The folder of the parts of files on their way into the workspace. */
export const TRANSFERS: readonly string[] = ["transfers"];
export const isPart = (key: string): boolean => key.startsWith(`${TRANSFERS.join("/")}/`);

const encoder = new TextEncoder();
const HEX_PAIR = /^[0-9A-Fa-f]{2}/;

const escapeCode = (code: number): string => `%${code.toString(16).toUpperCase().padStart(2, "0")}`;

function encodeSegment(segment: string): string {
  if (segment === "") return "%";
  let out = "";
  for (let i = 0; i < segment.length; i++) {
    const code = segment.charCodeAt(i);
    const unsafe =
      code < 0x20 ||
      code === 0x7f ||
      (code === 0x2e && i === 0) ||
      (code === 0x25 && (segment.length === 1 || HEX_PAIR.test(segment.slice(i + 1))));
    out += unsafe ? escapeCode(code) : segment[i];
  }
  return out;
}

/** The segment that this file name stands for; null when no key has this name. */
export function decodeSegment(name: string): string | null {
  if (name === "%") return "";
  const segment = name.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return encodeSegment(segment) === name ? segment : null;
}

/** Why a key can't be stored, as a sentence; null when it can. */
export function keyProblem(key: string): string | null {
  if (key === "") return "The key is empty.";
  if (!key.isWellFormed()) return "The key is not valid Unicode.";
  if (encoder.encode(key).length > MAX_KEY_BYTES) return `The key is longer than ${MAX_KEY_BYTES} bytes.`;
  if (keyToNames(key).some((name) => encoder.encode(name).length > MAX_SEGMENT_BYTES)) {
    return `A part of the key is longer than a file name may be (${MAX_SEGMENT_BYTES} bytes).`;
  }
  return null;
}

/** File names from the bucket's folder down. */
export const keyToNames = (key: string): string[] => key.split("/").map(encodeSegment);

/** The same order as SQLite and R2: by UTF-8 bytes. UTF-16 differs from it only around surrogates. */
export function compareKeys(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}
const rank = (unit: number): number => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800);
