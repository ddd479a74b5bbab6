/** Each interpreter against far ends that the test plays. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asAgentId } from "../../../../protocol/gen/types.ts";
import type { Origin } from "../../ports/origin.ts";
import { type GatewayPort, type SessionNews, sessionSeqOf } from "../../ports/gateway.ts";
import type { SessionMedia } from "../../ports/media.ts";
import type { ModelOutcome, ModelRequest } from "../../ports/model.ts";
import type { RunContext } from "../../ports/run-context.ts";
import type { Effect, EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { LogRow } from "../machine/log.ts";
import { newborn, type State } from "../machine/state.ts";
import { History } from "../history.ts";
import type { Delta } from "../publisher.ts";
import { type Flight, Pump } from "../pump.ts";
import { RunContexts } from "../run-context.ts";
import { archive } from "./archive.ts";
import { ModelCaller, type CallModelPorts } from "./call-model.ts";
import { cancelTool } from "./cancel-tool.ts";
import { Deliverer } from "./deliver.ts";
import { dispatchTool, type DispatchPorts } from "./dispatch-tool.ts";
import { storeResult } from "./store-result.ts";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const flight = (over: Partial<Flight> = {}): Flight => ({ signal: new AbortController().signal, inherited: false, tries: 0, ...over });
const ORIGIN: Origin = { kind: "client", clientId: "o" };
const RUN = {
  ordinal: 1,
  runId: "run",
  messageId: "m",
  origin: ORIGIN,
  directives: {},
  startedAt: 0,
  progressAt: 0,
  step: 1,
  modelIndex: 0,
  spent: { input: 0, output: 0, total: 0 },
};
/** A bucket that nobody should need. */
const media: SessionMedia = {
  takeAttachments: () => Promise.reject(new Error("no files here")),
  takeResult: () => Promise.reject(new Error("no files here")),
  hydrate: (messages) => Promise.resolve(messages),
  transcribe: () => Promise.reject(new Error("no files here")),
  delete: () => Promise.reject(new Error("no files here")),
};
const base: State = newborn({
  identity: { key: "agent:main:main", ref: "ref", agentId: "main", isOwnersSession: true },
  sessionId: "s1",
  wall: 0,
});
const thinking: State = { ...base, run: { ...RUN, phase: "thinking", attempt: 2, tries: 0, restarts: 0, deadline: 0 } };
const context: RunContext = {
  version: "v1",
  config: {
    model: { provider: "a", id: "one", fallbacks: [{ provider: "b", id: "two" }] },
    timeouts: { llmMs: 1_000, toolMs: 60_000 },
    limits: { stepsPerRun: 5, runMs: 1_000, runCostUsd: 1 },
    session: { mainKey: "main" },
    userTimezone: "UTC",
  },
  agent: { id: asAgentId("main") },
  tools: [],
  nodes: [],
  skillPins: [],
};
const history = new History([
  { seq: 1, at: 0, runId: "run", kind: "user", messageId: "m", origin: ORIGIN, message: { role: "user", content: "hi", timestamp: 0 } },
]);
const USAGE = { input: 1, output: 1, total: 2 };
const replied = (text: string): ModelOutcome => ({
  kind: "replied",
  calls: [],
  usage: USAGE,
  message: {
    role: "assistant",
    content: [{ type: "text", text }],
    api: "a",
    provider: "p",
    model: "m",
    usage: USAGE,
    stopReason: "stop",
    timestamp: 0,
  },
});

describe("CallModel", () => {
  interface Bench {
    readonly caller: ModelCaller;
    readonly deltas: Delta[];
    readonly asked: string[][];
    readonly requests: ModelRequest[];
    readonly sleeps: (() => void)[];
  }
  function bench(model: (request: ModelRequest) => Promise<ModelOutcome>, over: Partial<CallModelPorts> = {}): Bench {
    const [deltas, asked, requests, sleeps]: [Delta[], string[][], ModelRequest[], (() => void)[]] = [[], [], [], []];
    const caller = new ModelCaller({
      state: () => thinking,
      history: () => history,
      contextWindow: () => 100_000,
      contexts: new RunContexts(
        {
          runContext: (_key, known) => Promise.resolve(known === "v1" ? null : context),
          modelAccess: (providers) => {
            asked.push([...providers]);
            return Promise.resolve({ apiKeys: {}, headers: {} });
          },
        },
        () => "k",
      ),
      prompts: { assemble: () => Promise.resolve({ ok: true, value: { system: "sys", sections: [] } }) },
      model: {
        takesImages: () => true,
        call: (request) => {
          requests.push(request);
          return model(request);
        },
      },
      native: { entries: [] },
      media,
      unheard: () => [],
      commit: () => {},
      wall: () => 7,
      delta: (delta) => deltas.push(delta),
      sleep: (_ms, signal) =>
        new Promise((resolve) => {
          sleeps.push(resolve);
          signal.addEventListener("abort", () => resolve());
        }),
      failed: () => {},
      ...over,
    });
    return { caller, deltas, asked, requests, sleeps };
  }
  const effect: EffectOf<"CallModel"> = { type: "CallModel", id: "r1/t1/m2", notBefore: 0 };

  test("[C4] text goes out as it comes, with its place", async () => {
    const b = bench((request) => {
      request.onText("Hel");
      request.onText("");
      request.onText("lo");
      return Promise.resolve(replied("Hello"));
    });
    const event = await b.caller.call(effect, flight());
    assert.equal(event?.type, "ModelReplied");
    assert.deepEqual(
      b.deltas.map(({ attempt, offset, text }) => [attempt, offset, text]),
      [
        [2, 0, "Hel"],
        [2, 3, "lo"],
      ],
    );
    assert.equal(b.caller.live, undefined);
  });
  test("[A2] keys are asked for one provider only, and again only when something has changed", async () => {
    const b = bench(() => Promise.resolve(replied("x")));
    await b.caller.call(effect, flight());
    await b.caller.call(effect, flight());
    assert.deepEqual(b.asked, [["a"]]);
  });
  test("the context is asked for, unless the gateway has just said with a message that it holds", async () => {
    const [asked, keys]: [(string | undefined)[], string[]] = [[], []];
    let version = "v1";
    const contexts = new RunContexts(
      {
        runContext: (_key, known) => {
          asked.push(known);
          return Promise.resolve(known === version ? null : { ...context, version });
        },
        modelAccess: (providers) => {
          keys.push(...providers);
          return Promise.resolve({ apiKeys: {}, headers: {} });
        },
      },
      () => "k",
    );
    const use = async (now: number): Promise<string> => {
      const current = await contexts.current(now);
      await contexts.access(current, "a");
      return current.version;
    };
    contexts.said("v1", 0);
    assert.equal(await use(0), "v1");
    assert.deepEqual(asked, [undefined], "what is not known must be asked for");
    contexts.said("v1", 1000);
    assert.equal(await use(1001), "v1");
    assert.equal(asked.length, 1);
    // Said once counts once, and not for long.
    await use(1002);
    assert.equal(asked.length, 2);
    contexts.said("v1", 2000);
    await use(3000);
    assert.equal(asked.length, 3);
    version = "v2";
    contexts.said("v2", 4000);
    assert.equal(await use(4000), "v2");
    assert.deepEqual([asked.length, keys], [4, ["a", "a"]]);
  });
  test("[R2] the model of the present try", async () => {
    const second: State = {
      ...thinking,
      run: { ...RUN, phase: "thinking", attempt: 2, tries: 0, restarts: 0, deadline: 0, modelIndex: 1 },
    };
    const b = bench(
      () => Promise.resolve({ kind: "failed", error: { reason: "model.overloaded", message: "x" }, retryable: true, retryAfterMs: 5 }),
      { state: () => second },
    );
    const event = await b.caller.call(effect, flight());
    assert.equal(b.requests[0]?.model.id, "two");
    assert.deepEqual(event?.type === "ModelFailed" && [event.models, event.retryAfterMs, event.streamed], [2, 5, false]);
  });
  test("[P5] a client that never ends is timed out as a whole, and stopped", async () => {
    const b = bench(() => new Promise(() => {}));
    const call = b.caller.call(effect, flight());
    await settle();
    b.sleeps[0]?.();
    const event = await call;
    assert.equal(event?.type === "ModelFailed" && event.error.reason, "model.timeout");
    assert.equal(b.requests[0]?.signal.aborted, true);
  });
  test("[R3] a call that is not wanted any more says nothing, and its late text goes nowhere", async () => {
    const stop = new AbortController();
    const b = bench(() => new Promise(() => {}));
    const call = b.caller.call(effect, flight({ signal: stop.signal }));
    await settle();
    stop.abort();
    assert.equal(await call, undefined);
    b.requests[0]?.onText("late");
    assert.deepEqual(b.deltas, []);
  });
  test("what throws becomes a failure that can be tried again", async () => {
    const rejects = (): Promise<never> => Promise.reject(new Error("boom"));
    for (const b of [
      bench(rejects),
      bench(() => Promise.resolve(replied("x")), { prompts: { assemble: rejects } }),
      bench(() => Promise.resolve(replied("x")), {
        contexts: new RunContexts({ runContext: () => Promise.resolve(context), modelAccess: rejects }, () => "k"),
      }),
      bench(() => Promise.resolve(replied("x")), { contexts: new RunContexts({ runContext: rejects, modelAccess: rejects }, () => "k") }),
    ]) {
      const event = await b.caller.call(effect, flight());
      assert.deepEqual(event?.type === "ModelFailed" && [event.retryable, event.error.reason], [true, "internal"]);
      assert.doesNotMatch(JSON.stringify(event), /boom/);
    }
  });
  test("an effect of another attempt is not performed", async () => {
    const b = bench(() => Promise.resolve(replied("x")));
    assert.equal(await b.caller.call({ ...effect, id: "r1/t1/m1" }, flight()), undefined);
    assert.equal(b.requests.length, 0);
  });
});

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
    dispatch: () => Promise<"sent" | "offline">,
    committed = true,
  ): { ports: DispatchPorts; events: EventBody[]; order: string[] } {
    const events: EventBody[] = [];
    const order: string[] = [];
    const none = (): never => {
      throw new Error("not asked for");
    };
    const gateway: GatewayPort = {
      runContext: none,
      modelAccess: none,
      publish: none,
      cancelTools: none,
      configGet: none,
      sessionsList: none,
      nodeLogs: none,
      audit: none,
      search: none,
      searchableSessions: none,
      sendToSession: none,
      channelPlaces: none,
      message: none,
      skillsSeen: none,
      skillWriting: none,
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
  test("[G2] and when it does not come about, nothing is dispatched", async () => {
    const b = bench(() => Promise.resolve("sent"), false);
    await dispatchTool({ ...effect, repeatable: false }, flight(), b.ports);
    assert.deepEqual(b.order, ["ToolSent"]);
  });
  test("[G2] a broken hand-over without a ledger is uncertain, with one it is repeated", async () => {
    const fails = (): Promise<never> => Promise.reject(new Error("broken"));
    const once = bench(fails);
    assert.equal(await dispatchTool({ ...effect, repeatable: false }, flight(), once.ports), "done");
    assert.equal(once.events.at(-1)?.type, "ToolUncertain");
    assert.deepEqual(await dispatchTool(effect, flight({ tries: 2 }), bench(fails).ports), { retryInMs: 4_000 });
  });
  test("[G3] only a dispatch that can't have had a forerunner counts as the first", async () => {
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
  test("a native call runs here", async () => {
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

describe("Deliver", () => {
  const final = (seq: number): LogRow => ({
    seq,
    at: 0,
    runId: `r${seq}`,
    kind: "notice",
    notice: "error",
    text: "t",
  });
  test("[P11] one that fails is not overtaken: the next one begins with what is missing", async () => {
    const sent: (number | undefined)[][] = [];
    let up = false;
    const events: EventBody[] = [];
    const deliverer = new Deliverer(
      {
        state: () => base,
        rows: () => [],
        news: (news: readonly SessionNews[]) => {
          if (up) sent.push(news.map(sessionSeqOf));
          return Promise.resolve(up);
        },
        commit: (event) => events.push(event),
      },
      0,
    );
    deliverer.written([final(1)]);
    assert.deepEqual(await deliverer.deliver({ type: "Deliver", id: "deliver/1", upto: 1 }, flight()), { retryInMs: 1_000 });
    deliverer.written([final(2)]);
    up = true;
    assert.equal(await deliverer.deliver({ type: "Deliver", id: "deliver/2", upto: 2 }, flight()), "done");
    assert.deepEqual(sent, [[1, 2]]);
    assert.deepEqual(events, [{ type: "Delivered", upto: 2 }]);
  });
  test("[D2] during a run no commit of its own is spent on it", async () => {
    const events: EventBody[] = [];
    const deliverer = new Deliverer(
      { state: () => thinking, rows: () => [], news: () => Promise.resolve(true), commit: (event) => events.push(event) },
      0,
    );
    deliverer.written([final(1)]);
    await deliverer.deliver({ type: "Deliver", id: "deliver/1", upto: 1 }, flight());
    assert.deepEqual([events, deliverer.published], [[], 1]);
  });
  test("[K24] after a wake it is read from the log", async () => {
    const sent: SessionNews[] = [];
    const rows = [1, 2, 3].map(final);
    const deliverer = new Deliverer(
      {
        state: () => base,
        rows: (from, limit) => rows.filter((row) => row.seq >= from).slice(0, limit),
        news: (news) => {
          sent.push(...news);
          return Promise.resolve(true);
        },
        commit: () => {},
      },
      1,
    );
    await deliverer.deliver({ type: "Deliver", id: "deliver/3", upto: 3 }, flight({ inherited: true }));
    assert.deepEqual(sent.map(sessionSeqOf), [2, 3]);
  });
});

describe("the others", () => {
  test("CancelTool is given up after five tries", async () => {
    const effect: EffectOf<"CancelTool"> = { type: "CancelTool", id: "cancel/1", nodeId: "lap", callIds: ["c"], reason: "r" };
    const events: EventBody[] = [];
    const ports = {
      gateway: { cancelTools: () => Promise.reject(new Error("away")) },
      commit: (event: EventBody) => void events.push(event),
    };
    assert.deepEqual(await cancelTool(effect, flight({ tries: 3 }), ports), { retryInMs: 8_000 });
    assert.equal(await cancelTool(effect, flight({ tries: 4 }), ports), "done");
    assert.deepEqual(events, [{ type: "EffectDone", effectId: "cancel/1" }]);
  });
  test("StoreResult is parked after ten, never dropped", async () => {
    const effect: EffectOf<"StoreResult"> = { type: "StoreResult", id: "store/c", callId: "c" };
    const events: EventBody[] = [];
    const ports = {
      state: () => base,
      text: () => "long",
      files: { put: () => Promise.resolve({ ok: false as const, error: { reason: "storage.failed" as const, message: "away" } }) },
      commit: (event: EventBody) => void events.push(event),
    };
    assert.deepEqual(await storeResult(effect, flight({ tries: 8 }), ports), { retryInMs: 256_000 });
    assert.equal(await storeResult(effect, flight({ tries: 9 }), ports), "done");
    assert.deepEqual(events, []);
  });
  test("[P17] Archive reports what the store says, and a store that hangs as a failure", async () => {
    const run = {
      phase: "archiving",
      kind: "reset",
      requestId: "q",
      cause: "asked",
      stage: "archive",
      ordinal: 1,
      attempt: 0,
      failures: 0,
      from: 1,
      upto: 1,
      count: 1,
      restarts: 0,
      kept: 0,
      firstAt: 0,
      lastAt: 0,
      cursor: 1,
      chunks: 0,
      plain: false,
      archivedAt: 5,
      newSessionId: "s2",
      deadline: 0,
    } as const;
    const state: State = { ...base, run };
    const rows = [
      { seq: 1, at: 0, runId: "r", kind: "user", messageId: "m", origin: ORIGIN, message: { role: "user", content: "x", timestamp: 0 } },
    ] as const;
    const effect: EffectOf<"Archive"> = { type: "Archive", id: "a1/0", notBefore: 0 };
    const ports = (
      put: () => Promise<{ ok: true; value: { key: string; sha256: string; count: number } }>,
      sleep: () => Promise<void>,
    ) => ({ state: () => state, messages: () => rows, archives: { put }, sleep });
    const never = <T>(): Promise<T> => new Promise(() => {});
    assert.deepEqual(
      await archive(
        effect,
        ports(() => Promise.resolve({ ok: true, value: { key: "k", sha256: "h", count: 1 } }), never),
      ),
      { type: "Archived", effectId: "a1/0", key: "k", count: 1 },
    );
    assert.equal(
      (
        await archive(
          effect,
          ports(never, () => Promise.resolve()),
        )
      )?.type,
      "ArchiveFailed",
    );
    assert.equal(
      (
        await archive(
          effect,
          ports(() => Promise.reject(new Error("boom")), never),
        )
      )?.type,
      "ArchiveFailed",
    );
    assert.equal(await archive({ ...effect, id: "a1/1" }, ports(never, never)), undefined);
  });
});

describe("the pump", () => {
  function bench(outbox: Effect[]): {
    pump: Pump;
    started: string[];
    ends: ((end: "done" | { retryInMs: number }) => void)[];
    aborted: string[];
    at: (now: number) => void;
  } {
    let now = 0;
    const [started, ends, aborted]: [string[], ((end: "done" | { retryInMs: number }) => void)[], string[]] = [[], [], []];
    const pump = new Pump({
      outbox: () => outbox,
      now: () => now,
      start: (effect, { inherited, tries, signal }) => {
        started.push(`${effect.id} ${inherited ? "inherited" : "new"} ${tries}`);
        signal.addEventListener("abort", () => aborted.push(effect.id));
        return new Promise((resolve) => ends.push(resolve));
      },
      keep: (work) => void work,
      failed: () => {},
      landed: () => {},
    });
    return {
      pump,
      started,
      ends,
      aborted,
      at: (to) => {
        now = to;
        pump.sync();
      },
    };
  }
  const cancel = (n: number): Effect => ({ type: "CancelTool", id: `cancel/${n}`, nodeId: "n", callIds: [], reason: "" });
  test("[D5] an effect is started once in a life, also when it is done and still open", async () => {
    const b = bench([cancel(1)]);
    b.pump.sync();
    b.pump.sync();
    await settle();
    b.ends[0]?.("done");
    await settle();
    b.at(1_000_000);
    await settle();
    assert.deepEqual(b.started, ["cancel/1 inherited 0"]);
    assert.deepEqual(b.pump.inFlight(), []);
  });
  test("not before its time, and again when it asks for it", async () => {
    const b = bench([{ type: "CallModel", id: "m", notBefore: 100 }]);
    b.pump.sync();
    assert.equal(b.pump.nextStart(), 100);
    b.at(100);
    await settle();
    b.ends[0]?.({ retryInMs: 50 });
    await settle();
    assert.equal(b.pump.nextStart(), 150);
    b.at(149);
    await settle();
    b.at(150);
    await settle();
    assert.deepEqual(b.started, ["m inherited 0", "m inherited 1"]);
  });
  test("what is settled is stopped", async () => {
    const outbox = [cancel(1)];
    const b = bench(outbox);
    b.pump.sync();
    await settle();
    outbox.splice(0, 1, cancel(2));
    b.pump.sync();
    await settle();
    assert.deepEqual(b.aborted, ["cancel/1"]);
    assert.deepEqual(b.started, ["cancel/1 inherited 0", "cancel/2 new 0"]);
  });
});
