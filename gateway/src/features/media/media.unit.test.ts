/** Tests the pure parts: base64, file types, names, the cache. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { decodeBase64, decodedBytes, encodeBase64 } from "../../storage/base64.ts";
import { MediaCache } from "./cache.ts";
import { cleanFilename, isShownImage, isTextLike, kindOf, normaliseType, sniff, typeOf, UNKNOWN_TYPE } from "../../storage/media-kinds.ts";
import { isOwnKey } from "../../storage/keys.ts";
import { isKeyOf, keyFor, uuidFor } from "../../storage/media-names.ts";

const bytesOf = (text: string): Uint8Array => Uint8Array.from(text, (sign) => sign.charCodeAt(0));
const PNG = bytesOf("\x89PNG\r\n\x1a\nrest");
const JPEG = bytesOf("\xff\xd8\xff\xe0rest");

describe("[P5.6] base64", () => {
  test("encoding agrees with another implementation and decodes to the same bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = encodeBase64(bytes);
        assert.equal(text, Buffer.from(bytes).toString("base64"));
        assert.deepEqual(Array.from(decodeBase64(text) ?? []), Array.from(bytes));
        assert.equal(decodedBytes(text), bytes.length);
      }),
    );
  });
  test("only the exact encoding of some bytes is accepted", () => {
    const near = fc.string({ unit: fc.constantFrom(..."ABQghw019+/=-_ \n"), maxLength: 12 });
    fc.assert(
      fc.property(near, (text) => {
        const bytes = decodeBase64(text);
        if (bytes === undefined) assert.notEqual(Buffer.from(text, "base64").toString("base64"), text);
        else assert.equal(encodeBase64(bytes), text);
      }),
      { numRuns: 2_000 },
    );
  });
  test("line breaks, data: prefixes, the URL alphabet, missing padding and stray bits are refused", () => {
    for (const text of ["aGk", "aGk=\n", "aG k=", "data:image/png;base64,aGk=", "_-8=", "aGl=", "====", "a===", "=aGk"])
      assert.equal(decodeBase64(text), undefined, text);
  });
});

describe("[P5.6] file types", () => {
  test("[X18] a false image type becomes the type of the bytes, or plain bytes", () => {
    assert.equal(typeOf("image/jpeg", PNG), "image/png");
    assert.equal(typeOf("image/png", JPEG), "image/jpeg");
    assert.equal(typeOf("image/png", bytesOf("<html><script>")), UNKNOWN_TYPE);
    assert.equal(typeOf("image/png", bytesOf("<svg onload=x>")), UNKNOWN_TYPE);
    assert.equal(typeOf("text/plain", PNG), "image/png");
    assert.equal(typeOf("application/pdf", bytesOf("MZ")), UNKNOWN_TYPE);
  });
  test("an SVG must look like an SVG and is never shown to a model", () => {
    assert.equal(typeOf("image/svg+xml", bytesOf('<?xml version="1.0"?>\n<svg xmlns="x">')), "image/svg+xml");
    assert.equal(typeOf("image/svg+xml", bytesOf("<html>")), UNKNOWN_TYPE);
    assert.ok(!isShownImage("image/svg+xml"));
  });
  test("containers for audio or video keep the sender's type", () => {
    const mp4 = bytesOf("\0\0\0\x18ftypisom");
    assert.equal(typeOf("audio/mp4", mp4), "audio/mp4");
    assert.equal(typeOf("video/mp4", mp4), "video/mp4");
    assert.equal(typeOf("application/octet-stream", mp4), "video/mp4");
    assert.equal(typeOf("audio/opus; codecs=opus", bytesOf("OggS")), "audio/opus");
    assert.equal(sniff(bytesOf("RIFF\0\0\0\0WEBPVP8 ")), "image/webp");
    assert.equal(sniff(bytesOf("RIFF\0\0\0\0WAVEfmt ")), "audio/wav");
  });
  test("types are normalised, and an invalid type becomes plain bytes", () => {
    assert.equal(normaliseType(" Image/JPG ; q=1"), "image/jpeg");
    for (const wrong of ["", "image", "image/", "/png", "text/html\r\nX: y", "a b/c", "image/png/x"])
      assert.equal(normaliseType(wrong), UNKNOWN_TYPE, wrong);
  });
  test("any input gives a normalised type, and an image type only by the bytes", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 40 }), fc.uint8Array({ maxLength: 40 }), (said, head) => {
        const type = typeOf(said, head);
        assert.equal(normaliseType(type), type);
        if (isShownImage(type)) assert.equal(sniff(head), type);
        assert.ok(["image", "audio", "video", "document"].includes(kindOf(type)));
      }),
    );
  });
  test("text files are recognised by type or by name", () => {
    assert.ok(isTextLike("text/markdown", undefined));
    assert.ok(isTextLike("application/vnd.api+json", undefined));
    assert.ok(isTextLike(UNKNOWN_TYPE, "main.rs"));
    assert.ok(isTextLike(UNKNOWN_TYPE, "Makefile"));
    assert.ok(!isTextLike(UNKNOWN_TYPE, "a.exe"));
    assert.ok(!isTextLike("image/svg+xml", "a.svg"));
    assert.ok(!isTextLike("audio/ogg", "a.txt"));
  });
  test("names lose folders, control and direction characters, and stay short", () => {
    assert.equal(cleanFilename("../../etc/passwd"), "passwd");
    assert.equal(cleanFilename("C:\\x\\y.png"), "y.png");
    assert.equal(cleanFilename("a\u202egnp.exe\n"), "agnp.exe");
    assert.equal(cleanFilename("\u0007"), undefined);
    assert.equal(Array.from(cleanFilename("🌍".repeat(300)) ?? "").length, 128);
  });
});

describe("[P5.6] names of stored files", () => {
  const SESSION = "agent:main:cli:dm:u";
  test("the same origin gives the same name, another origin another name", async () => {
    const a = await uuidFor(SESSION, { kind: "message", messageId: "m", index: 0 });
    assert.match(a, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(a, await uuidFor(SESSION, { kind: "message", messageId: "m", index: 0 }));
    const others = await Promise.all([
      uuidFor(SESSION, { kind: "message", messageId: "m", index: 1 }),
      uuidFor("agent:main:main", { kind: "message", messageId: "m", index: 0 }),
      uuidFor(SESSION, { kind: "result", callId: "m", index: 0 }),
      uuidFor(SESSION, { kind: "upload", id: "m" }),
      uuidFor(SESSION, { kind: "call", callId: "m", nodeId: "lap" }),
      uuidFor(SESSION, { kind: "call", callId: "m", nodeId: "other" }),
    ]);
    assert.equal(new Set([a, ...others]).size, 7);
  });
  test("[X18] a key belongs to a session only under its exact prefix", async () => {
    const key = await keyFor(SESSION, { kind: "call", callId: "c", nodeId: "lap" }, "image/png");
    assert.ok(isOwnKey(SESSION, key));
    assert.ok(await isKeyOf(SESSION, { kind: "call", callId: "c", nodeId: "lap" }, key));
    assert.ok(!(await isKeyOf(SESSION, { kind: "call", callId: "c", nodeId: "other" }, key)));
    assert.ok(!isOwnKey("agent:main:cli:dm:u2", key));
    assert.ok(!isOwnKey("agent:main:cli:dm", key));
    for (const wrong of [`media/${SESSION}/../x/a.png`, `media/${SESSION}/a.png/b`, `agents/main/USER.md`, `media/${SESSION}/`, ""])
      assert.ok(!isOwnKey(SESSION, wrong), wrong);
  });
});

describe("[P5.6] the cache", () => {
  test("keeps the most recently used entries within its byte limit", () => {
    const cache = new MediaCache(100);
    cache.set("a", "x".repeat(40));
    cache.set("b", "x".repeat(40));
    assert.equal(cache.get("a")?.length, 40);
    cache.set("c", "x".repeat(40));
    assert.equal(cache.get("b"), undefined);
    assert.ok(cache.get("a") !== undefined && cache.get("c") !== undefined);
    cache.set("d", "x".repeat(1_000));
    assert.equal(cache.get("d"), undefined);
    cache.delete("a");
    cache.delete("c");
    assert.equal(cache.bytes, 0);
  });
  test("never exceeds its limit for any input", () => {
    const step = fc.tuple(fc.constantFrom("a", "b", "c", "d"), fc.string({ maxLength: 60 }), fc.boolean());
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const cache = new MediaCache(80);
        for (const [key, text, put] of steps) {
          if (put) cache.set(key, text);
          else cache.get(key);
          assert.ok(cache.bytes <= 80 && cache.bytes >= 0);
        }
      }),
    );
  });
});
