/** Machines: calls of sessions and of clients, links that break and come back, node logs. */
import { evictDurableObject, reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { planCall } from "../../../src/calls/open-call.ts";
import { CallStore } from "../../../src/features/nodes/call-store.ts";
import type { ToolDispatch } from "../../../src/ports/dispatch.ts";
import {
  type Asked,
  ADMIN,
  client,
  fakeSessions,
  gateway,
  last,
  node,
  type Peer,
  port,
  seed,
  token,
  until,
} from "../../support/gateway.ts";

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

/** A session's ref, as call ids carry it. */
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
/** The open calls of clients. */
const openCalls = (): Promise<Record<string, unknown>[]> =>
  runInDurableObject(gateway(), (_gateway, state) =>
    state.storage.sql
      .exec<{ record: string }>("SELECT record FROM client_calls ORDER BY id")
      .toArray()
      .map(({ record }) => (JSON.parse(record) as { call: Record<string, unknown> }).call),
  );
/** Moves the clock and lets the alarm go off. */
async function later(ms: number): Promise<void> {
  const now = vi.spyOn(Date, "now").mockReturnValue(Date.now() + ms);
  try {
    await runInDurableObject(gateway(), (object) => object.alarm());
  } finally {
    now.mockRestore();
  }
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

  test("[G1][W7] a result goes to the session whose ref it carries, with the node that sent it", async () => {
    const lap = await node("lap");
    const [one, two] = [await refOf("main"), await refOf("agent:main:cli:dm:b")];
    expect(one).not.toBe(two);
    expect(await lap.ok("tool.result", { callId: `${two}/r1/1/0`, result: "SECRET-OF-TWO", outcome: "ok" })).toEqual({ ok: true });
    expect(sessions.of("toolResult")).toEqual([
      {
        key: "agent:main:cli:dm:b",
        what: "toolResult",
        args: ["lap", { callId: `${two}/r1/1/0`, result: "SECRET-OF-TWO", outcome: "ok" }],
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
        return "taken";
      },
    }));
    const lap = await node("lap");
    const ref = await refOf("main");
    expect(await lap.refused("tool.result", { callId: `${ref}/r1/1/0`, result: 1 })).toMatchObject({ reason: "internal", retryable: true });
    reachable = true;
    expect(await lap.ok("tool.result", { callId: `${ref}/r1/1/0`, result: 1 })).toEqual({ ok: true });
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
    await evictDurableObject(gateway(), { webSockets: "hibernate" });
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
    await evictDurableObject(gateway(), { webSockets: "hibernate" });
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
  /** Everything in memory and every socket is lost, as when the process is killed. */
  const crash = (): Promise<void> => evictDurableObject(gateway(), { webSockets: "close" });

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

  test("[T4] they are told also when it comes back at once", async () => {
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
      await runInDurableObject(gateway(), () => vi.advanceTimersByTime(4000));
      expect(await sent).toBe("offline");
      expect((await watcher.event("presence")).payload).toMatchObject({ nodeId: "lap", online: false });
      expect((await port().runContext("agent:main:main", undefined))?.tools).toEqual([]);
    } finally {
      vi.useRealTimers();
    }
    await crash();
    expect((await port().runContext("agent:main:main", undefined))?.tools).toEqual([]);
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

describe("nodes.list and node.forget", () => {
  test("known machines, connected or not", async () => {
    const lap = await node("lap", ADMIN, {
      nodeRuntime: { hostCapabilities: ["filesystem.read", "shell.exec"], toolCapabilities: { Bash: ["shell.exec"] } },
    });
    expect(await admin.ok("nodes.list")).toMatchObject({
      count: 1,
      nodes: [
        {
          nodeId: "lap",
          online: true,
          hostCapabilities: ["filesystem.read", "shell.exec"],
          toolCapabilities: { Bash: ["shell.exec"] },
          tools: ["Read", "Bash"],
          clientPlatform: "test",
          clientVersion: "1",
          ledger: false,
        },
      ],
    });
    expect((await admin.refused("node.forget", { nodeId: "lap" })).reason).toBe("node.online");
    expect(await admin.ok("node.forget", { nodeId: "lap", force: true })).toEqual({
      ok: true,
      nodeId: "lap",
      removed: true,
      disconnected: true,
    });
    expect((await lap.ended()).code).toBe(1000);
    expect(await admin.ok("nodes.list")).toEqual({ nodes: [], count: 0 });
    expect((await admin.refused("node.forget", { nodeId: "lap" })).reason).toBe("node.unknown");
  });
});

describe("tools.list", () => {
  test("[G4] native tools and tools of connected machines, each under its full name, sorted", async () => {
    const lap = await node("lap");
    const names = async (): Promise<string[]> =>
      (await admin.ok<{ tools: { name: string }[] }>("tools.list")).tools.map(({ name }) => name);
    const with_ = await names();
    expect(with_).toEqual([...with_].sort());
    expect(with_).toEqual(expect.arrayContaining(["lap__Bash", "lap__Read", "gsv__ReadFile"]));
    lap.socket.close(1000);
    await admin.event("presence", ({ online }) => online === false);
    expect((await names()).filter((name) => name.startsWith("lap"))).toEqual([]);
  });
});

describe("[W7] two machines whose tools have one full name", () => {
  test("one of them has the name, whatever the order in which they connect; the other can't take its calls", async () => {
    const offer = (name: string) => ({ tools: [{ name, description: "", inputSchema: {} }] });
    for (const order of [
      ["a", "a__b"],
      ["a__b", "a"],
    ]) {
      const peers = new Map<string, Peer>();
      for (const id of order) peers.set(id, await node(id, ADMIN, offer(id === "a" ? "b__Bash" : "Bash")));
      const listed = (await admin.ok<{ tools: { name: string }[] }>("tools.list")).tools.filter(({ name }) => name === "a__b__Bash");
      expect(listed).toHaveLength(1);
      const id = admin.ask("tool.invoke", { tool: "a__b__Bash" });
      const { callId, tool } = (await until("the call", () => peers.get("a")?.events("tool.invoke")[0])).payload as Record<string, string>;
      expect(tool).toBe("b__Bash");
      expect(await peers.get("a__b")?.ok("tool.result", { callId, result: "forged" })).toEqual({ ok: true, dropped: true });
      await peers.get("a")?.ok("tool.result", { callId, result: "true" });
      expect((await admin.answer(id)).payload).toMatchObject({ result: "true" });
      expect(peers.get("a__b")?.events("tool.invoke")).toEqual([]);
    }
  });
});

describe("[P6] tool.invoke by a client", () => {
  const invoked = async (lap: Peer): Promise<{ callId: string; tool: string; args: unknown }> =>
    (await lap.event("tool.invoke")).payload as { callId: string; tool: string; args: unknown };

  test("the answer is the node's result, also after hibernation", async () => {
    const lap = await node("lap");
    const id = admin.ask("tool.invoke", { tool: "lap__Bash", args: { command: "date" } });
    const { callId, tool, args } = await invoked(lap);
    expect({ tool, args }).toEqual({ tool: "Bash", args: { command: "date" } });
    expect(callId).toMatch(/^gw\//);
    await evictDurableObject(gateway(), { webSockets: "hibernate" });
    expect(await lap.ok("tool.result", { callId, result: { output: "today" }, outcome: "ok" })).toEqual({ ok: true });
    expect(await admin.answer(id)).toMatchObject({ ok: true, payload: { result: { output: "today" } } });
    expect(await lap.ok("tool.result", { callId, result: "again" })).toEqual({ ok: true, dropped: true });
    expect(await openCalls()).toEqual([]);
  });

  test("failures keep their reason", async () => {
    const lap = await node("lap");
    const cases = [
      [{ error: "no such file", reason: "path.not_found", outcome: "error" }, "path.not_found"],
      [{ error: "it broke", outcome: "error" }, "tool.failed"],
      [{ error: "it broke", reason: "made.up" }, "tool.failed"],
      [{ outcome: "unknown", error: "the machine was switched off" }, "tool.outcome_unknown"],
      [{ outcome: "timeout" }, "tool.timeout"],
      [{ outcome: "cancelled" }, "tool.cancelled"],
    ] as const;
    for (const [at, [result, reason]] of cases.entries()) {
      const id = admin.ask("tool.invoke", { tool: "lap__Bash" });
      const event = await until("the call", () => lap.events("tool.invoke")[at]);
      await lap.ok("tool.result", { callId: (event.payload as { callId: string }).callId, ...result });
      expect((await admin.answer(id)).error?.reason).toBe(reason);
    }
  });

  test("an unknown tool and a machine that is offline have different errors", async () => {
    await node("lap");
    expect((await admin.refused("tool.invoke", { tool: "lap__Nope" })).reason).toBe("tool.unknown");
    expect((await admin.refused("tool.invoke", { tool: "nowhere__Bash" })).reason).toBe("tool.unknown");
    expect((await admin.refused("tool.invoke", { tool: "gsv__Nope" })).reason).toBe("tool.unknown");
    expect((await admin.refused("tool.invoke", { tool: "Bash" })).reason).toBe("tool.unknown");
    const gone = await node("gone");
    gone.socket.close(1000);
    await admin.event("presence", ({ nodeId, online }) => nodeId === "gone" && online === false);
    expect((await admin.refused("tool.invoke", { tool: "gone__Bash" })).reason).toBe("node.offline");
  });

  test("a result from another machine than the one that was asked is dropped", async () => {
    const [lap, box] = [await node("lap"), await node("box")];
    const id = admin.ask("tool.invoke", { tool: "lap__Bash" });
    const { callId } = await invoked(lap);
    expect(await box.ok("tool.result", { callId, result: "forged" })).toEqual({ ok: true, dropped: true });
    await lap.ok("tool.result", { callId, result: "true" });
    expect((await admin.answer(id)).payload).toMatchObject({ result: "true" });
  });

  test("[W8] every call has a deadline: it is cancelled on the node, its outcome is unknown, and its record goes", async () => {
    const lap = await node("lap");
    const id = admin.ask("tool.invoke", { tool: "lap__Bash", timeoutMs: 1000 });
    const readId = admin.ask("tool.invoke", { tool: "lap__Read", timeoutMs: 1000 });
    await until("both calls", () => lap.events("tool.invoke").length === 2);
    expect(await runInDurableObject(gateway(), (_gateway, state) => state.storage.getAlarm())).toBeLessThanOrEqual(Date.now() + 6000);
    await later(7000);
    expect((await admin.answer(id)).error?.reason).toBe("tool.outcome_unknown");
    expect((await admin.answer(readId)).error?.reason).toBe("tool.timeout");
    expect(lap.events("tool.cancel")).toHaveLength(2);
    expect(await openCalls()).toEqual([]);
  });

  test("[W5] the link breaks: a read fails at once, any other call waits, then its outcome is unknown", async () => {
    const lap = await node("lap");
    const [read, bash] = [admin.ask("tool.invoke", { tool: "lap__Read" }), admin.ask("tool.invoke", { tool: "lap__Bash" })];
    await until("both calls", () => lap.events("tool.invoke").length === 2);
    lap.socket.close(1000);
    expect((await admin.answer(read)).error).toMatchObject({ reason: "node.offline", retryable: true });
    expect(await openCalls()).toMatchObject([{ name: "lap__Bash", status: "in_grace" }]);
    await later(LIMITS.nodeGraceMs + 1000);
    expect((await admin.answer(bash)).error?.reason).toBe("tool.outcome_unknown");
  });

  test("[K14][K18] the node comes back: a call in its ledger goes on, a call that it never saw was not started", async () => {
    const lap = await node("lap");
    const [one, two] = [
      admin.ask("tool.invoke", { tool: "lap__Bash", callId: "one" }),
      admin.ask("tool.invoke", { tool: "lap__Bash", callId: "two" }),
    ];
    await until("both calls", () => lap.events("tool.invoke").length === 2);
    const [first] = lap.events("tool.invoke").map(({ payload }) => (payload as { callId: string }).callId);
    lap.socket.close(1000);
    await until("waiting", () => admin.events("presence").some(({ payload }) => (payload as { online: boolean }).online === false));
    const back = await node("lap", ADMIN, { ledger: { calls: [{ callId: first, state: "started" }] } });
    expect((await admin.answer(two)).error).toMatchObject({ reason: "node.offline", message: expect.stringContaining("did not reach") });
    await back.ok("tool.result", { callId: first, result: "done" });
    expect((await admin.answer(one)).payload).toEqual({ result: "done", callId: "one" });
  });

  test("[G5] a link that broke and is back leaves a call its own time", async () => {
    const lap = await node("lap");
    const id = admin.ask("tool.invoke", { tool: "lap__Bash", timeoutMs: 600_000 });
    const { callId } = await invoked(lap);
    lap.socket.close(1000);
    await admin.event("presence", ({ online }) => online === false);
    expect(await openCalls()).toMatchObject([{ status: "in_grace" }]);
    const back = await node("lap", ADMIN, { ledger: { calls: [{ callId, state: "started" }] } });
    expect(await openCalls()).toMatchObject([{ status: "dispatched" }]);
    await later(LIMITS.nodeGraceMs + 1000);
    expect(back.events("tool.cancel")).toEqual([]);
    await back.ok("tool.result", { callId, result: "done" });
    expect((await admin.answer(id)).payload).toMatchObject({ result: "done" });
  });

  test("[T4] [G3] a node without a ledger that comes back can't account for the call: only a result ends the grace", async () => {
    const lap = await node("lap", ADMIN, {});
    const [lost, found] = [
      admin.ask("tool.invoke", { tool: "lap__Bash", callId: "lost" }),
      admin.ask("tool.invoke", { tool: "lap__Bash", callId: "found" }),
    ];
    await until("both calls", () => lap.events("tool.invoke").length === 2);
    const [, second] = lap.events("tool.invoke").map(({ payload }) => (payload as { callId: string }).callId);
    lap.socket.close(1000);
    await admin.event("presence", ({ online }) => online === false);
    const back = await node("lap", ADMIN, {});
    expect(await openCalls()).toMatchObject([{ status: "in_grace" }, { status: "in_grace" }]);
    await back.ok("tool.result", { callId: second, result: "done" });
    expect((await admin.answer(found)).payload).toMatchObject({ result: "done" });
    await later(LIMITS.nodeGraceMs + 1000);
    expect((await admin.answer(lost)).error?.reason).toBe("tool.outcome_unknown");
    expect(back.events("tool.invoke")).toEqual([]);
  });

  test("[P1] asked again under the same name, after a lost link: one call, and the newest request gets the answer", async () => {
    const lap = await node("lap");
    const before = await client();
    before.ask("tool.invoke", { tool: "lap__Bash", callId: "deploy-1" });
    const { callId } = await invoked(lap);
    before.socket.close(1000);
    const id = admin.ask("tool.invoke", { tool: "lap__Bash", callId: "deploy-1" });
    await admin.ok("sessions.list");
    expect(lap.events("tool.invoke")).toHaveLength(1);
    await lap.ok("tool.result", { callId, result: "deployed" });
    expect((await admin.answer(id)).payload).toEqual({ result: "deployed", callId: "deploy-1" });
  });

  test("[S3] call names of one token never collide with those of another token or of a session", async () => {
    const lap = await node("lap");
    const other = await client((await token("client")).token);
    admin.ask("tool.invoke", { tool: "lap__Bash", callId: "same" });
    other.ask("tool.invoke", { tool: "lap__Bash", callId: "same" });
    await until("two calls", () => lap.events("tool.invoke").length === 2);
    const ids = lap.events("tool.invoke").map(({ payload }) => (payload as { callId: string }).callId);
    expect(new Set(ids).size).toBe(2);
    for (const callId of ["a/b", "../x", "~x", "x".repeat(65), "gw/x"])
      expect((await admin.refused("tool.invoke", { tool: "lap__Bash", callId })).reason, callId).toBe("protocol.invalid_params");
  });

  test("[P19] too many at once are refused before anything is sent", async () => {
    const lap = await node("lap");
    for (let at = 0; at < 64; at++) admin.ask("tool.invoke", { tool: "lap__Bash" });
    expect((await admin.refused("tool.invoke", { tool: "lap__Bash" })).reason).toBe("limit.rate");
    expect(lap.events("tool.invoke").length).toBe(64);
  });

  test("progress of the call reaches the client that asked", async () => {
    const lap = await node("lap");
    admin.ask("tool.invoke", { tool: "lap__Bash" });
    const { callId } = await invoked(lap);
    await lap.ok("tool.progress", { callId, phase: "output", chunk: "1%" });
    expect((await admin.event("tool.progress")).payload).toEqual({ callId, nodeId: "lap", phase: "output", chunk: "1%" });
  });

  test("a client can call native tools", async () => {
    await admin.ok("workspace.write", { path: "notes.md", content: "remember the milk" });
    expect(JSON.stringify(await admin.ok("tool.invoke", { tool: "gsv__ReadFile", args: { path: "notes.md" } }))).toContain(
      "remember the milk",
    );
    expect((await admin.refused("tool.invoke", { tool: "gsv__ReadFile", args: { path: "../../x" } })).reason).toBe("path.invalid");
  });

  describe("[P8] [G7] a native tool, called by a client, has the same record", () => {
    /** A native call that lasts until the node answers. */
    const slow = { tool: "gsv__LogsGet", args: { lines: 1 }, callId: "mine" };
    const natives = async () => (await openCalls()).filter(({ target }) => (target as { kind: string }).kind === "native");

    test("the same name again: one call runs, and the newest request gets the answer", async () => {
      const lap = await node("lap");
      const first = admin.ask("tool.invoke", slow);
      const { callId } = (await lap.event("logs.get")).payload as { callId: string };
      expect(await natives()).toMatchObject([{ name: "gsv__LogsGet", status: "dispatched" }]);
      const second = admin.ask("tool.invoke", slow);
      expect((await admin.answer(first)).error?.reason).toBe("tool.cancelled");
      await lap.ok("logs.result", { callId, lines: ["x"] });
      expect((await admin.answer(second)).payload).toMatchObject({ result: { lines: ["x"] }, callId: "mine" });
      expect(lap.events("logs.get")).toHaveLength(1);
      expect(await openCalls()).toEqual([]);
    });

    test("it has a deadline", async () => {
      const lap = await node("lap");
      const id = admin.ask("tool.invoke", { ...slow, timeoutMs: 1_000 });
      await lap.event("logs.get");
      await later(2_000);
      expect((await admin.answer(id)).error?.reason).toBe("tool.timeout");
      expect(await natives()).toEqual([]);
    });

    test("[P6] a restart ends it: it is not run again, and the client is told", async () => {
      await runInDurableObject(gateway(), (_gateway, state) => {
        const [conn] = state.getWebSockets().flatMap((socket) => {
          const kept = socket.deserializeAttachment() as { conn: string; principal?: { mode: string } };
          return kept.principal?.mode === "client" ? [kept.conn] : [];
        });
        const call = planCall(
          {
            callId: "gw/t/mine",
            index: 0,
            name: "gsv__WriteFile",
            target: { kind: "native" },
            ledger: true,
            idempotent: true,
            deadlineMs: 60_000,
          },
          Date.now(),
        );
        const waiter = { kind: "client", conn: conn ?? "", request: "before" } as const;
        new CallStore(state.storage).put({ call, kind: "tool", origin: { kind: "gateway" }, waiter });
      });
      await evictDurableObject(gateway(), { webSockets: "hibernate" });
      await admin.ok("sessions.list");
      expect((await admin.answer("before")).error?.reason).toBe("tool.outcome_unknown");
      expect(await openCalls()).toEqual([]);
    });
  });

  test("[W7] a result of one kind does not end a call of another", async () => {
    const lap = await node("lap");
    const id = admin.ask("tool.invoke", { tool: "lap__Bash" });
    const { callId } = await invoked(lap);
    expect(await lap.ok("logs.result", { callId, lines: [] })).toEqual({ ok: true, dropped: true });
    await lap.ok("tool.result", { callId, result: "true" });
    expect((await admin.answer(id)).payload).toMatchObject({ result: "true" });
  });

  test("[FR6] a machine that stops pinging is cut off while only a client's call is out", async () => {
    const lap = await node("lap");
    lap.send("ping");
    await until("pong", () => lap.texts.includes("pong"));
    const id = admin.ask("tool.invoke", { tool: "lap__Read", timeoutMs: 600_000 });
    await invoked(lap);
    await later(LIMITS.pingIntervalMs * 3 + 1000);
    expect((await lap.ended()).code).toBe(4008);
    expect((await admin.answer(id)).error?.reason).toBe("node.offline");
  });

  test("[G5] a command gets the time that it states", async () => {
    const lap = await node("lap");
    admin.ask("tool.invoke", { tool: "lap__Bash", args: { command: "make", timeout: 600_000 } });
    expect((await lap.event("tool.invoke")).payload).toMatchObject({ timeoutMs: 605_000 });
  });
});

test("tool.request is handed over, and its result is taken though no one waits for it", async () => {
  const lap = await node("lap");
  expect(await admin.ok("tool.request", { callId: "c1", tool: "lap__Bash", args: {}, sessionKey: "main" })).toEqual({ status: "sent" });
  const event = await lap.event("tool.invoke");
  expect(event.payload).toMatchObject({ tool: "Bash", sessionKey: "agent:main:main" });
  expect(await lap.ok("tool.result", { callId: (event.payload as { callId: string }).callId, result: 1 })).toEqual({ ok: true });
  expect(sessions.of("toolResult")).toEqual([]);
  expect((await admin.refused("tool.request", { callId: "c2", tool: "lap__Bash", args: {}, sessionKey: "bad" })).reason).toBe(
    "session.bad_key",
  );
});

describe("logs.get", () => {
  test("reads the log of the named node, or of the only one", async () => {
    const lap = await node("lap");
    const id = admin.ask("logs.get", { lines: 2 });
    const { callId, lines } = (await lap.event("logs.get")).payload as { callId: string; lines: number };
    expect(lines).toBe(2);
    await lap.ok("logs.result", { callId, lines: ["a", "b"] });
    expect((await admin.answer(id)).payload).toEqual({ nodeId: "lap", lines: ["a", "b"], count: 2, truncated: false });
    expect(await lap.ok("logs.result", { callId, lines: [] })).toEqual({ ok: true, dropped: true });
    await node("box");
    expect((await admin.refused("logs.get")).reason).toBe("node.unknown");
    expect((await admin.refused("logs.get", { nodeId: "nowhere" })).reason).toBe("node.unknown");
  });

  test("a node that does not answer gives a timeout", async () => {
    await node("lap");
    const id = admin.ask("logs.get");
    await until("the row", () => true);
    await admin.ok("sessions.list");
    await later(25_000);
    expect((await admin.answer(id)).error?.reason).toBe("tool.timeout");
  });

  test("a session's native tool reads the same log", async () => {
    expect(await gateway().nodeLogs(undefined, 5)).toMatchObject({ ok: false, error: { reason: "node.offline" } });
    const lap = await node("lap");
    const asked = gateway().nodeLogs(undefined, 5);
    const { callId } = (await lap.event("logs.get")).payload as { callId: string };
    await lap.ok("logs.result", { callId, lines: ["x"], truncated: true });
    expect(await asked).toEqual({ ok: true, value: { nodeId: "lap", lines: ["x"], count: 1, truncated: true } });
  });
});
