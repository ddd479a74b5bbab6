/** DispatchTool: handing calls over, once or repeatedly. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { PolicyClass } from "../../../../protocol/gen/types.ts";
import type { OpenCall } from "../../calls/open-call.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import type { ToolEntry } from "../../ports/tool-entry.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { LogRow } from "../machine/log.ts";
import type { State } from "../machine/state.ts";
import { dispatchTool, type DispatchPorts } from "./dispatch-tool.ts";
import { flight, media, settle, thinking, USAGE } from "../../../test/session/effect-bench.ts";

describe("DispatchTool", () => {
  const effect: EffectOf<"DispatchTool"> = {
    type: "DispatchTool",
    id: "r1/t1/d0.0",
    callId: "ref/r1/1/0",
    seq: 2,
    index: 0,
    target: { kind: "node", nodeId: "lap" },
    tool: "Bash",
    timeoutMs: 5,
    repeatable: true,
  };
  const row: LogRow = {
    seq: 2,
    at: 0,
    runId: "r",
    kind: "assistant",
    step: 1,
    attempt: 0,
    calls: [{ callId: effect.callId, providerId: "p", name: "lap__Bash" }],
    message: {
      role: "assistant",
      content: [{ type: "toolCall", id: "x", name: "lap__Bash", arguments: { command: "ls" } }],
      api: "a",
      provider: "p",
      model: "m",
      usage: USAGE,
      stopReason: "toolUse",
      timestamp: 0,
    },
  };
  function bench(
    dispatch: () => Promise<"sent" | "offline" | "changed">,
    committed = true,
    audit: GatewayPort["audit"] = () => Promise.resolve(undefined),
  ): { ports: DispatchPorts; events: EventBody[]; order: string[] } {
    const events: EventBody[] = [];
    const order: string[] = [];
    const none = (): never => {
      throw new Error("not asked for");
    };
    const gateway: GatewayPort = {
      runContext: none,
      reserveSpend: none,
      useGrants: none,
      modelAccess: none,
      stopAll: none,
      resumeAll: none,
      secretValues: none,
      publish: none,
      approvals: none,
      awaitNodes: none,
      cancelTools: none,
      configGet: none,
      sessionsList: none,
      nodeLogs: none,
      audit,
      search: none,
      packTool: none,
      remember: none,
      recall: none,
      emitEvent: none,
      searchableSessions: none,
      transfer: none,
      delegate: none,
      sendToSession: none,
      cron: none,
      channelPlaces: none,
      message: none,
      skillsSeen: none,
      skillWriting: none,
      fileChanging: none,
      filesWritten: none,
      reply: none,
      dispatchTool: ({ args }) => {
        assert.deepEqual(args, { command: "ls" });
        order.push("dispatch");
        return dispatch();
      },
    };
    const ports: DispatchPorts = {
      state: () => thinking,
      row: () => row,
      gateway,
      native: { entries: [], run: (name) => Promise.resolve({ ok: true, result: `${name} ran` }) },
      media,
      wall: () => 0,
      userTimezone: () => "UTC",
      mediaKey: () => undefined,
      hider: () => Promise.resolve((text) => text.replaceAll("hunter22", "[redacted]")),
      confirmSoon: (coming) => {
        order.push("version comes soon");
        void coming.then((confirmed) => order.push(`version ${confirmed?.version}`));
      },
      after: () => () => undefined,
      commit: (event) => {
        order.push(event.type);
        events.push(event);
        return committed;
      },
    };
    return { ports, events, order };
  }
  test("[G2] without a ledger the commit comes first", async () => {
    const b = bench(() => Promise.resolve("sent"));
    assert.equal(await dispatchTool({ ...effect, repeatable: false }, flight(), b.ports), "done");
    assert.deepEqual(b.order, ["ToolSent", "dispatch"]);
  });
  test("[G2] without that commit nothing is dispatched", async () => {
    const b = bench(() => Promise.resolve("sent"), false);
    await dispatchTool({ ...effect, repeatable: false }, flight(), b.ports);
    assert.deepEqual(b.order, ["ToolSent"]);
  });
  test("[G2] a broken hand-over is uncertain without a ledger and repeated with one", async () => {
    const fails = (): Promise<never> => Promise.reject(new Error("broken"));
    const once = bench(fails);
    assert.equal(await dispatchTool({ ...effect, repeatable: false }, flight(), once.ports), "done");
    assert.equal(once.events.at(-1)?.type, "ToolUncertain");
    assert.deepEqual(await dispatchTool(effect, flight({ tries: 2 }), bench(fails).ports), { retryInMs: 4_000 });
  });
  test("[G3] only a dispatch without a possible earlier one counts as the first", async () => {
    for (const [over, id, first] of [
      [{}, effect.id, true],
      [{ inherited: true }, effect.id, false],
      [{ tries: 1 }, effect.id, false],
      [{}, "r1/t1/d0.1", false],
    ] as const) {
      const b = bench(() => Promise.resolve("offline"));
      await dispatchTool({ ...effect, id }, flight(over), b.ports);
      assert.equal(b.events[0]?.type === "ToolOffline" && b.events[0].first, first);
    }
  });
  test("[PO14] a call for a machine with another sandbox ends with the reason; handed over before, its outcome is not known", async () => {
    for (const [over, outcome, reason] of [
      [{}, "error", "policy.denied"],
      [{ tries: 1 }, "unknown", "tool.outcome_unknown"],
    ] as const) {
      const b = bench(() => Promise.resolve("changed"));
      assert.equal(await dispatchTool({ ...effect, sandbox: "workspace" }, flight(over), b.ports), "done");
      const [result] = b.events;
      assert.ok(result?.type === "ToolResult");
      assert.deepEqual([result.outcome, result.reason], [outcome, reason]);
      assert.match(JSON.stringify(result.content), /another sandbox/);
    }
  });
  test("[F10] [S5] stored secrets are hidden in a native tool's result; while they are not known, the call waits", async () => {
    const native: EffectOf<"DispatchTool"> = { ...effect, target: { kind: "native" }, tool: "gsv__ReadFile" };
    const b = bench(() => Promise.resolve("sent"));
    const run = (name: string): Promise<{ ok: true; result: string }> => {
      b.order.push(name);
      return Promise.resolve({ ok: true, result: "the key is hunter22." });
    };
    const ports = { ...b.ports, native: { entries: [], run } };
    const away = { ...ports, hider: () => Promise.reject(new Error("the gateway is away")) };
    assert.deepEqual(await dispatchTool(native, flight(), away), { retryInMs: 1_000 });
    assert.deepEqual(b.order, []);
    assert.equal(await dispatchTool(native, flight(), ports), "done");
    const [result] = b.events;
    assert.deepEqual(result?.type === "ToolResult" && result.content, [{ type: "text", text: "the key is [redacted]." }]);
  });
  test("[F22] a native call is an entry of the audit; the run does not wait for it, and a failure of the audit is none of the call", async () => {
    const native: EffectOf<"DispatchTool"> = { ...effect, target: { kind: "native" }, tool: "gsv__ReadFile" };
    const recorded: unknown[] = [];
    const held = Promise.withResolvers<string>();
    const b = bench(
      () => Promise.resolve("sent"),
      true,
      (entry) => {
        recorded.push(entry);
        return held.promise;
      },
    );
    const running = dispatchTool(native, flight(), b.ports);
    await settle();
    assert.deepEqual(b.order, ["ToolResult"]);
    held.reject(new Error("the gateway is away"));
    assert.equal(await running, "done");
    assert.deepEqual(recorded, [
      {
        actor: `session:${thinking.identity.key}`,
        action: "tool.call",
        target: "gsv__ReadFile",
        tool: "gsv__ReadFile",
        // The bench has no such tool.
        decision: "denied",
        rule: "tool.guest",
        detail: effect.callId,
        args: { command: "ls" },
      },
    ]);
  });
  test("[F22] after the only call that is open, if it only reads, the next model call need not ask for what the gateway said with the entry", async () => {
    const native: EffectOf<"DispatchTool"> = { ...effect, target: { kind: "native" }, tool: "gsv__ReadFile" };
    const open = { callId: effect.callId } as OpenCall;
    const orderOf = async (
      calls: readonly OpenCall[],
      policyClass: PolicyClass,
      audit?: GatewayPort["audit"],
    ): Promise<readonly string[]> => {
      const { ports, order } = bench(() => Promise.resolve("sent"), true, audit ?? (() => Promise.resolve("v2")));
      const entries = [{ definition: { name: "gsv__ReadFile" }, policyClass } as ToolEntry];
      const acting = { ...thinking, run: { ...thinking.run, phase: "acting", calls } as unknown as State["run"] };
      await dispatchTool(native, flight(), { ...ports, state: () => acting, native: { ...ports.native, entries } });
      return order;
    };
    assert.deepEqual(await orderOf([open], "read_private"), ["version comes soon", "ToolResult", "version v2"]);
    assert.deepEqual(await orderOf([open], "write_workspace"), ["ToolResult"]);
    assert.deepEqual(await orderOf([open, { ...open, callId: "b" }], "read_private"), ["ToolResult"]);
    const away = await orderOf([open], "read_private", () => Promise.reject(new Error("away")));
    assert.deepEqual(away, ["version comes soon", "ToolResult", "version undefined"]);
    // A run that was aborted meanwhile makes no next call.
    const states = [{ calls: [open] }, { calls: [] }].map(
      ({ calls }) => ({ ...thinking, run: { ...thinking.run, phase: "acting", calls } }) as unknown as State,
    );
    const aborted = bench(
      () => Promise.resolve("sent"),
      true,
      () => Promise.resolve("v2"),
    );
    const reads = {
      ...aborted.ports.native,
      entries: [{ definition: { name: "gsv__ReadFile" }, policyClass: "read_private" } as ToolEntry],
    };
    await dispatchTool(native, flight(), { ...aborted.ports, state: () => states.shift(), native: reads });
    assert.deepEqual(aborted.order, ["ToolResult"]);
    // A gateway that does not answer holds no result back.
    const held = Promise.withResolvers<string>();
    const b = bench(
      () => Promise.resolve("sent"),
      true,
      () => held.promise,
    );
    const entries = [{ definition: { name: "gsv__ReadFile" }, policyClass: "read_private" } as ToolEntry];
    const acting = { ...thinking, run: { ...thinking.run, phase: "acting", calls: [open] } as unknown as State["run"] };
    const after: DispatchPorts["after"] = (_ms, work) => {
      work();
      return () => undefined;
    };
    const running = dispatchTool(native, flight(), { ...b.ports, state: () => acting, native: { ...b.ports.native, entries }, after });
    await settle();
    assert.deepEqual(b.order, ["version comes soon", "ToolResult", "version undefined"]);
    held.resolve("v2");
    assert.equal(await running, "done");
  });
  test("a native call runs in the session", async () => {
    const b = bench(() => Promise.resolve("sent"));
    await dispatchTool({ ...effect, target: { kind: "native" }, tool: "gsv__ReadFile" }, flight(), b.ports);
    assert.deepEqual(b.events, [
      {
        type: "ToolResult",
        callId: effect.callId,
        from: { kind: "native" },
        content: [{ type: "text", text: "gsv__ReadFile ran" }],
        outcome: "ok",
      },
    ]);
  });
});
