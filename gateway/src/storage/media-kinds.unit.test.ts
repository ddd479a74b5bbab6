/** What a file is: by its first bytes, and by its sender's word where the bytes do not tell. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  cleanFilename,
  isScalableImage,
  isShownImage,
  isTextLike,
  kindOf,
  normaliseType,
  sniff,
  typeOf,
  UNKNOWN_TYPE,
} from "./media-kinds.ts";

const ascii = (text: string): number[] => [...text].map((letter) => letter.charCodeAt(0));
const bytes = (...parts: readonly (string | number)[]): Uint8Array =>
  Uint8Array.from(parts.flatMap((part) => (typeof part === "string" ? ascii(part) : [part])));
const boxed = (brand: string): Uint8Array => bytes(0, 0, 0, 24, "ftyp", brand);
const bitmap = (length: number, header = 40, start = "BM"): Uint8Array => {
  const file = new Uint8Array(length);
  file.set(ascii(start));
  file[14] = header;
  return file;
};
const HEADS: readonly (readonly [Uint8Array, string | undefined])[] = [
  [bytes(0x89, "PNG", 13, 10, 26, 10), "image/png"],
  [bytes(0x89, "PNG", 13, 10, 26), undefined],
  [bytes(0xff, 0xd8, 0xff), "image/jpeg"],
  [bytes("GIF87a"), "image/gif"],
  [bytes("GIF89a"), "image/gif"],
  [bytes("GIF88a"), undefined],
  [bytes("RIFF", 0, 0, 0, 0, "WEBP"), "image/webp"],
  [bytes("RIFF", 0, 0, 0, 0, "WAVE"), "audio/wav"],
  [bytes("RIFF", 0, 0, 0, 0, "AVI "), undefined],
  [bytes("XXXX", 0, 0, 0, 0, "WEBP"), undefined],
  [bytes("%PDF-1.7"), "application/pdf"],
  [bytes("OggS"), "audio/ogg"],
  [bitmap(27), "image/bmp"],
  [bitmap(26), undefined],
  [bitmap(27, 12), undefined],
  [bitmap(27, 40, "XM"), undefined],
  [bytes("fLaC"), "audio/flac"],
  [bytes("ID3"), "audio/mpeg"],
  [bytes(0x1a, 0x45, 0xdf, 0xa3), "video/webm"],
  [bytes("II*", 0), "image/tiff"],
  [bytes("MM", 0, "*"), "image/tiff"],
  [boxed("heic"), "image/heic"],
  [boxed("mif1"), "image/heic"],
  [boxed("avif"), "image/avif"],
  [boxed("avis"), "image/avif"],
  [boxed("M4A "), "audio/mp4"],
  [boxed("qt  "), "video/quicktime"],
  [boxed("isom"), "video/mp4"],
  [bytes("hello"), undefined],
  [bytes(), undefined],
];

describe("[P5.6] the type of a file", () => {
  test("by its first bytes", () => {
    for (const [head, type] of HEADS) assert.equal(sniff(head), type, Buffer.from(head).toString("latin1"));
  });
  test("by the bytes where they tell, by the sender's word where they do not; an image and a PDF only by the bytes", () => {
    const [png, ogg, pdf, text] = [HEADS[0]?.[0], bytes("OggS"), bytes("%PDF-"), bytes("hello")];
    assert.ok(png);
    for (const [said, head, type] of [
      ["text/plain", png, "image/png"],
      ["image/jpeg", png, "image/png"],
      ["image/png", text, UNKNOWN_TYPE],
      ["image/svg+xml", bytes('<?xml version="1.0"?><svg '), "image/svg+xml"],
      ["image/svg+xml", text, UNKNOWN_TYPE],
      ["application/pdf", text, UNKNOWN_TYPE],
      ["application/pdf", pdf, "application/pdf"],
      ["text/plain", text, "text/plain"],
      // Containers have audio or video: the sender's word decides.
      ["audio/opus", ogg, "audio/opus"],
      ["video/ogg", ogg, "video/ogg"],
      ["text/plain", ogg, "audio/ogg"],
      ["audio/opus", pdf, "application/pdf"],
    ] as const)
      assert.equal(typeOf(said, head), type, said);
  });
  test("in one form, whatever the sender wrote", () => {
    assert.equal(normaliseType(" Image/JPG ; q=1"), "image/jpeg");
    for (const wrong of ["", "x", "a/b/c", "constructor", "-/x", `a/${"b".repeat(65)}`])
      assert.equal(normaliseType(wrong), UNKNOWN_TYPE, wrong);
    assert.equal(normaliseType(`a/${"b".repeat(64)}`), `a/${"b".repeat(64)}`);
  });
  test("says what is shown, scaled, heard or read", () => {
    for (const type of ["image/png", "image/jpeg", "image/gif", "image/webp"]) assert.ok(isShownImage(type) && isScalableImage(type), type);
    assert.ok(!isShownImage("image/bmp") && isScalableImage("image/bmp"));
    for (const type of ["image/svg+xml", "image/tiff", "text/plain"]) assert.ok(!isShownImage(type) && !isScalableImage(type), type);
    assert.deepEqual(["image/x", "audio/x", "video/x", "text/x"].map(kindOf), ["image", "audio", "video", "document"]);
    assert.ok(isTextLike("text/x", undefined) && isTextLike(UNKNOWN_TYPE, "a.md") && isTextLike("application/ld+json", undefined));
    for (const [type, name] of [
      ["image/png", "a.md"],
      ["audio/ogg", "a.md"],
      ["video/mp4", "a.md"],
      [UNKNOWN_TYPE, "a.bin"],
      [UNKNOWN_TYPE, undefined],
    ] as const)
      assert.ok(!isTextLike(type, name), `${type} ${name}`);
  });
  test("[S17] a name has no folders and nothing that hides", () => {
    assert.equal(cleanFilename("../a/b\\c\u202etxt.exe "), "ctxt.exe");
    assert.equal(cleanFilename("x".repeat(200))?.length, 128);
    for (const none of [undefined, "", " ", "a/", "\u200b"]) assert.equal(cleanFilename(none), undefined);
  });
});
