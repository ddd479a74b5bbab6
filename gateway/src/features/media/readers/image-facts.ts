/**
 * Reads sizes and flags from the headers of image files, and cuts the first frame out of a GIF. PURE. Never decodes pixels; for bytes
 * that are not the expected format the answer is undefined.
 */

export interface ImageFacts {
  readonly width: number;
  readonly height: number;
  /** EXIF orientation: 1 is upright, 2 to 8 are flipped or turned. */
  readonly orientation: number;
}
const be16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
const le16 = (bytes: Uint8Array, at: number): number => (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
const le24 = (bytes: Uint8Array, at: number): number => le16(bytes, at) | ((bytes[at + 2] ?? 0) << 16);
const be32 = (bytes: Uint8Array, at: number): number => be16(bytes, at) * 65_536 + be16(bytes, at + 2);
const le32 = (bytes: Uint8Array, at: number): number => le16(bytes, at) + le16(bytes, at + 2) * 65_536;
const ascii = (bytes: Uint8Array, at: number, length: number): string => String.fromCharCode(...bytes.subarray(at, at + length));

export function imageFacts(bytes: Uint8Array): ImageFacts | undefined {
  const facts =
    ascii(bytes, 1, 3) === "PNG" ? png(bytes) : ascii(bytes, 0, 3) === "GIF" ? gif(bytes) : (jpeg(bytes) ?? webp(bytes) ?? bmp(bytes));
  return facts !== undefined && facts.width > 0 && facts.height > 0 ? facts : undefined;
}
const upright = (width: number, height: number): ImageFacts => ({ width, height, orientation: 1 });
/** The header chunk comes first in every PNG. */
const png = (bytes: Uint8Array): ImageFacts | undefined =>
  bytes.length >= 24 && ascii(bytes, 12, 4) === "IHDR" ? upright(be32(bytes, 16), be32(bytes, 20)) : undefined;
/** The larger of the screen and of every frame, because decoders allocate frames that are larger than the screen. */
function gif(bytes: Uint8Array): ImageFacts | undefined {
  if (bytes.length < 10) return undefined;
  let [width, height] = [le16(bytes, 6), le16(bytes, 8)];
  for (const { at } of gifFrames(bytes)) {
    width = Math.max(width, le16(bytes, at + 5));
    height = Math.max(height, le16(bytes, at + 7));
  }
  return upright(width, height);
}
const bmp = (bytes: Uint8Array): ImageFacts | undefined =>
  ascii(bytes, 0, 2) === "BM" && bytes.length >= 26 ? upright(le32(bytes, 18), Math.abs(le32(bytes, 22) | 0)) : undefined;
function webp(bytes: Uint8Array): ImageFacts | undefined {
  if (ascii(bytes, 0, 4) !== "RIFF" || ascii(bytes, 8, 4) !== "WEBP" || bytes.length < 30) return undefined;
  switch (ascii(bytes, 12, 4)) {
    case "VP8X":
      return upright(le24(bytes, 24) + 1, le24(bytes, 27) + 1);
    case "VP8L": {
      const bits = le32(bytes, 21);
      return upright((bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1);
    }
    case "VP8 ":
      return upright(le16(bytes, 26) & 0x3fff, le16(bytes, 28) & 0x3fff);
    default:
      return undefined;
  }
}
/** Walks the markers up to the frame's header (ISO/IEC 10918-1, annex B). */
function jpeg(bytes: Uint8Array): ImageFacts | undefined {
  if (be16(bytes, 0) !== 0xffd8) return undefined;
  let orientation = 1;
  for (let at = 2; at + 9 < bytes.length; ) {
    if (bytes[at] !== 0xff) return undefined;
    const marker = bytes[at + 1] ?? 0;
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) return { width: be16(bytes, at + 7), height: be16(bytes, at + 5), orientation };
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker === 0xe1 && ascii(bytes, at + 4, 4) === "Exif")
      orientation = exifOrientation(bytes.subarray(at + 10, at + 2 + be16(bytes, at + 2)));
    // A length below 2 is wrong: the next round then reads the length itself, which is no marker.
    at += 2 + be16(bytes, at + 2);
  }
  return undefined;
}
const ORIENTATION_TAG = 0x0112;
function exifOrientation(tiff: Uint8Array): number {
  const isLittle = ascii(tiff, 0, 2) === "II";
  const u16 = isLittle ? le16 : be16;
  const start = (isLittle ? le32 : be32)(tiff, 4);
  const count = Math.min(u16(tiff, start), 256);
  for (let entry = 0; entry < count; entry++) {
    const at = start + 2 + 12 * entry;
    if (u16(tiff, at) !== ORIENTATION_TAG) continue;
    const value = u16(tiff, at + 8);
    return value >= 2 && value <= 8 ? value : 1;
  }
  return 1;
}

export interface Pixels {
  /** RGBA, row by row. */
  readonly pixels: Uint8Array;
  readonly width: number;
  readonly height: number;
}
/** The upright image of one with this EXIF orientation. */
export function turned({ pixels, width, height }: Pixels, orientation: number): Pixels {
  const isTurned = orientation >= 5;
  const out = { pixels: new Uint8Array(pixels.length), width: isTurned ? height : width, height: isTurned ? width : height };
  const from = new Uint32Array(pixels.buffer, pixels.byteOffset, width * height);
  const to = new Uint32Array(out.pixels.buffer);
  const isRight = orientation === 2 || orientation === 3 || orientation === 7 || orientation === 8;
  const isDown = orientation === 3 || orientation === 4 || orientation === 6 || orientation === 7;
  for (const at of to.keys()) {
    const [x, y] = [at % out.width, Math.floor(at / out.width)];
    const [column, row] = isTurned ? [y, x] : [x, y];
    const sourceX = isRight ? width - 1 - column : column;
    const sourceY = isDown ? height - 1 - row : row;
    to[at] = from[sourceY * width + sourceX] ?? 0;
  }
  return out;
}

/** Where each frame of a GIF begins (GIF89a specification), and where it ends: undefined when the file is damaged before that. */
function* gifFrames(bytes: Uint8Array): Generator<{ readonly at: number; readonly end: number | undefined }> {
  const tableBytes = (flags: number): number => ((flags & 0x80) === 0 ? 0 : 3 << ((flags & 7) + 1));
  const afterBlocks = (from: number): number | undefined => {
    let at = from;
    for (;;) {
      const size = bytes[at];
      if (size === undefined) return undefined;
      at += 1 + size;
      if (size === 0) return at;
    }
  };
  let at: number | undefined = 13 + tableBytes(bytes[10] ?? 0);
  while (at !== undefined) {
    const kind: number | undefined = bytes[at];
    if (kind === 0x21) {
      at = afterBlocks(at + 2);
      continue;
    }
    if (kind !== 0x2c) return;
    // The descriptor has ten bytes; its table and the code size come before the data.
    const end = afterBlocks(at + 10 + tableBytes(bytes[at + 9] ?? 0) + 1);
    yield { at, end };
    at = end;
  }
}
/**
 * The GIF with its first frame only, since providers refuse or misread animations. The same bytes when it has one frame; undefined when
 * the file is damaged before the end of that frame.
 */
export function firstFrame(bytes: Uint8Array): Uint8Array | undefined {
  const frames = gifFrames(bytes);
  const end = frames.next().value?.end;
  if (end === undefined) return undefined;
  if (frames.next().done === true) return bytes;
  const out = new Uint8Array(end + 1);
  out.set(bytes.subarray(0, end));
  out[end] = 0x3b;
  return out;
}
