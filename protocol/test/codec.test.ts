/** The codec: sizes, nesting, broken input, and a round trip without changes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LIMITS } from "../gen/limits.ts";
import type { Frame } from "../gen/types.ts";
import { checkFrame } from "../gen/validators/index.ts";
import { decodeFrame, encodeFrame, nestsDeeper } from "../runtime/codec.ts";
import { utf8Bytes } from "../runtime/utf8.ts";

const request = (params: unknown): Frame => ({ type: "req", id: "1", method: "chat.send", params });
const refusal = (text: string): string => {
  const decoded = decodeFrame(text);
  return decoded.ok ? "accepted" : decoded.error.reason;
};
const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
const jsonDepth = (value: unknown): number =>
  typeof value !== "object" || value === null ? 0 : 1 + Math.max(0, ...Object.values(value).map(jsonDepth));

test("[P19] a frame of exactly the size limit passes, one byte more does not", () => {
  const shell = JSON.stringify(request(""));
  const fill = LIMITS.frameBytes - shell.length;
  for (const [character, bytes] of [
    ["x", 1],
    ["\u00e9", 2],
    ["\u20ac", 3],
    ["\u{1F600}", 4],
  ] as const) {
    const body = character.repeat(Math.floor(fill / bytes)) + "x".repeat(fill % bytes);
    const text = JSON.stringify(request(body));
    assert.equal(new TextEncoder().encode(text).byteLength, LIMITS.frameBytes);
    assert.equal(refusal(text), "accepted", character);
    assert.equal(refusal(JSON.stringify(request(`${body}x`))), "protocol.too_large", character);
    assert.equal(encodeFrame(request(body)).ok, true, character);
    const tooLong = encodeFrame(request(`${body}x`));
    assert.equal(tooLong.ok ? "" : tooLong.error.reason, "protocol.too_large", character);
  }
});

test("[P19] a smaller limit applies to senders without hello-ok", () => {
  const decoded = decodeFrame(JSON.stringify(request("x".repeat(LIMITS.unauthFrameBytes))), LIMITS.unauthFrameBytes);
  assert.equal(decoded.ok ? "" : decoded.error.reason, "protocol.too_large");
});

test("[P19] nesting of exactly the limit passes, one level more is refused, and no depth crashes the codec", () => {
  const at = (depth: number): string => `{"type":"evt","event":"x","payload":${nested(depth - 1)}}`;
  assert.equal(refusal(at(LIMITS.frameDepth)), "accepted");
  assert.equal(refusal(at(LIMITS.frameDepth + 1)), "protocol.too_deep");
  assert.equal(refusal("[".repeat(LIMITS.frameBytes)), "protocol.too_deep");
  assert.equal(refusal('{"a":'.repeat(200_000)), "protocol.too_deep");
});

test("brackets inside strings do not count as nesting", () => {
  const text = '\\"[[[[{{{{'.repeat(40);
  assert.equal(refusal(JSON.stringify({ type: "evt", event: "x", payload: text })), "accepted");
});

test("the depth of any JSON is counted exactly", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 8 }), (value) => {
      const depth = jsonDepth(value);
      const text = JSON.stringify(value);
      assert.equal(nestsDeeper(text, depth), false);
      if (depth > 0) assert.equal(nestsDeeper(text, depth - 1), true);
    }),
  );
});

test("the UTF-8 length equals the length that an encoder gives", () => {
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => assert.equal(utf8Bytes(text), new TextEncoder().encode(text).byteLength)));
  for (const text of ["", "abc", "é", "€", "😀", "a😀b€cé", "\ud800", "\ud800x\udc00", "x\udc00\ud800", "\udc00\udc00"])
    assert.equal(utf8Bytes(text), new TextEncoder().encode(text).byteLength, JSON.stringify(text));
});

test("each kind of broken input has its own reason", () => {
  assert.equal(refusal(""), "protocol.invalid_json");
  assert.equal(refusal('{"type":"req"'), "protocol.invalid_json");
  assert.equal(refusal("[]"), "protocol.invalid_frame");
  assert.equal(refusal("null"), "protocol.invalid_frame");
  assert.equal(refusal('{"type":"req","id":"1"}'), "protocol.invalid_frame");
  assert.equal(refusal('{"type":"req","id":"","method":"x"}'), "protocol.invalid_frame");
  assert.equal(refusal('{"type":"res","id":"1","ok":true,"error":null}'), "protocol.invalid_frame");
});

test("[P21] an unknown kind of frame has its own reason, so that the socket can stay open", () => {
  const decoded = decodeFrame('{"type":"sig","id":"7"}');
  assert.deepEqual(decoded, {
    ok: false,
    error: { reason: "protocol.unsupported", message: "this kind of frame is not supported here", id: "7" },
  });
});

test("a request that does not fit can be answered by its id", () => {
  const decoded = decodeFrame('{"type":"req","id":"7","method":5}');
  assert.deepEqual(decoded.ok ? null : decoded.error, {
    reason: "protocol.invalid_frame",
    message: "the frame does not fit the contract: method: expected a string of 1 to 64 characters, got a whole number",
    id: "7",
  });
});

test("[S5] no error repeats the input", () => {
  const secret = "hunter2-canary";
  for (const text of [
    `{"token":"${secret}"`,
    `{"type":"req","id":1,"method":"${secret}"}`,
    `{"type":"${secret}"}`,
    `"${secret}"`,
    `{"type":"req","id":"1","method":{"${secret}":1}}`,
  ]) {
    const decoded = decodeFrame(text);
    assert.ok(!decoded.ok, text);
    assert.ok(!decoded.error.message.includes(secret), decoded.error.message);
  }
});

const frames: fc.Arbitrary<Frame> = fc.oneof(
  fc.record(
    {
      type: fc.constant("req" as const),
      id: fc.string({ minLength: 1, maxLength: 32 }),
      method: fc.string({ minLength: 1, maxLength: 32 }),
      params: fc.jsonValue({ maxDepth: 4 }),
    },
    { requiredKeys: ["type", "id", "method"] },
  ),
  fc.record(
    {
      type: fc.constant("res" as const),
      id: fc.string({ minLength: 1, maxLength: 32 }),
      ok: fc.boolean(),
      payload: fc.jsonValue({ maxDepth: 4 }),
    },
    { requiredKeys: ["type", "id", "ok"] },
  ),
  fc.record(
    {
      type: fc.constant("evt" as const),
      event: fc.string({ minLength: 1, maxLength: 32 }),
      payload: fc.jsonValue({ maxDepth: 4 }),
      seq: fc.nat(),
    },
    { requiredKeys: ["type", "event"] },
  ),
);

test("a written frame is read unchanged", () => {
  fc.assert(
    fc.property(frames, (frame) => {
      const encoded = encodeFrame(frame);
      assert.ok(encoded.ok);
      assert.deepEqual(decodeFrame(encoded.text), { ok: true, frame: JSON.parse(JSON.stringify(frame)) });
    }),
  );
});

test("decoding any text returns a result and never throws", () => {
  const pieces = fc.array(
    fc.constantFrom("{", "}", "[", "]", '"', "\\", ":", ",", "type", '"type":"req"', '"id":"1"', "null", "1e999", "\ud800", " "),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        pieces.map((parts) => parts.join("")),
      ),
      (text) => {
        const decoded = decodeFrame(text);
        if (decoded.ok) assert.ok(checkFrame(decoded.frame));
      },
    ),
  );
});

test("broken surrogate pairs, which strict readers refuse, are repaired when a frame is written", () => {
  const encoded = encodeFrame(request({ "a\udc00": ["x\ud83d", "\ud83d\ude00", "\\ud83d"] }));
  assert.ok(encoded.ok);
  assert.deepEqual(JSON.parse(encoded.text), request({ "a\ufffd": ["x\ufffd", "\ud83d\ude00", "\\ud83d"] }));
});
