/** Nodes as the reference's published client makes them: without a ledger, and with results of any size in one frame. */
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type Asked, ADMIN, client, fakeSessions, gateway, last, node, type Peer, seed, until } from "../../support/gateway.ts";

let sessions: { readonly asked: Asked[]; of(what: string): Asked[] };
let admin: Peer;
beforeEach(async () => {
  await reset();
  sessions = fakeSessions();
  await seed();
  admin = await client();
});
afterEach(() => {
  vi.restoreAllMocks();
});

const callIdOf = async (peer: Peer, at = 0): Promise<string> =>
  ((await until("the call", () => peer.events("tool.invoke")[at])).payload as { callId: string }).callId;
async function sessionCall(nodeId: string): Promise<string> {
  await admin.ok("chat.send", { sessionKey: "main", message: "hi" });
  const { ref } = last<{ identity: { ref: string } }>(sessions.of("send")).identity;
  const callId = `${ref}/r1/1/0`;
  await gateway().dispatchTool({ callId, sessionKey: "agent:main:main", nodeId, tool: "Bash", args: {}, timeoutMs: 1000 });
  return callId;
}

describe("[F31] [T9] a result that does not fit a frame", () => {
  const SIZES = [LIMITS.frameBytes + 1, LIMITS.nodeResultBytes + 1];

  test("ends a client's call as too large, and the node may forget it", async () => {
    const lap = await node("lap", ADMIN, {});
    for (const [at, size] of SIZES.entries()) {
      const id = admin.ask("tool.invoke", { tool: "lap__Bash" });
      const callId = await callIdOf(lap, at);
      expect(await lap.ok("tool.result", { callId, result: "x".repeat(size) })).toEqual({ ok: true });
      expect((await admin.answer(id)).error).toMatchObject({ reason: "tool.too_large" });
    }
  });

  test("ends a session's call as too large", async () => {
    const lap = await node("lap", ADMIN, {});
    const callId = await sessionCall("lap");
    for (const size of SIZES) {
      expect(await lap.ok("tool.result", { callId, result: { stdout: 'say "x" '.repeat(size / 8) } })).toEqual({ ok: true });
      expect(sessions.of("toolResult").at(-1)?.args).toMatchObject([
        "lap",
        { callId, outcome: "error", reason: "tool.too_large", error: expect.stringContaining("too large") },
        expect.any(String),
      ]);
    }
  });

  test("ends its call also when its values are nested too deeply", async () => {
    const lap = await node("lap", ADMIN, {});
    const callId = await sessionCall("lap");
    const deep = `${"[".repeat(LIMITS.frameDepth)}1${"]".repeat(LIMITS.frameDepth)}`;
    lap.send(`{"type":"req","id":"deep","method":"tool.result","params":{"callId":"${callId}","result":${deep}}}`);
    expect((await lap.answer("deep")).payload).toEqual({ ok: true });
    expect(sessions.of("toolResult").at(-1)?.args).toMatchObject(["lap", { callId, reason: "tool.too_large" }, expect.any(String)]);
  });

  test("is taken whole when its size is that of images", async () => {
    const lap = await node("lap", ADMIN, {});
    const callId = await sessionCall("lap");
    const image = { type: "image", mimeType: "image/png", data: "A".repeat(4 * 1024 * 1024) };
    const result = { content: [{ type: "text", text: "a screenshot" }, image] };
    expect(await lap.ok("tool.result", { callId, result })).toEqual({ ok: true });
    expect(sessions.of("toolResult").at(-1)?.args[1]).toEqual({ callId, result });
  });

  test("ends its call with an unknown outcome when it is not valid", async () => {
    const lap = await node("lap", ADMIN, {});
    const id = admin.ask("tool.invoke", { tool: "lap__Bash" });
    const callId = await callIdOf(lap, 0);
    expect(await lap.ok("tool.result", { callId, outcome: "splendid", result: "done" })).toEqual({ ok: true });
    expect((await admin.answer(id)).error).toMatchObject({ reason: "tool.outcome_unknown" });
    const own = await sessionCall("lap");
    expect(await lap.ok("tool.result", { callId: own, result: "done", reason: 7 })).toEqual({ ok: true });
    expect(sessions.of("toolResult").at(-1)?.args).toMatchObject(["lap", { callId: own, outcome: "unknown" }, expect.any(String)]);
    expect((await lap.refused("tool.result", { outcome: "splendid" })).reason).toBe("protocol.invalid_params");
    expect((await admin.refused("tool.result", { callId, outcome: "splendid" })).reason).toBe("auth.forbidden");
  });

  test("is refused where it names no call, from a client, and for any other method", async () => {
    const lap = await node("lap", ADMIN, {});
    const large = "x".repeat(LIMITS.nodeResultBytes + 1);
    expect((await lap.refused("tool.result", { result: large })).reason).toBe("protocol.too_large");
    expect((await lap.refused("logs.result", { callId: "gw/a/b", lines: [large] })).reason).toBe("protocol.too_large");
    expect((await admin.refused("tool.result", { callId: "gw/a/b", result: large.slice(0, LIMITS.frameBytes + 1) })).reason).toBe(
      "protocol.too_large",
    );
    expect(await lap.ok("tool.result", { callId: "gw/a/b", result: large })).toEqual({ ok: true, dropped: true });
  });
});

describe("[F30] [G6] a call in the moment of hello-ok", () => {
  test("waits for a node without a ledger to listen, and reaches one with a ledger at once", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      const old = await node("old", ADMIN, {});
      const lap = await node("lap");
      const [slow, log, quick] = [
        admin.ask("tool.invoke", { tool: "old__Bash" }),
        admin.ask("logs.get", { nodeId: "old" }),
        admin.ask("tool.invoke", { tool: "lap__Bash" }),
      ];
      await lap.ok("tool.result", { callId: await callIdOf(lap), result: "quick" });
      expect((await admin.answer(quick)).payload).toMatchObject({ result: "quick" });
      expect(old.events()).toEqual([]);
      await runInDurableObject(gateway(), () => vi.advanceTimersByTime(300));
      await old.ok("tool.result", { callId: await callIdOf(old), result: "slow" });
      expect((await admin.answer(slow)).payload).toMatchObject({ result: "slow" });
      const { callId } = (await old.event("logs.get")).payload as { callId: string };
      await old.ok("logs.result", { callId, lines: [] });
      expect((await admin.answer(log)).ok).toBe(true);
    } finally {
      vi.useRealTimers();
    }
  });
});
