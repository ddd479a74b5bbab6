import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { imageFacts } from "./image-facts.ts";

const text = (letters: string): number[] => [...letters].map((letter) => letter.charCodeAt(0));
const be32 = (value: number): number[] => [value >>> 24, (value >>> 16) & 255, (value >>> 8) & 255, value & 255];
const be16 = (value: number): number[] => [value >>> 8, value & 255];
const le16 = (value: number): number[] => [value & 255, value >>> 8];
const le32 = (value: number): number[] => be32(value).toReversed();
const factsOf = (...bytes: readonly (readonly number[])[]) => imageFacts(Uint8Array.from(bytes.flat()));
/** One byte less is no image. */
function only(size: { width: number; height: number }, ...bytes: readonly (readonly number[])[]): void {
  const all = bytes.flat();
  assert.deepEqual(factsOf(all), { ...size, orientation: 1 });
  assert.equal(factsOf(all.slice(0, -1)), undefined);
}

describe("[TH16] the size of an image is read from its header, when that is whole", () => {
  test("PNG", () =>
    only(
      { width: 0x01020304, height: 0x05060708 },
      [137],
      text("PNG"),
      new Array(8).fill(0),
      text("IHDR"),
      be32(0x01020304),
      be32(0x05060708),
    ));
  test("PNG with another chunk first is none", () =>
    assert.equal(factsOf([137], text("PNG"), new Array(8).fill(0), text("gAMA"), be32(1), be32(1)), undefined));
  test("GIF", () => only({ width: 0x0102, height: 0x0304 }, text("GIF89a"), le16(0x0102), le16(0x0304)));
  test("BMP, also upside down", () => {
    only({ width: 300, height: 200 }, text("BM"), new Array(16).fill(0), le32(300), le32(200));
    assert.equal(factsOf(text("BM"), new Array(16).fill(0), le32(300), le32(-200 >>> 0))?.height, 200);
  });
  test("WebP of each form", () => {
    const head = (form: string): number[] => [...text("RIFF"), ...be32(0), ...text("WEBP"), ...text(form), ...new Array(4).fill(0)];
    only({ width: 0x010203 + 1, height: 0x040506 + 1 }, head("VP8X"), be32(0), [3, 2, 1], [6, 5, 4]);
    only({ width: 0x102, height: 0x304 }, head("VP8 "), new Array(6).fill(0), le16(0x102), le16(0x304));
    const lossless = le32((299 | (199 << 14)) >>> 0);
    assert.deepEqual(factsOf(head("VP8L"), [0x2f], lossless, new Array(5).fill(0)), { width: 300, height: 200, orientation: 1 });
    assert.equal(factsOf(head("ALPH"), new Array(10).fill(0)), undefined);
    const other = [...text("RIFF"), ...be32(0), ...text("AVI "), ...text("VP8X"), ...new Array(20).fill(1)];
    assert.equal(factsOf(other), undefined);
    assert.equal(factsOf([...text("LIST"), ...be32(0), ...text("WEBP"), ...text("VP8X"), ...new Array(20).fill(1)]), undefined);
  });
  test("no image has no width or no height", () => {
    assert.equal(factsOf(text("GIF89a"), le16(0), le16(5)), undefined);
    assert.equal(factsOf(text("GIF89a"), le16(5), le16(0)), undefined);
    assert.deepEqual(factsOf(text("GIF89a"), le16(1), le16(1)), { width: 1, height: 1, orientation: 1 });
  });
});

describe("[TH16] JPEG", () => {
  const start = [0xff, 0xd8];
  const frame = (marker = 0xc0): number[] => [0xff, marker, ...be16(11), 8, ...be16(100), ...be16(200), 1];
  const part = (marker: number, ...body: number[]): number[] => [0xff, marker, ...be16(body.length + 2), ...body];
  const upright = { width: 200, height: 100, orientation: 1 };
  test("the frame comes after any other parts and fill bytes", () => {
    assert.deepEqual(factsOf(start, frame()), upright);
    assert.deepEqual(factsOf(start, frame().slice(0, -1)), undefined);
    assert.deepEqual(factsOf(start, part(0xe0), part(0xfe, 1, 2, 3), [0xff], frame()), upright);
    assert.equal(factsOf(start, [0x00], frame()), undefined);
    for (const length of [0, 1]) assert.equal(factsOf(start, [0xff, 0xe0, ...be16(length)], frame(), frame()), undefined);
    for (const other of [
      [0, 0],
      [0xff, 0xd9],
      [0, 0xd8],
    ])
      assert.equal(factsOf(other, frame()), undefined);
  });
  test("each kind of frame counts, and no other part", () => {
    for (const marker of [0xc0, 0xc2, 0xcf]) assert.deepEqual(factsOf(start, frame(marker)), upright, marker.toString(16));
    for (const marker of [0xbf, 0xc4, 0xc8, 0xcc, 0xd0]) assert.equal(factsOf(start, frame(marker)), undefined, marker.toString(16));
  });
  const exif = (order: "II" | "MM", orientation: number, entries = 1): number[] => {
    const [u16, u32] = order === "II" ? [le16, le32] : [be16, be32];
    const entry = (tag: number, value: number): number[] => [...u16(tag), ...u16(3), ...u32(1), ...u16(value), 0, 0];
    const others = Array.from({ length: entries - 1 }, () => entry(0x0100, 9)).flat();
    const body = [...u16(entries), ...others, ...entry(0x0112, orientation)];
    return part(0xe1, ...text("Exif"), 0, 0, ...text(order), ...u16(42), ...u32(8), ...body);
  };
  test("its orientation is one of eight, in both byte orders, and the last of several facts", () => {
    for (const order of ["II", "MM"] as const)
      for (const [given, is] of [
        [0, 1],
        [1, 1],
        [2, 2],
        [6, 6],
        [8, 8],
        [9, 1],
      ] as const)
        assert.equal(factsOf(start, exif(order, given), frame())?.orientation, is, `${order} ${given}`);
    assert.equal(factsOf(start, exif("MM", 6, 3), frame())?.orientation, 6);
  });
  test("only the part for EXIF has an orientation", () => {
    const six = exif("MM", 6);
    assert.equal(factsOf(start, six.with(1, 0xe2), frame())?.orientation, 1);
    assert.equal(factsOf(start, six.with(4, 0x65), frame())?.orientation, 1);
  });
  test("an orientation behind the counted facts does not count", () => {
    const one = exif("MM", 6, 2);
    // The number of facts comes after the marker, the length, "Exif", two zeros, and eight bytes of the TIFF header.
    assert.deepEqual(one.slice(18, 20), [0, 2]);
    assert.equal(factsOf(start, one.with(19, 1), frame())?.orientation, 1);
  });
});
