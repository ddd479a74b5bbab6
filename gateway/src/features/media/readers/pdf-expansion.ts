/**
 * PDF.js unpacks a stream whole, so a small file could fill the memory. Here the streams are unpacked first, piece by piece, and only
 * counted; what cannot be counted is refused. Looks at the bytes of the file, because PDF.js offers no bound.
 */
import { Inflate } from "fflate";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import { tooMuch, Unreadable } from "./reading.ts";

const PIECE_BYTES = 16_384;
const ONE_STREAM_BYTES = LIMITS.documentExpandedBytes;
/** All compressed streams together; a real document of 200 pages with images stays far below. */
const ALL_STREAMS_BYTES = 4 * ONE_STREAM_BYTES;

/** Throws `Unreadable`. */
export function checkExpansion(bytes: Uint8Array): void {
  // One character for each byte.
  const raw = new TextDecoder("latin1").decode(bytes);
  if (
    /\/(?=[^/\s]*#)(?:E|#45)(?:n|#6[eE])(?:c|#63)(?:r|#72)(?:y|#79)(?:p|#70)(?:t|#74)(?![A-Za-z0-9])/.test(raw) ||
    hasName(raw, "Encrypt")
  )
    throw new Unreadable("It is encrypted, so it cannot be checked before it is read. Ask for a copy without protection.");
  let total = 0;
  const count = (size: number): void => {
    total += size;
    if (size > ONE_STREAM_BYTES || total > ALL_STREAMS_BYTES) throw tooMuch();
  };
  for (let at = raw.indexOf("stream"); at >= 0; at = raw.indexOf("stream", at + 6)) {
    if (raw.startsWith("end", at - 3)) continue;
    const start = afterLine(bytes, at + 6);
    if (isZlib(bytes, start)) count(expandedBytes(bytes.subarray(start), 2));
  }
  for (const { names, end } of chains(raw)) {
    const at = raw.indexOf("stream", end);
    if (at < 0) return;
    count(chainBytes(bytes.subarray(afterLine(bytes, at + 6)), names));
  }
}
const unescapedNames = (text: string): string =>
  text.replace(/#([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
const hasName = (text: string, name: string): boolean => new RegExp(`/${name}(?![A-Za-z0-9])`).test(text);
/** As PDF.js: whatever stands behind the keyword in its line is skipped. */
function afterLine(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== 10 && bytes[at] !== 13) at += 1;
  return bytes[at] === 13 && bytes[at + 1] === 10 ? at + 2 : at + 1;
}

/** Filters in other chains than a single Flate, which is looked for without them. */
function* chains(raw: string): Generator<{ readonly names: readonly string[]; readonly end: number }> {
  if (/\/(?=[^/\s]*#)(?:F|#46)(?:i|#69)(?:l|#6[cC])(?:t|#74)(?:e|#65)(?:r|#72)(?![A-Za-z0-9])/.test(raw)) throw notCountable();
  for (const match of raw.matchAll(/\/(Filter|F)\s*(\[[^\]]{0,512}\]|\/[\w#]{1,64}|\d{1,10}\s+\d{1,5}\s+R\b)/g)) {
    const value = unescapedNames(match[2] ?? "");
    if (match[1] === "Filter" && /%|\bR\b/.test(value)) throw notCountable();
    // Signatures have filters of another kind, and the short key has other uses. PDF.js does not unpack what it does not know.
    if (!FILTERS.test(value)) continue;
    const names = [...value.matchAll(/\/(\w+)/g)].map(([, name = ""]) => name);
    if (names.length === 0 || (names.length === 1 && /^(?:Fl|FlateDecode)$/.test(names[0] ?? ""))) continue;
    yield { names, end: match.index + match[0].length };
  }
}
const FILTERS = /\/(?:ASCIIHexDecode|AHx|ASCII85Decode|A85|LZWDecode|LZW|RunLengthDecode|RL|BrotliDecode|Crypt|FlateDecode|Fl)\b/;
const notCountable = (): Unreadable => new Unreadable("It is compressed in a way that cannot be checked before it is read.");

/** The size of what a chain of filters unpacks. Images at the end of a chain are not unpacked for their text. */
function chainBytes(packed: Uint8Array, names: readonly string[]): number {
  let data = packed;
  for (const [index, name] of names.entries()) {
    const isLast = index === names.length - 1;
    if (name === "ASCIIHexDecode" || name === "AHx") data = fromHex(upTo(data, 62));
    else if (name === "ASCII85Decode" || name === "A85") data = fromAscii85(upTo(data, 126));
    else if (/^(?:DCT|DCTDecode|JPX|JPXDecode|JBIG2Decode|CCF|CCITTFaxDecode)$/.test(name)) return 0;
    else if (/^(?:Fl|FlateDecode)$/.test(name)) {
      const next = names[index + 1];
      if (isLast || /^(?:Fl|FlateDecode|DCT|DCTDecode|JPX|JPXDecode)$/.test(next ?? "")) return isZlib(data) ? expandedBytes(data, 2) : 0;
      throw notCountable();
    } else if (isLast && /^(?:LZW|LZWDecode)$/.test(name)) return Math.max(lzwBytes(data, 0), lzwBytes(data, 1));
    else if (isLast && /^(?:RL|RunLengthDecode)$/.test(name)) return runLengthBytes(data);
    else throw notCountable();
  }
  return data.length;
}
const upTo = (data: Uint8Array, end: number): Uint8Array => {
  const at = data.indexOf(end);
  return at < 0 ? data : data.subarray(0, at + 1);
};
const isSpace = (sign: number): boolean => sign === 32 || (sign >= 9 && sign <= 13) || sign === 0;
function fromHex(packed: Uint8Array): Uint8Array {
  const out = new Uint8Array(packed.length >> 1);
  let size = 0;
  let first = -1;
  for (const sign of packed) {
    if (sign === 62) break;
    const digit = sign >= 48 && sign <= 57 ? sign - 48 : (sign | 32) >= 97 && (sign | 32) <= 102 ? (sign | 32) - 87 : -1;
    if (digit < 0) continue;
    if (first < 0) first = digit;
    else {
      out[size++] = first * 16 + digit;
      first = -1;
    }
  }
  return out.subarray(0, size);
}
function fromAscii85(packed: Uint8Array): Uint8Array {
  let zeros = 0;
  for (const sign of packed) if (sign === 122) zeros += 1;
  const out = new Uint8Array(packed.length + 4 * zeros + 4);
  let size = 0;
  let group: number[] = [];
  const flush = (): void => {
    const bytes = group.length - 1;
    let value = 0;
    for (let at = 0; at < 5; at++) value = value * 85 + (group[at] ?? 84);
    for (let at = 0; at < bytes; at++) out[size++] = Math.floor(value / 256 ** (3 - at)) & 255;
    group = [];
  };
  for (const sign of packed) {
    if (sign === 126) break;
    if (isSpace(sign)) continue;
    if (sign === 122 && group.length === 0) size += 4;
    else {
      group.push(sign - 33);
      if (group.length === 5) flush();
    }
  }
  if (group.length > 1) flush();
  return out.subarray(0, size);
}
/** Two bytes may become 128. */
function runLengthBytes(packed: Uint8Array): number {
  let size = 0;
  for (let at = 0; at < packed.length; ) {
    const length = packed[at] ?? 128;
    if (length === 128) break;
    size += length < 128 ? length + 1 : 257 - length;
    at += length < 128 ? length + 2 : 2;
  }
  return size;
}
/** Counts with the lengths of the entries alone. `early`: widths grow one code earlier, which is the default. */
function lzwBytes(packed: Uint8Array, early: number): number {
  const lengths = new Uint16Array(4_097).fill(1, 0, 256);
  let [size, next, width, before, bits, held] = [0, 258, 9, 0, 0, 0];
  for (const byte of packed) {
    held = ((held << 8) | byte) & 0xffffff;
    bits += 8;
    if (bits < width) continue;
    bits -= width;
    const code = (held >>> bits) & ((1 << width) - 1);
    if (code === 257 || size > ONE_STREAM_BYTES) break;
    if (code === 256) {
      [next, width, before] = [258, 9, 0];
      continue;
    }
    const length = code < next ? (lengths[code] ?? 1) : before + 1;
    if (before > 0 && next < 4_096) lengths[next++] = before + 1;
    size += length;
    before = length;
    width = next + early >= 2_048 ? 12 : next + early >= 1_024 ? 11 : next + early >= 512 ? 10 : 9;
  }
  return size;
}

const isZlib = (bytes: Uint8Array, at = 0): boolean =>
  ((bytes[at] ?? 0) & 15) === 8 && (((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)) % 31 === 0;

/** The last block is unpacked: fflate keeps that to itself, and would collect everything that follows. */
function isDone(inflate: Inflate): boolean {
  const state: unknown = Reflect.get(inflate, "s");
  return typeof state === "object" && state !== null && Reflect.get(state, "f") === 1 && !Reflect.get(state, "l");
}
/** Stops counting above the limit. `depth`: how many layers of compression are looked into. */
function expandedBytes(packed: Uint8Array, depth: number): number {
  let size = 0;
  const inner: Uint8Array[] = [];
  let isInner = false;
  const inflate = new Inflate((chunk) => {
    if (size === 0 && depth > 1) isInner = isZlib(chunk);
    size += chunk.length;
    if (isInner) inner.push(chunk);
  });
  // Without the two bytes of the zlib header. A piece expands to at most a thousand times its size.
  let read = 2;
  for (; read < packed.length && size <= ONE_STREAM_BYTES && !isDone(inflate); read += PIECE_BYTES) {
    try {
      inflate.push(packed.subarray(read, read + PIECE_BYTES));
    } catch {
      // The end of the data, or damage: PDF.js reads no further either.
      break;
    }
  }
  // What is read without a result counts, too: many streams may begin in the same bytes.
  const counted = Math.max(size, read - 2 * PIECE_BYTES);
  if (!isInner || size > ONE_STREAM_BYTES) return counted;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of inner) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return Math.max(counted, expandedBytes(whole, depth - 1));
}
