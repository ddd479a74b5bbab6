/** Small pure parts: ids in broken frames, which held events are news, failures by address, errors on the wire. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { checkFrame } from "../../../protocol/gen/validators/checks.js";
import { ERRORS } from "../../../protocol/gen/errors.ts";
import { asRunId, asSessionKey, type SessionSubscribeResult } from "../../../protocol/gen/types.ts";
import { isNewerThan } from "../features/sessions/follow.ts";
import { errorShape, eventBody, peekId, peekText } from "./frames.ts";
import { Admission } from "./admission.ts";
import { Connections } from "./connections.ts";
import type { Tokens } from "./token-store.ts";
import { addressGroup, FailureWindow, MAX_ADDRESSES } from "./limits.ts";
import { fail } from "./outcome.ts";

describe("[FR1] the id of a broken frame", () => {
  test("is found whatever else is in the frame", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), fc.object(), (id, params) => {
        const text = JSON.stringify({ type: "req", params, id, method: "x" });
        assert.equal(peekId(text), id);
        assert.equal(peekId(text.slice(0, -1)), id);
      }),
      { numRuns: 5000 },
    );
  });
  test("has at most 128 characters, however many units they have", () => {
    const [most, over] = ["\u{1f600}".repeat(128), "x".repeat(129)];
    assert.equal(peekId(JSON.stringify({ id: most })), most);
    assert.equal(peekId(JSON.stringify({ id: over })), "0");
  });
  test("is never a nested id, and no text causes an exception", () => {
    for (const text of [
      '{"params":{"id":"x"}}',
      '[{"id":"x"}]',
      '{"a":"id","b":"x"}',
      '{"id":5}',
      '{"id":""}',
      `{"id":"${"x".repeat(200)}"}`,
      '{"id":',
      '{"id',
      "",
      '"id":"x"',
    ])
      assert.equal(peekId(text), "0", text);
    fc.assert(
      fc.property(fc.string(), (text) => void peekId(text)),
      { numRuns: 20_000 },
    );
  });
  test("[F83] a long broken frame is read in one pass", { timeout: 30_000 }, () => {
    // With time squared in the length this would take hours.
    assert.equal(peekId(`{"a":"${'\\"'.repeat(2_000_000)}`), "0");
  });
});

test("[C5] of the held events only those that the answer does not contain are sent", () => {
  const past: SessionSubscribeResult = {
    sessionKey: asSessionKey("k"),
    seq: 5,
    events: [],
    runId: asRunId("r"),
    step: 2,
    attempt: 1,
    text: "abc",
  };
  const news = isNewerThan(past);
  const log = (sessionSeq: number): boolean => news({ event: "chat", payload: { sessionSeq } });
  const delta = (step: number, attempt: number, offset: number, runId = "r"): boolean =>
    news({ event: "chat", payload: { state: "delta", runId, step, attempt, offset } });
  assert.deepEqual([4, 5, 6].map(log), [false, false, true]);
  assert.deepEqual(
    [delta(2, 1, 0), delta(2, 1, 2), delta(2, 1, 3), delta(1, 9, 99), delta(2, 2, 0), delta(3, 0, 0), delta(2, 1, 0, "other")],
    [false, false, true, false, true, true, true],
  );
  assert.equal(news({ event: "tool.progress", payload: { phase: "output" } }), true);
});

test("[X6] [F13] [H9] sockets that are closing keep strangers out, and never a caller whose token vouches for it", () => {
  const tokens: Pick<Tokens, "configured" | "verify"> = { configured: () => true, verify: () => Promise.resolve(undefined) };
  const admission = new Admission({ tokens, now: () => 1, allowedOrigins: () => [] });
  const calm = {
    method: "GET",
    upgrade: "websocket",
    origin: null,
    vouched: false,
    closingSockets: 0,
    closingFromAddress: 0,
    address: "192.0.2.1",
    readySockets: 0,
  };
  const refused = (facts: Partial<typeof calm>): string | undefined => admission.upgradeRefusal({ ...calm, ...facts })?.reason;
  assert.equal(refused({}), undefined);
  assert.equal(refused({ closingSockets: LIMITS.unauthSockets }), "limit.sockets");
  assert.equal(refused({ closingFromAddress: LIMITS.unauthSocketsPerAddress }), "limit.sockets");
  // A part of the sockets is for addresses of which none is closing.
  const others = LIMITS.unauthSockets / 2;
  assert.equal(refused({ closingSockets: others }), undefined);
  assert.equal(refused({ closingSockets: others, closingFromAddress: 1 }), "limit.sockets");
  assert.equal(refused({ closingSockets: others, address: "" }), "limit.sockets");
  assert.equal(refused({ vouched: true, closingSockets: 1000, closingFromAddress: 1000 }), undefined);
  assert.equal(refused({ vouched: true, readySockets: LIMITS.authSockets }), "limit.sockets");
});

test("[X6] [F13] [H9] a flood of sockets without a hello never closes the only socket of another address", () => {
  const socket = (): WebSocket => ({ serializeAttachment: () => undefined }) as unknown as WebSocket;
  let now = 0;
  const connections = new Connections({ getWebSockets: () => [], acceptWebSocket: () => undefined } as never, { now: () => now });
  const other = connections.open(socket(), "192.0.2.1", false);
  for (let n = 0; connections.surplus("198.51.100.250") === undefined; n++) {
    now += 1;
    connections.open(socket(), `198.51.100.${n % 16}`, false);
  }
  const made = connections.surplus("198.51.100.250");
  assert.notEqual(made, other);
  assert.equal(made?.address, "198.51.100.0");
  // Its own address pays first, and where no address is known the oldest makes way.
  for (let n = 0; n < LIMITS.unauthSocketsPerAddress; n++) connections.open(socket(), "203.0.113.9", false);
  assert.equal(connections.surplus("203.0.113.9")?.address, "203.0.113.9");
  const nowhere = new Connections({ getWebSockets: () => [], acceptWebSocket: () => undefined } as never, { now: () => ++now });
  const first = nowhere.open(socket(), "", false);
  for (let n = 1; n < LIMITS.unauthSockets; n++) nowhere.open(socket(), "", false);
  assert.equal(nowhere.surplus(""), first);
});

test("[X6] [F13] the addresses of an IPv6 /64 count as one, and no others do", () => {
  const groups: readonly (readonly [string, string])[] = [
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2::1", "2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002:ffff:0:0:1", "2001:db8:1:2::/64"],
    ["2001:db8:1:3::1", "2001:db8:1:3::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["", ""],
  ];
  for (const [address, group] of groups) assert.equal(addressGroup(address), group, address);
});

test("[S4] failures are counted by address and minute", () => {
  const window = new FailureWindow(3);
  assert.deepEqual(
    [1, 2, 3, 4].map((at) => window.failed("a", at)),
    [false, false, false, true],
  );
  assert.equal(window.failed("b", 5), false);
  assert.equal(window.failed("a", 60_001), false);
  // A clock that is set back starts a new window.
  assert.equal(window.failed("a", 0), false);
});
test("[S4] [F80] only the newest addresses are counted", () => {
  const window = new FailureWindow(1);
  window.failed("old", 0);
  window.failed("newer", 0);
  for (let other = 0; other < MAX_ADDRESSES - 1; other++) window.failed(`x${other}`, 1);
  assert.equal(window.failed("newer", 2), true, "still counted");
  assert.equal(window.failed("old", 2), false, "it made way and starts again");
});

test("errors carry the contract's code and a hint; an unknown reason becomes internal", () => {
  assert.deepEqual(errorShape(fail("node.offline").error), {
    code: 480,
    reason: "node.offline",
    message: ERRORS["node.offline"].text,
    hint: ERRORS["node.offline"].hint,
    retryable: true,
  });
  assert.equal(errorShape(fail("node.offline", "The machine laptop is not connected.").error).hint, ERRORS["node.offline"].hint);
  assert.equal(errorShape(fail("node.offline", "The machine laptop is not connected.", "Start it.").error).hint, "Start it.");
  const foreign: unknown = JSON.parse('{"reason":"constructor","message":"x"}');
  assert.deepEqual(errorShape(foreign as Parameters<typeof errorShape>[0]), {
    code: 500,
    reason: "internal",
    message: "x",
    hint: ERRORS.internal.hint,
    retryable: true,
  });
});

test("[FR1] a text behind a value without a name is no value; long names and values are not read", () => {
  for (const text of ['{"id":1,"foo"', '{"id":1,"foo"}', '{"a":["id","b"],"c":1', '{"a":{"id":"b"}', '[{"id":"b"}]', '{"id"'])
    assert.equal(peekText(text, ["id"]), undefined, text);
  const long = (chars: number): string => "x".repeat(chars);
  assert.equal(peekText(`{"id":"${long(1023)}"`, ["id"]), long(1023));
  assert.equal(peekText(`{"id":"${long(1024)}"`, ["id"]), undefined);
  assert.equal(peekText(`{"${long(2000)}":1,"id":"a"}`, ["id"]), "a");
  assert.equal(peekText('{"params":{"id":"a","idempotencyKey":"k"}', ["params", "idempotencyKey"]), "k");
  assert.equal(peekText('{"other":{"idempotencyKey":"k"}}', ["params", "idempotencyKey"]), undefined);
});

describe("[FR1] event frames", () => {
  const frame = (payload: unknown): unknown => JSON.parse(`${eventBody("chat", payload)},"seq":7}`);
  test("are frames, whatever the payload", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (payload) => {
        assert.ok(checkFrame(frame(payload)));
        assert.deepEqual((frame(payload) as { payload: unknown }).payload, JSON.parse(JSON.stringify(payload)));
      }),
      { numRuns: 5000 },
    );
    assert.ok(eventBody("chat", { text: "\ud800" }).isWellFormed());
    assert.ok(!/\\ud8/.test(eventBody("chat", { text: "\ud800" })));
  });
  test("of an event that fits no frame numbers, flags and short texts stay, and nothing else", () => {
    const big = "ü".repeat(LIMITS.frameBytes);
    const kept = { n: 0, yes: true, no: false, empty: "", most: "x".repeat(1024) };
    const left = { tooLong: "x".repeat(1025), list: [1], object: { a: 1 }, nothing: null, big };
    assert.deepEqual((frame({ ...kept, ...left }) as { payload: unknown }).payload, kept);
    for (const payload of [big, [big], null]) assert.ok(checkFrame(frame(payload)));
    assert.deepEqual((frame([big]) as { payload: unknown }).payload, {});
    assert.deepEqual((frame(big) as { payload: unknown }).payload, {});
    assert.equal((frame(null) as { payload: unknown }).payload, null);
  });
  test("an event is shortened only when its bytes with its number do not fit", () => {
    const overhead = eventBody("chat", { text: "" }).length;
    const fits = (text: string): boolean => (frame({ text }) as { payload: { text?: string } }).payload.text === text;
    // Its number and the closing brace take up to 64 bytes.
    const most = LIMITS.frameBytes - 64 - overhead - 1;
    assert.deepEqual([fits("x".repeat(most)), fits("x".repeat(most + 1))], [true, false]);
    assert.deepEqual([fits("ü".repeat(most / 2)), fits("ü".repeat(most / 2 + 1))], [true, false]);
  });
  test("an event that fits no frame keeps its sender and time, and says where its text is", () => {
    const deep = JSON.parse(`${"[".repeat(LIMITS.frameDepth)}${"]".repeat(LIMITS.frameDepth)}`) as unknown;
    for (const payload of [
      {
        runId: "r",
        state: "final",
        sessionSeq: 5,
        message: { role: "assistant", content: [{ type: "text", text: "ü".repeat(LIMITS.frameBytes) }] },
      },
      { runId: "r", state: "final", sessionSeq: 5, message: deep },
    ]) {
      const text = `${eventBody("chat", payload)},"seq":7}`;
      assert.ok(text.length < 1024);
      assert.deepEqual((JSON.parse(text) as { payload: { runId: string; sessionSeq: number } }).payload.sessionSeq, 5);
      assert.ok(text.includes("session.preview"));
    }
  });
});
