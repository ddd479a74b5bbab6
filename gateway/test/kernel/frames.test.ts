import { reset } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import { asSessionKey } from "../../../protocol/gen/types.ts";
import { checkFrame } from "../../../protocol/gen/validators/checks.js";
import { type Asked, client, fakeSessions, node, type Peer, seed, until } from "../support/gateway.ts";

let asked: Asked[];
beforeEach(async () => {
  await reset();
  asked = fakeSessions().asked;
  await seed();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const alive = async (peer: Peer): Promise<void> => {
  await peer.ok("sessions.list");
  for (const frame of peer.frames) expect(checkFrame(frame)).toBe(true);
};
const deep = (levels: number): string => "[".repeat(levels) + "]".repeat(levels);

describe("[FR1] a bad frame is answered and the connection stays", () => {
  const cases: readonly (readonly [what: string, text: string, reason: string, id: string])[] = [
    ["not JSON", "hello", "protocol.invalid_json", "0"],
    ["empty", "", "protocol.invalid_json", "0"],
    ["broken off, the id first", '{"type":"req","id":"7","method":"sessions.list', "protocol.invalid_json", "7"],
    ["an array", "[1]", "protocol.invalid_frame", "0"],
    ["null", "null", "protocol.invalid_frame", "0"],
    ["no type", '{"id":"7"}', "protocol.invalid_frame", "7"],
    ["an unknown type", '{"type":"ask","id":"7"}', "protocol.unsupported", "7"],
    ["no method", '{"type":"req","id":"7"}', "protocol.invalid_frame", "7"],
    ["a number as id", '{"type":"req","id":7,"method":"sessions.list"}', "protocol.invalid_frame", "0"],
    ["an answer to nothing", '{"type":"res","id":"7","ok":true}', "protocol.unsupported", "7"],
    ["too deep", `{"type":"req","id":"7","method":"sessions.list","params":${deep(LIMITS.frameDepth)}}`, "protocol.too_deep", "7"],
    ["too large", `{"type":"req","id":"7","method":"sessions.list","x":"${"x".repeat(LIMITS.frameBytes)}"}`, "protocol.too_large", "7"],
    [
      "too large in UTF-8 only",
      `{"type":"req","id":"7","method":"sessions.list","x":"${"ü".repeat(LIMITS.frameBytes / 2)}"}`,
      "protocol.too_large",
      "7",
    ],
    ["an id inside another object", '{"a":{"id":"9"},"type":"req"', "protocol.invalid_json", "0"],
  ];
  for (const [what, text, reason, id] of cases) {
    test(what, async () => {
      const peer = await client();
      const before = peer.frames.length;
      peer.send(text);
      const frame = await until("an answer", () => peer.frames[before]);
      expect(frame).toMatchObject({ type: "res", id, ok: false, error: { reason } });
      await alive(peer);
    });
  }

  test("the limits are exact", async () => {
    const peer = await client();
    const frame = (padding: string): string => `{"type":"req","id":"x","method":"sessions.list","x":"${padding}"}`;
    const room = LIMITS.frameBytes - frame("").length;
    peer.send(frame("x".repeat(room)));
    expect(await peer.answer("x")).toMatchObject({ ok: true });
    const at = peer.frames.length;
    peer.send(frame("x".repeat(room + 1)));
    expect(await until("an answer", () => peer.frames[at])).toMatchObject({ ok: false, error: { reason: "protocol.too_large" } });
    peer.send(`{"type":"req","id":"y","method":"sessions.list","x":${deep(LIMITS.frameDepth - 1)}}`);
    expect(await peer.answer("y")).toMatchObject({ ok: true });
  });
});

test("[FR2][P21] unknown fields and events are ignored, unknown methods answered", async () => {
  const peer = await client();
  peer.send({ type: "evt", event: "of.the.future", payload: { a: 1 } });
  peer.send({ type: "req", id: "n", method: "sessions.list", params: { surprise: true }, more: 1 });
  expect(await peer.answer("n")).toMatchObject({ ok: true });
  for (const method of ["of.the.future", "constructor", "__proto__", "toString", "hasOwnProperty"])
    expect((await peer.refused(method)).reason, method).toBe("protocol.unknown_method");
  for (const method of ["logs.result", "tool.progress", "undo.report"])
    expect((await peer.refused(method)).reason, method).toBe("auth.forbidden");
  await alive(peer);
});

test("[FR3] a caller without access learns nothing about params; others get the problem without the values", async () => {
  const lap = await node("lap");
  expect(await lap.refused("config.set", { nonsense: 1 })).toMatchObject({ reason: "auth.forbidden" });
  const peer = await client();
  const error = await peer.refused("tokens.revoke", { tokenId: 12345 });
  expect(error.reason).toBe("protocol.invalid_params");
  expect(error.message).toContain("tokenId");
  expect(error.message).not.toContain("12345");
  expect((await peer.refused("chat.send", {})).reason).toBe("protocol.invalid_params");
  expect((await peer.refused("chat.send")).reason).toBe("protocol.invalid_params");
  expect(asked).toEqual([]);
});

test("[FR4] answers carry the request's id, for any id", async () => {
  const peer = await client();
  const ids = ["a", "ü😀", "x".repeat(128), '"\\', "0"];
  for (const id of ids) peer.send({ type: "req", id, method: "sessions.list" });
  for (const id of ids) expect((await peer.answer(id)).ok).toBe(true);
});

test("[FR5][X1] an unexpected binary frame is dropped; the connection stays", async () => {
  const peer = await client();
  const lap = await node("lap");
  for (const end of [peer, lap]) {
    end.socket.send(new Uint8Array([1, 0, 0, 0, 73, 78, 74]));
    end.socket.send(new Uint8Array(LIMITS.transferChunkBytes + 100));
  }
  await alive(peer);
  await lap.ok("tool.progress", { callId: "a/b/c/d", phase: "started" });
});

test("[FR6] ping is answered pong by the runtime", async () => {
  const peer = await client();
  peer.send("ping");
  await until("pong", () => peer.texts.includes("pong"));
});

test("[P19] a client over its rate gets an error, and its connection stays", async () => {
  const peer = await client();
  const last = `q${LIMITS.clientFramesPerMinute + 5}`;
  for (let at = 0; at < LIMITS.clientFramesPerMinute + 4; at++) peer.ask("session.unsubscribe", { sessionKey: "main" });
  await peer.answer(last);
  const refused = peer.frames.filter((frame) => frame.type === "res" && !frame.ok);
  expect(refused).toHaveLength(4);
  expect(refused[0]).toMatchObject({ error: { reason: "limit.rate", retryable: true } });
});

test("an answer that is too large for a frame becomes an error", async () => {
  vi.restoreAllMocks();
  fakeSessions((key) => ({
    preview: async () => ({
      ok: true,
      value: { sessionKey: asSessionKey(key), sessionId: "s", messageCount: 1, messages: ["x".repeat(LIMITS.frameBytes)] },
    }),
  }));
  const peer = await client();
  await peer.ok("chat.send", { sessionKey: "main", message: "hi" });
  expect(await peer.refused("session.preview", { sessionKey: "main" })).toMatchObject({ reason: "protocol.too_large" });
  await alive(peer);
});

test("a failing session gives an error, not a broken socket; safe requests are retried", async () => {
  vi.restoreAllMocks();
  let sends = 0;
  let resets = 0;
  fakeSessions(() => ({
    send: async (input) => {
      if (++sends === 1) throw new Error("the object was reset with key sk-ant-0123456789abcdef");
      return { ok: true, value: { status: "command", command: input.runId } };
    },
    reset: async () => {
      resets++;
      throw new Error("broken");
    },
  }));
  const log = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const errors = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const peer = await client();
  expect(await peer.ok("chat.send", { sessionKey: "main", message: "hi", runId: "r" })).toMatchObject({ status: "command", command: "r" });
  expect(sends).toBe(2);
  expect(await peer.refused("session.reset", { sessionKey: "main" })).toMatchObject({ reason: "internal", retryable: true });
  expect(resets).toBe(1);
  expect([...log.mock.calls, ...errors.mock.calls].flat().join(" ")).not.toContain("sk-ant");
  await alive(peer);
});
