/** Tool calls of sessions: where a call and its result go, what a broken link and a killed gateway mean for them. */
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { AuditListResult } from "../../../../protocol/gen/types.ts";
import type { ToolDispatch } from "../../../src/ports/dispatch.ts";
import type { RunContext } from "../../../src/ports/run-context.ts";
import { ADMIN, client, eventually, fakeSessions, gateway, last, node, type Peer, port, seed, until } from "../../support/gateway.ts";
import { crash, later } from "./support.ts";
import { evict } from "../../support/evict.ts";

let sessions: ReturnType<typeof fakeSessions>;
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

/** The ref of a session that has been spoken to: the call ids of a session begin with it. */
async function refOf(sessionKey: string): Promise<string> {
  await admin.ok("chat.send", { sessionKey, message: "hi" });
  return last<{ identity: { ref: string } }>(sessions.of("send")).identity.ref;
}

const call = (callId: string, more: Partial<ToolDispatch> = {}): ToolDispatch => ({
  callId,
  sessionKey: "agent:main:main",
  nodeId: "lap",
  tool: "Bash",
  args: { command: "date" },
  timeoutMs: 1000,
  ...more,
});

/** Names of the tools of the run context; undefined when one of them is of a connected machine. */
async function away(): Promise<readonly string[] | undefined> {
  const tools = (await port().runContext("agent:main:main", undefined))?.tools;
  return tools?.every(({ isAway }) => isAway) ? tools.map(({ definition }) => definition.name) : undefined;
}

describe("a session's calls", () => {
  test("[G2] reach the node that they name, and no other node", async () => {
    const [lap, box] = [await node("lap"), await node("box")];
    const ref = await refOf("main");
    expect(await gateway().dispatchTool(call(`${ref}/r1/1/0`))).toBe("sent");
    expect((await lap.event("tool.invoke")).payload).toEqual({
      callId: `${ref}/r1/1/0`,
      tool: "Bash",
      args: { command: "date" },
      sessionKey: "agent:main:main",
      timeoutMs: 1000,
    });
    expect(await gateway().dispatchTool(call(`${ref}/r1/1/1`, { nodeId: "nowhere" }))).toBe("offline");
    await box.ok("tool.progress", { callId: "x/y/z/0", phase: "started" });
    expect(box.events("tool.invoke")).toEqual([]);
  });

  test("[PO14] are not handed over when the machine has another sandbox than when they were decided", async () => {
    const nodeRuntime = { hostCapabilities: ["shell.exec"], toolCapabilities: {}, sandbox: { profile: "off", missing: "no tier holds" } };
    const lap = await node("lap", ADMIN, { nodeRuntime });
    const ref = await refOf("main");
    expect(await gateway().dispatchTool(call(`${ref}/r1/1/0`, { sandbox: "workspace" }))).toBe("changed");
    expect(await gateway().dispatchTool(call(`${ref}/r1/1/1`, { sandbox: "off" }))).toBe("sent");
    expect((await lap.event("tool.invoke")).payload).toMatchObject({ callId: `${ref}/r1/1/1` });
    expect(lap.events("tool.invoke").length).toBeLessThanOrEqual(1);
    const { entries } = await admin.ok<AuditListResult>("audit.list", { action: "tool.call" });
    expect(entries.find(({ detail }) => detail === `${ref}/r1/1/0`)).toMatchObject({ decision: "denied", rule: "sandbox.changed" });
  });

  test("[UN6] a call whose change can't be recorded has its outcome and its entry of the audit all the same", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const lap = await node("lap");
    const ref = await refOf("main");
    await runInDurableObject(gateway(), (_, { storage }) => {
      storage.sql.exec("CREATE TRIGGER full BEFORE INSERT ON changing_calls BEGIN SELECT RAISE(FAIL, 'database or disk is full'); END");
    });
    const callId = `${ref}/r1/1/0`;
    expect(await gateway().dispatchTool(call(callId, { tool: "Write", args: { path: "a", content: "b" } }))).toBe("sent");
    expect((await lap.event("tool.invoke")).payload).toMatchObject({ callId });
    await eventually(async () => {
      const { entries } = await admin.ok<AuditListResult>("audit.list", { action: "tool.call" });
      expect(entries.find(({ detail }) => detail === callId)).toMatchObject({ decision: "allowed" });
    });
  });

  test("[G1][W7] a result goes to the session whose ref it carries, with the node that sent it", async () => {
    const lap = await node("lap");
    const [one, two] = [await refOf("main"), await refOf("agent:main:cli:dm:b")];
    expect(one).not.toBe(two);
    expect(await lap.ok("tool.result", { callId: `${two}/r1/1/0`, result: "SECRET-OF-TWO", outcome: "ok" })).toEqual({ ok: true });
    const context = (await gateway().runContext("agent:main:cli:dm:b", undefined)) as RunContext | null;
    expect(sessions.of("toolResult")).toEqual([
      {
        key: "agent:main:cli:dm:b",
        what: "toolResult",
        // With what the gateway would say to a session that asks now.
        args: ["lap", { callId: `${two}/r1/1/0`, result: "SECRET-OF-TWO", outcome: "ok" }, context?.version],
      },
    ]);
  });

  test("[T6] a result of an unknown call is dropped, and the node is told", async () => {
    const lap = await node("lap");
    for (const callId of ["nosuchref2/r1/1/0", "gw/x/y", "call_0", "/", ""]) {
      const res = await lap.call("tool.result", { callId, result: 1 });
      if (callId !== "") expect(res.payload, callId).toEqual({ ok: true, dropped: true });
    }
    expect(sessions.of("toolResult")).toEqual([]);
  });

  test("[W6] the node keeps a result whose session can't be reached", async () => {
    vi.restoreAllMocks();
    vi.spyOn(console, "warn").mockImplementation(() => undefined);
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    let reachable = false;
    sessions = fakeSessions(() => ({
      toolResult: async () => {
        if (!reachable) throw new Error("broken");
        return { taken: "taken" };
      },
    }));
    const lap = await node("lap");
    const ref = await refOf("main");
    expect(await lap.refused("tool.result", { callId: `${ref}/r1/1/0`, result: 1 })).toMatchObject({ reason: "internal", retryable: true });
    reachable = true;
    expect(await lap.ok("tool.result", { callId: `${ref}/r1/1/0`, result: 1 })).toEqual({ ok: true });
  });

  test("[F77] [W6] the link of a call is watched until the session has its result", async () => {
    vi.restoreAllMocks();
    vi.spyOn(console, "warn").mockImplementation(() => undefined);
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    sessions = fakeSessions(() => ({
      toolResult: async () => {
        throw new Error("broken");
      },
    }));
    const lap = await node("lap");
    const ref = await refOf("main");
    await gateway().dispatchTool(call(`${ref}/r1/1/0`));
    expect((await lap.refused("tool.result", { callId: `${ref}/r1/1/0`, result: 1 })).reason).toBe("internal");
    lap.socket.close(1000, "gone with the result");
    await until("the session to hear", () => sessions.of("nodeChanged").length > 0);
    expect(sessions.of("nodeChanged")[0]?.args[0]).toMatchObject({ nodeId: "lap", online: false });
  });

  test("[T7] cancels reach the node", async () => {
    const lap = await node("lap");
    await gateway().cancelTools("lap", ["a/r1/1/0", "a/r1/1/1"], "stopped");
    await until("both", () => lap.events("tool.cancel").length === 2);
    expect(lap.events("tool.cancel")[0]?.payload).toEqual({ callId: "a/r1/1/0", reason: "stopped" });
    await gateway().cancelTools("nowhere", ["a/r1/1/0"], "stopped");
  });

  test("progress reaches the followers of the session, only for a call that was handed to this node", async () => {
    const [lap, box] = [await node("lap"), await node("box")];
    const ref = await refOf("main");
    await gateway().dispatchTool(call(`${ref}/r1/1/0`));
    await box.ok("tool.progress", { callId: `${ref}/r1/1/0`, phase: "output", chunk: "forged" });
    await lap.ok("tool.progress", { callId: `${ref}/r9/9/9`, phase: "output", chunk: "forged" });
    await lap.ok("tool.progress", { callId: `${ref}/r1/1/0`, phase: "output", chunk: "true" });
    expect((await admin.event("tool.progress")).payload).toEqual({
      callId: `${ref}/r1/1/0`,
      nodeId: "lap",
      phase: "output",
      chunk: "true",
      sessionKey: "agent:main:main",
    });
    expect(admin.events("tool.progress")).toHaveLength(1);
  });

  test("the end of a background process wakes its session", async () => {
    const lap = await node("lap");
    const ref = await refOf("main");
    const event = { eventId: "e1", sessionId: "p1", event: "finished", exitCode: 0 };
    expect(await lap.ok("node.exec.event", { ...event, callId: `${ref}/r1/1/0` })).toEqual({ ok: true });
    expect(sessions.of("execEvent")).toMatchObject([{ key: "agent:main:main", args: ["lap", event] }]);
    expect(await lap.ok("node.exec.event", event)).toEqual({ ok: true, dropped: true });
    expect(await lap.ok("node.exec.event", { ...event, callId: "gw/a/b" })).toEqual({ ok: true, dropped: true });
  });
});

describe("[G3][W5] a link that breaks", () => {
  test("only the sessions with calls on the node are told at once; clients see it", async () => {
    const lap = await node("lap");
    const ref = await refOf("main");
    await refOf("agent:main:cli:dm:b");
    await gateway().dispatchTool(call(`${ref}/r1/1/0`));
    await evict(gateway(), { webSockets: "hibernate" });
    lap.socket.close(1000, "lid closed");
    expect((await admin.event("presence", ({ online }) => online === false)).payload).toMatchObject({ nodeId: "lap", online: false });
    await until("the session to hear", () => sessions.of("nodeChanged").length > 0);
    expect(sessions.of("nodeChanged")).toMatchObject([{ key: "agent:main:main", args: [{ nodeId: "lap", online: false }] }]);
    expect(await gateway().dispatchTool(call(`${ref}/r1/1/1`))).toBe("offline");
  });

  test("a session whose call has ended is not told", async () => {
    const lap = await node("lap");
    const ref = await refOf("main");
    await gateway().dispatchTool(call(`${ref}/r1/1/0`));
    await lap.ok("tool.result", { callId: `${ref}/r1/1/0`, result: 1 });
    lap.socket.close(1000);
    await admin.event("presence", ({ online }) => online === false);
    expect(sessions.of("nodeChanged")).toEqual([]);
  });

  test("[T3] the node is back: the session is told what the node's ledger says about its calls", async () => {
    const lap = await node("lap");
    const ref = await refOf("main");
    await gateway().dispatchTool(call(`${ref}/r1/1/0`));
    lap.socket.close(1000);
    await until("offline", () => sessions.of("nodeChanged").length === 1);
    await evict(gateway(), { webSockets: "hibernate" });
    await node("lap", ADMIN, {
      ledger: {
        calls: [
          { callId: `${ref}/r1/1/0`, state: "started" },
          { callId: "elsewhere1/r1/1/0", state: "finished" },
        ],
      },
    });
    await until("online", () => sessions.of("nodeChanged").length === 2);
    expect(sessions.of("nodeChanged")[1]).toMatchObject({
      key: "agent:main:main",
      args: [{ nodeId: "lap", online: true, calls: [{ callId: `${ref}/r1/1/0`, state: "started" }] }],
    });
    // The call still runs there: the session is told of the next break as well.
    expect((await admin.ok<{ nodes: unknown[] }>("nodes.list")).nodes).toMatchObject([{ nodeId: "lap", online: true, ledger: true }]);
  });

  test("[K16] after the gateway lost its memory, the node's ledger alone tells the session", async () => {
    const ref = await refOf("main");
    await node("lap", ADMIN, { ledger: { calls: [{ callId: `${ref}/r1/1/0`, state: "finished" }] } });
    await until("online", () => sessions.of("nodeChanged").length === 1);
    expect(sessions.of("nodeChanged")[0]?.args[0]).toMatchObject({ online: true, calls: [{ state: "finished" }] });
  });

  test("[T4] a node without a ledger reports nothing about its calls", async () => {
    const lap = await node("lap", ADMIN, {});
    const ref = await refOf("main");
    await gateway().dispatchTool(call(`${ref}/r1/1/0`));
    lap.socket.close(1000);
    await until("offline", () => sessions.of("nodeChanged").length === 1);
    await node("lap", ADMIN, {});
    await until("online", () => sessions.of("nodeChanged").length === 2);
    expect(sessions.of("nodeChanged")[1]?.args[0]).toEqual({ nodeId: "lap", online: true });
  });

  test("[H4] a replaced connection: the session is told that the node is there, not that it left", async () => {
    await node("lap");
    const ref = await refOf("main");
    await gateway().dispatchTool(call(`${ref}/r1/1/0`));
    await node("lap", ADMIN, { ledger: { calls: [] } });
    await until("the change", () => sessions.of("nodeChanged").length > 0);
    expect(sessions.of("nodeChanged").map(({ args }) => args[0])).toEqual([{ nodeId: "lap", online: true, calls: [] }]);
  });

  test("[FR6][P12] a node that has calls out and stops pinging is cut off by the alarm", async () => {
    const lap = await node("lap");
    const ref = await refOf("main");
    lap.send("ping");
    await until("pong", () => lap.texts.includes("pong"));
    await gateway().dispatchTool(call(`${ref}/r1/1/0`));
    const at = await runInDurableObject(gateway(), (_gateway, state) => state.storage.getAlarm());
    expect((at ?? 0) - Date.now()).toBeLessThanOrEqual(LIMITS.pingIntervalMs * 3);
    await later(LIMITS.pingIntervalMs * 3 + 1000);
    expect((await lap.ended()).code).toBe(4008);
    await until("the session to hear", () => sessions.of("nodeChanged").length > 0);
    expect(await gateway().dispatchTool(call(`${ref}/r1/1/1`))).toBe("offline");
  });
});

describe("[P12] after the gateway was killed", () => {
  test("[G6] a machine that has not come back is not connected: lists and prompts say so, and only runs keep its tools", async () => {
    await node("lap");
    await crash();
    const admin = await client();
    const { tools } = await admin.ok<{ tools: { name: string }[] }>("tools.list");
    expect(tools.filter(({ name }) => name.startsWith("lap__"))).toEqual([]);
    const state = async (): Promise<unknown> => (await port().runContext("agent:main:main", undefined))?.nodes;
    expect(await state()).toMatchObject([{ nodeId: "lap", online: false, returning: true }]);
    const listed = await admin.ok<{ nodes: object[] }>("nodes.list");
    expect(listed.nodes).toMatchObject([{ nodeId: "lap", online: false, returning: true }]);
    await node("lap");
    expect(await state()).toMatchObject([{ nodeId: "lap", online: true }]);
    expect(JSON.stringify(await state())).not.toContain("returning");
  });
  test("[G6][K8] a machine that was connected is expected back: its tools stay, and a call waits for it", async () => {
    await node("lap");
    const ref = await refOf("main");
    await crash();
    const context = await port().runContext("agent:main:main", undefined);
    expect(context?.tools.map(({ definition }) => definition.name)).toEqual(["lap__Bash", "lap__Read"]);
    const sent = gateway().dispatchTool(call(`${ref}/r1/1/0`));
    const back = await node("lap");
    expect(await sent).toBe("sent");
    expect((await back.event("tool.invoke")).payload).toMatchObject({ callId: `${ref}/r1/1/0` });
    expect(await port().runContext("agent:main:main", context?.version), "another connection, another version").not.toBeNull();
  });

  const broken = ["agent:main:main", { nodeId: "lap", online: false, reason: "the gateway was started again" }];
  const told = (): unknown[] => sessions.of("nodeChanged").map(({ key, args }) => [key, args[0]]);
  test("[T4] active sessions are told that the link of a machine without a ledger broke, and again when it is back", async () => {
    await node("lap", ADMIN, {});
    await refOf("main");
    await crash();
    await port().runContext("agent:main:main", undefined);
    await until("the session to hear", () => told().length === 1);
    await node("lap", ADMIN, {});
    await until("the session to hear again", () => told().length === 2);
    expect(told()).toEqual([broken, ["agent:main:main", { nodeId: "lap", online: true }]]);
  });

  test("[T4] active sessions are told of the break also when the machine is back at once", async () => {
    await node("lap", ADMIN, {});
    await refOf("main");
    await crash();
    await node("lap", ADMIN, {});
    await until("the session to hear", () => told().length === 2);
    expect(told()).toEqual([broken, ["agent:main:main", { nodeId: "lap", online: true }]]);
  });

  test("a machine that does not come back counts as gone and stays gone", async () => {
    await node("lap");
    const ref = await refOf("main");
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      await crash();
      const watcher = await client();
      const sent = gateway().dispatchTool(call(`${ref}/r1/1/0`));
      await watcher.ok("sessions.list");
      await runInDurableObject(gateway(), () => vi.advanceTimersByTime(6000));
      expect(await sent).toBe("offline");
      expect((await watcher.event("presence")).payload).toMatchObject({ nodeId: "lap", online: false });
      expect(await away()).toEqual(["lap__Bash", "lap__Read"]);
    } finally {
      vi.useRealTimers();
    }
    await crash();
    expect(await away()).toEqual(["lap__Bash", "lap__Read"]);
    expect(await gateway().dispatchTool(call(`${ref}/r1/1/1`))).toBe("offline");
  });

  test("a machine that closed its link is not waited for", async () => {
    const lap = await node("lap");
    lap.socket.close(1000);
    await admin.event("presence", ({ online }) => online === false);
    await crash();
    expect(await gateway().dispatchTool(call("abcdefghij/r1/1/0"))).toBe("offline");
  });
});
