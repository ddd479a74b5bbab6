/** The attacker's view of tool calls: nothing is lost, doubled, forged or left open, whatever nodes, clients and crashes do. */
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type Asked, ADMIN, client, fakeSessions, gateway, last, node, type Peer, seed, token, until } from "../../support/gateway.ts";
import { crash, later } from "./support.ts";
import { evict } from "../../support/evict.ts";

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

async function refOf(sessionKey: string): Promise<string> {
  await admin.ok("chat.send", { sessionKey, message: "hi" });
  return last<{ identity: { ref: string } }>(sessions.of("send")).identity.ref;
}
const dispatched = (callId: string, nodeId = "lap") =>
  gateway().dispatchTool({ callId, sessionKey: "agent:main:main", nodeId, tool: "Bash", args: {}, timeoutMs: 1000 });
const callIdOf = async (peer: Peer, at = 0): Promise<string> =>
  ((await until("the call", () => peer.events("tool.invoke")[at])).payload as { callId: string }).callId;
const told = (): unknown[] => sessions.of("nodeChanged").map(({ args }) => args[0]);

describe("[T4] [G3] a machine without a ledger connects again before its old link was seen to break", () => {
  test("a session hears that the link broke, then that the machine is there", async () => {
    await node("lap", ADMIN, {});
    const ref = await refOf("main");
    await dispatched(`${ref}/r1/1/0`);
    await node("lap", ADMIN, {});
    await until("both changes", () => told().length >= 2);
    expect(told()).toMatchObject([
      { nodeId: "lap", online: false },
      { nodeId: "lap", online: true },
    ]);
  });

  test("a client's read fails at once, and any other call waits in grace", async () => {
    const lap = await node("lap", ADMIN, {});
    const [read, bash] = [admin.ask("tool.invoke", { tool: "lap__Read" }), admin.ask("tool.invoke", { tool: "lap__Bash" })];
    await callIdOf(lap, 1);
    await node("lap", ADMIN, {});
    expect((await admin.answer(read)).error?.reason).toBe("node.offline");
    await later(LIMITS.nodeGraceMs + 1000);
    expect((await admin.answer(bash)).error?.reason).toBe("tool.outcome_unknown");
  });

  test("a log that is being read fails at once, also where the machine has a ledger", async () => {
    const lap = await node("lap");
    const id = admin.ask("logs.get");
    await lap.event("logs.get");
    await node("lap", ADMIN, { ledger: { calls: [] } });
    expect((await admin.answer(id)).error?.reason).toBe("node.offline");
  });
});

test("[G6] tool.request waits for a machine that is about to come back", async () => {
  await node("lap");
  await crash();
  const again = await client();
  const id = again.ask("tool.request", { callId: "c1", tool: "lap__Bash", args: {}, sessionKey: "main" });
  const lap = await node("lap");
  expect((await again.answer(id)).payload).toEqual({ status: "sent" });
  await lap.event("tool.invoke");
});

describe("[S3] [G1] what a machine may not claim", () => {
  test("a forged ledger gives a machine no say about calls of another machine", async () => {
    vi.restoreAllMocks();
    // The session says which of the claimed calls are open on that machine: none.
    sessions = fakeSessions(() => ({ nodeChanged: async () => [] }));
    const lap = await node("lap");
    const ref = await refOf("main");
    await dispatched(`${ref}/r1/1/0`);
    await callIdOf(lap);
    const evil = await node("evil", ADMIN, { ledger: { calls: [{ callId: `${ref}/r1/1/0`, state: "started" }] } });
    await evil.ok("tool.progress", { callId: `${ref}/r1/1/0`, phase: "output", chunk: "forged" });
    await lap.ok("tool.progress", { callId: `${ref}/r1/1/0`, phase: "output", chunk: "true" });
    await admin.event("tool.progress");
    expect(admin.events("tool.progress").map(({ payload }) => (payload as { chunk: string }).chunk)).toEqual(["true"]);
  });

  test("a machine's own reason is one that a machine can have", async () => {
    const lap = await node("lap");
    for (const [at, reason] of ["auth.required", "protocol.version", "limit.rate", "__proto__", "constructor", "toString"].entries()) {
      const id = admin.ask("tool.invoke", { tool: "lap__Bash" });
      await lap.ok("tool.result", { callId: await callIdOf(lap, at), error: "no", reason });
      expect((await admin.answer(id)).error, reason).toMatchObject({ reason: "tool.failed", message: "no" });
    }
  });

  test("ids with separators and names of objects reach no call", async () => {
    const lap = await node("lap");
    const id = admin.ask("tool.invoke", { tool: "lap__Bash", callId: "mine" });
    const callId = await callIdOf(lap);
    const forged = [
      "__proto__",
      "gw",
      "gw/",
      "gw//mine",
      `${callId}/`,
      `${callId}/0`,
      ` ${callId}`,
      callId.toUpperCase(),
      "constructor/a/b/0",
    ];
    for (const other of forged)
      expect(await lap.ok("tool.result", { callId: other, result: 1 }), other).toEqual({ ok: true, dropped: true });
    await lap.ok("tool.result", { callId, result: "true" });
    expect((await admin.answer(id)).payload).toEqual({ result: "true", callId: "mine" });
  });
});

test("[S3] a client can't read or end another token's call by its id", async () => {
  const lap = await node("lap");
  const other = await client((await token("client")).token);
  const id = admin.ask("tool.invoke", { tool: "lap__Bash", callId: "mine" });
  const callId = await callIdOf(lap);
  for (const name of [callId, "mine/", "../mine", "~mine", "__proto__"])
    expect((await other.refused("tool.invoke", { tool: "lap__Bash", callId: name })).reason, name).toBe("protocol.invalid_params");
  other.ask("tool.invoke", { tool: "lap__Bash", callId: "mine" });
  const theirs = await callIdOf(lap, 1);
  expect(theirs).not.toBe(callId);
  await lap.ok("tool.result", { callId: theirs, result: "theirs" });
  await lap.ok("tool.result", { callId, result: "mine" });
  expect((await admin.answer(id)).payload).toEqual({ result: "mine", callId: "mine" });
});

describe("[P12] [P6] a client's call and the death of the gateway", () => {
  test("asked again under its name after the restart: it runs once, and its result arrives once", async () => {
    const lap = await node("lap");
    admin.ask("tool.invoke", { tool: "lap__Bash", callId: "deploy" });
    const callId = await callIdOf(lap);
    await crash();
    const back = await client();
    const id = back.ask("tool.invoke", { tool: "lap__Bash", callId: "deploy" });
    const again = await node("lap", ADMIN, { ledger: { calls: [{ callId, state: "started" }] } });
    await back.ok("sessions.list");
    expect(again.events("tool.invoke")).toEqual([]);
    expect(await again.ok("tool.result", { callId, result: "deployed" })).toEqual({ ok: true });
    expect((await back.answer(id)).payload).toEqual({ result: "deployed", callId: "deploy" });
    expect(await again.ok("tool.result", { callId, result: "deployed" })).toEqual({ ok: true, dropped: true });
  });

  test("a record that can't be read stops neither the gateway nor other calls", async () => {
    const lap = await node("lap");
    const id = admin.ask("tool.invoke", { tool: "lap__Bash", callId: "good", timeoutMs: 600_000 });
    const callId = await callIdOf(lap);
    await runInDurableObject(gateway(), (_gateway, state) => {
      const insert = "INSERT INTO client_calls(id, token, node, due_at, record) VALUES(?, 't', ?, 1, ?)";
      state.storage.sql.exec(insert, "gw/t/native", null, '{"call":{"callId":"gw/t/nat');
      state.storage.sql.exec(insert, "gw/t/node", "lap", "{}");
      state.storage.sql.exec(insert, "gw/t/tag", "lap", '{"call":{"status":"dreaming"},"waiter":{"kind":"ghost"}}');
    });
    await evict(gateway(), { webSockets: "hibernate" });
    await later(1000);
    await admin.ok("sessions.list");
    lap.socket.close(1000);
    await admin.event("presence", ({ online }) => online === false);
    const back = await node("lap", ADMIN, { ledger: { calls: [{ callId, state: "started" }] } });
    await back.ok("tool.result", { callId, result: "done" });
    expect((await admin.answer(id)).payload).toEqual({ result: "done", callId: "good" });
    const left = await runInDurableObject(gateway(), (_gateway, state) => state.storage.sql.exec("SELECT id FROM client_calls").toArray());
    expect(left).toEqual([]);
  });
});

describe("[P19] exhaustion", () => {
  test("ten thousand calls of one token leave 64 open, and another token still gets through", async () => {
    const lap = await node("lap");
    for (let at = 0; at < 500; at++) admin.ask("tool.invoke", { tool: "lap__Bash" });
    await until("refusals", () => admin.frames.filter((frame) => frame.type === "res" && !frame.ok).length >= 430);
    expect(lap.events("tool.invoke").length).toBe(64);
    const other = await client((await token("client")).token);
    const id = other.ask("tool.invoke", { tool: "lap__Bash" });
    await lap.ok("tool.result", { callId: await callIdOf(lap, 64), result: "ok" });
    expect((await other.answer(id)).ok).toBe(true);
  });

  test("a ledger of thousands of forged calls leaves a session and its machine usable", async () => {
    const ref = await refOf("main");
    const calls = Array.from({ length: 512 }, (_, at) => ({ callId: `${ref}/r1/1/${at}`, state: "started" }));
    const evil = await node("evil", ADMIN, { ledger: { calls } });
    expect(await dispatched(`${ref}/r1/1/9999`, "evil")).toBe("sent");
    expect((await evil.event("tool.invoke")).payload).toMatchObject({ callId: `${ref}/r1/1/9999` });
    await admin.ok("sessions.list");
  });
});
