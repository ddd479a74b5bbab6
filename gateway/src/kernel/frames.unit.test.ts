import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ERRORS } from "../../../protocol/gen/errors.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { errorShape, eventBody, peekId, peekText, UNKNOWN_ID } from "./frames.ts";

const event = (payload: unknown): { readonly payload: Record<string, unknown> } => JSON.parse(`${eventBody("chat", payload)}}`);

describe("an event", () => {
  test("is sent as it is, with broken text as U+FFFD", () => {
    assert.equal(eventBody("chat", { a: 1 }), '{"type":"evt","event":"chat","payload":{"a":1}');
    assert.deepEqual(event({ a: "x\ud800", b: "\\ud800", c: "\u{1f600}" }).payload, { a: "x\ufffd", b: "\\ud800", c: "\u{1f600}" });
  });
  test("[P19] too large for a frame is sent without its content: numbers, switches and short texts stay", () => {
    const small = { seq: 1, final: true, runId: "r1", short: "x".repeat(1024) };
    const large = { ...small, long: "x".repeat(1025), list: [1], nested: { a: 1 }, nothing: null, content: "x".repeat(LIMITS.frameBytes) };
    assert.deepEqual(event(large).payload, small);
    const { message, ...rest } = event({ ...large, message: { role: "assistant", content: [] } }).payload;
    assert.deepEqual(rest, small);
    assert.match(JSON.stringify(message), /session\.preview/);
    assert.deepEqual(event("x".repeat(LIMITS.frameBytes)).payload, {});
  });
  test("fits with room for its number, in bytes and in depth", () => {
    const base = eventBody("chat", { text: "" }).length;
    const sizeOf = (length: number): number => eventBody("chat", { text: "x".repeat(length) }).length;
    const most = LIMITS.frameBytes - 65 - base;
    assert.equal(sizeOf(most), LIMITS.frameBytes - 65);
    assert.ok(sizeOf(most + 1) < 1000);
    const deep = (levels: number): unknown => JSON.parse(`{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`);
    assert.ok("a" in event(deep(LIMITS.frameDepth - 3)).payload);
    assert.ok(!("a" in event(deep(LIMITS.frameDepth - 2)).payload));
  });
});

describe("an error", () => {
  test("has its reason's code and advice unless it brings advice of its own", () => {
    const { code, hint } = ERRORS["auth.forbidden"];
    assert.deepEqual(errorShape({ reason: "auth.forbidden", message: "m" }), { code, reason: "auth.forbidden", message: "m", hint });
    assert.equal(errorShape({ reason: "auth.forbidden", message: "m", hint: "h" }).hint, "h");
    assert.deepEqual(errorShape({ reason: "auth.forbidden", message: "m", details: { a: 1 } }).details, { a: 1 });
  });
  test("of an unknown reason is internal", () => {
    const { code, reason } = errorShape({ reason: "toString" as "internal", message: "m" });
    assert.deepEqual([code, reason], [ERRORS.internal.code, "internal"]);
  });
  test("says whether another try helps", () => {
    for (const [reason, { retryable }] of Object.entries(ERRORS)) {
      const shape = errorShape({ reason: reason as keyof typeof ERRORS, message: "m" });
      assert.equal(shape.retryable, retryable ? true : undefined, reason);
      assert.equal("retryable" in shape, retryable, reason);
    }
  });
});

describe("[FR1] the id of a frame that can't be read", () => {
  for (const [what, text, id] of [
    ["the first name", '{"id":"7","x', "7"],
    ["behind containers", '{"a":{"id":"9"},"b":[{"id":"9"}],"id" : "7"', "7"],
    ["behind a text with quotes", String.raw`{"a":"\"id\":\"9\"","b":"\\","id":"7"`, "7"],
    ["as a value, not a name", '{"a":"id","b":"7"', UNKNOWN_ID],
    ["as a value in front of another value", '{"x":"id","7"', UNKNOWN_ID],
    ["of a name without a value", '{"id":1,"7"', UNKNOWN_ID],
    ["deeper", '{"a":{"id":"9"', UNKNOWN_ID],
    ["behind too many closings", '{}}"id":"7"', UNKNOWN_ID],
    ["in a list", '["id","7"]', UNKNOWN_ID],
    ["with an escape", String.raw`{"\u0069d":"7"`, "7"],
    ["with a broken escape", String.raw`{"id":"\x"`, UNKNOWN_ID],
    ["empty", '{"id":""', UNKNOWN_ID],
    ["not closed", '{"id":"7', UNKNOWN_ID],
    ["of 128 characters", `{"id":"${"\u{1f600}".repeat(128)}"`, "\u{1f600}".repeat(128)],
    ["of 129 characters", `{"id":"${"x".repeat(129)}"`, UNKNOWN_ID],
    ["far inside", `{"a":"${"x".repeat(70_000)}","id":"7"`, UNKNOWN_ID],
  ] as const)
    test(what, () => assert.equal(peekId(text), id));
  test("long names and values are skipped, and what follows them is read", () => {
    const text = (length: number): string => `{"${"n".repeat(length)}":1,"a":{"b":"${"v".repeat(length)}"}}`;
    assert.equal(peekText(text(1023), ["a", "b"]), "v".repeat(1023));
    assert.equal(peekText(text(1024), ["a", "b"]), undefined);
    assert.equal(peekText('{"a":{"x":{"b":"0"},"b":"1"}}', ["a", "b"]), "1");
    assert.equal(peekText('{"b":{"b":"0"},"a":{"b":"1"}}', ["a", "b"]), "1");
  });
});
