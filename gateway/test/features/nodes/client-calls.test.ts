/** Calls that a client makes on a machine: tool.invoke, tool.request and logs.get. */
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { planCall } from "../../../src/calls/open-call.ts";
import { CallStore } from "../../../src/features/nodes/call-store.ts";
import { ADMIN, client, fakeSessions, gateway, node, type Peer, seed, token, until } from "../../support/gateway.ts";
import { later, openCalls } from "./support.ts";
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

describe("[P6] tool.invoke by a client", () => {
  const invoked = async (lap: Peer): Promise<{ callId: string; tool: string; args: unknown }> =>
    (await lap.event("tool.invoke")).payload as { callId: string; tool: string; args: unknown };

  test("the answer is the node's result, also after hibernation", async () => {
    const lap = await node("lap");
    const id = admin.ask("tool.invoke", { tool: "lap__Bash", args: { command: "date" } });
    const { callId, tool, args } = await invoked(lap);
    expect({ tool, args }).toEqual({ tool: "Bash", args: { command: "date" } });
    expect(callId).toMatch(/^gw\//);
    await evict(gateway(), { webSockets: "hibernate" });
    expect(await lap.ok("tool.result", { callId, result: { output: "today" }, outcome: "ok" })).toEqual({ ok: true });
    expect(await admin.answer(id)).toMatchObject({ ok: true, payload: { result: { output: "today" } } });
    expect(await lap.ok("tool.result", { callId, result: "again" })).toEqual({ ok: true, dropped: true });
    expect(await openCalls()).toEqual([]);
  });

  test("[PO7] in mode auto a command runs in the sandbox that the machine has reported", async () => {
    await admin.ok("config.set", { path: "toolApproval", value: { mode: "auto" } });
    await node("bare");
    const lap = await node("lap", ADMIN, {
      ledger: { calls: [] },
      nodeRuntime: { hostCapabilities: ["shell.exec"], toolCapabilities: {}, sandbox: { profile: "workspace", tier: "bubblewrap" } },
    });
    const refused = await admin.refused("tool.invoke", { tool: "bare__Bash", args: { command: "make" } });
    expect([refused.reason, refused.message]).toEqual(["policy.denied", expect.stringContaining("which has no sandbox")]);
    const id = admin.ask("tool.invoke", { tool: "lap__Bash", args: { command: "make" } });
    const { callId } = await invoked(lap);
    await lap.ok("tool.result", { callId, result: { output: "made" }, outcome: "ok" });
    expect(await admin.answer(id)).toMatchObject({ ok: true, payload: { result: { output: "made" } } });
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

  test("[G5] a link that broke and is restored leaves a call its own deadline", async () => {
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

  test("[P1] a call asked for again under the same name after a lost link runs once, and the newest request gets the answer", async () => {
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

  test("[P19] too many calls at once are refused before anything is sent", async () => {
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
      const second = admin.ask("tool.invoke", slow);
      expect((await admin.answer(first)).error?.reason).toBe("tool.cancelled");
      await lap.ok("logs.result", { callId, lines: ["x"] });
      expect((await admin.answer(second)).payload).toMatchObject({ result: { lines: ["x"] }, callId: "mine" });
      expect(lap.events("logs.get")).toHaveLength(1);
      expect(await openCalls()).toEqual([]);
    });

    test("one that only reads is never written, and counts for the limits of open calls", async () => {
      const lap = await node("lap");
      const ids = Array.from({ length: 32 }, () => admin.ask("tool.invoke", { tool: slow.tool, args: slow.args }));
      await until("all calls", () => lap.events("logs.get").length === ids.length);
      expect(await natives()).toEqual([]);
      for (let at = ids.length; at < 64; at++) admin.ask("tool.invoke", { tool: "lap__Bash" });
      expect((await admin.refused("tool.invoke", { tool: "lap__Bash" })).reason).toBe("limit.rate");
      expect((await admin.refused("tool.invoke", { tool: slow.tool, args: slow.args })).reason).toBe("limit.rate");
      for (const { payload } of lap.events("logs.get"))
        await lap.ok("logs.result", { callId: (payload as { callId: string }).callId, lines: ["x"] });
      for (const id of ids) expect((await admin.answer(id)).payload).toMatchObject({ result: { lines: ["x"] } });
    });

    test("one that changes something is written before it acts", async () => {
      const put = vi.spyOn(CallStore.prototype, "put");
      await admin.ok("tool.invoke", { tool: "gsv__WriteFile", args: { path: "a.md", content: "x" } });
      expect(put.mock.calls.map(([record]) => [record.call.name, record.readsOnly])).toEqual([["gsv__WriteFile", undefined]]);
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
      await evict(gateway(), { webSockets: "hibernate" });
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
