/** CallModel: requests, answers, failures and lost calls. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ModelOutcome, ModelRequest } from "../../ports/model.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { State, Thinking } from "../machine/state.ts";
import type { Delta } from "../publisher.ts";
import type { Received } from "../spend-gate.ts";
import { type Confirmed, RunContexts } from "../run-context.ts";
import { deciding } from "../../../test/session/effect-bench.ts";
import { ModelCaller, type CallModelPorts } from "./call-model.ts";
import { ContextSize } from "./context-size.ts";
import { settle, flight, RUN, media, thinking, context, history, replied, unlimited } from "../../../test/session/effect-bench.ts";

describe("CallModel", () => {
  interface Bench {
    readonly caller: ModelCaller;
    readonly deltas: Delta[];
    readonly asked: string[][];
    readonly requests: ModelRequest[];
    /** What timers run when they end. */
    readonly timers: Set<() => void>;
  }
  function bench(model: (request: ModelRequest) => Promise<ModelOutcome>, over: Partial<CallModelPorts> = {}): Bench {
    const [deltas, asked, requests]: [Delta[], string[][], ModelRequest[]] = [[], [], []];
    const timers = new Set<() => void>();
    const caller = new ModelCaller({
      state: () => thinking,
      history: () => history,
      size: new ContextSize({ history: () => history, contextWindow: () => 100_000, wall: () => 7 }),
      contexts: new RunContexts(
        {
          runContext: (_key, known) => Promise.resolve(known === "v1" ? null : context),
          secretValues: () => Promise.resolve([]),
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
        refusal: () => undefined,
        call: (request) => {
          requests.push(request);
          return model(request);
        },
      },
      spend: unlimited,
      native: { entries: [] },
      decide: deciding,
      media,
      mediaNumbers: () => new Map(),
      untranscribed: () => [],
      commit: () => {},
      wall: () => 7,
      now: () => thinking.clock.now,
      delta: (delta) => deltas.push(delta),
      wantsThoughts: () => false,
      after: (_ms, work) => {
        timers.add(work);
        return () => timers.delete(work);
      },
      failed: () => {},
      ...over,
    });
    return { caller, deltas, asked, requests, timers };
  }
  const effect: EffectOf<"CallModel"> = { type: "CallModel", id: "r1/t1/m2", notBefore: 0 };

  test("[SP10] a run that looks at its limits is told the current ones, and calls no model", async () => {
    const looking: State = { ...thinking, run: { ...(thinking.run as Thinking), looksAtLimit: true } };
    const b = bench(() => assert.fail("a model was called"), { state: () => looking });
    const event = await b.caller.call(effect, flight());
    assert.ok(event?.type === "LimitsKnown");
    assert.deepEqual([event.effectId, event.budget.steps], [effect.id, context.config.limits.stepsPerRun]);
    const silent = bench(() => assert.fail("a model was called"), {
      state: () => looking,
      contexts: new RunContexts(
        {
          runContext: () => Promise.reject(new Error("no")),
          secretValues: () => Promise.resolve([]),
          modelAccess: () => Promise.resolve(null),
        },
        () => "k",
      ),
    });
    const failed = await silent.caller.call(effect, flight());
    assert.ok(failed?.type === "ModelFailed" && failed.budget === undefined);
  });
  test("[C4] text is streamed as it arrives, with its offset", async () => {
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
  test("[C8] [CT13] thoughts are streamed from when they are wanted, at their own offset, and not otherwise", async () => {
    for (const wantedFrom of [0, 1, Number.POSITIVE_INFINITY]) {
      let asked = 0;
      const b = bench(
        (request) => {
          for (const thought of ["Hm", ", so"]) request.onThought?.(thought);
          request.onText("Two.");
          return Promise.resolve(replied("Two."));
        },
        { wantsThoughts: (runId) => runId === "run" && asked++ >= wantedFrom },
      );
      await b.caller.call(effect, flight());
      assert.deepEqual(
        b.deltas.map(({ offset, text, isThought = false }) => [offset, text, isThought]),
        [
          [0, "Hm", true],
          [2, ", so", true],
        ]
          .slice(wantedFrom)
          .concat([[0, "Two.", false]]),
      );
    }
  });
  test("[SP2] what broke off counts with the arguments that came, and as taken where the provider has taken it", async () => {
    const ended: Received[] = [];
    const call = {
      maxTokens: undefined,
      cancel: () => {},
      end: (outcome: ModelOutcome, received: Received) => {
        ended.push(received);
        return { outcome };
      },
    };
    const broken: ModelOutcome = { kind: "failed", error: { reason: "model.bad_answer", message: "It broke off." }, retryable: true };
    for (const has of ["nothing", "taken", "arguments"]) {
      const b = bench(
        (request) => {
          if (has !== "nothing") request.onAccepted?.();
          if (has === "arguments") for (const length of [2_000, 3_000]) request.onArguments?.(length);
          return Promise.resolve(broken);
        },
        { spend: { ...unlimited, begin: () => Promise.resolve({ ok: true, call }) } },
      );
      await b.caller.call(effect, flight());
    }
    assert.deepEqual(ended, [
      { chars: 0, isAccepted: false, isStopped: false },
      { chars: 0, isAccepted: true, isStopped: false },
      { chars: 5_000, isAccepted: true, isStopped: false },
    ]);
  });
  test("[A2] keys are fetched for one provider only, and again only after a change", async () => {
    const b = bench(() => Promise.resolve(replied("x")));
    await b.caller.call(effect, flight());
    await b.caller.call(effect, flight());
    assert.deepEqual(b.asked, [["a"]]);
  });
  test("the context is fetched unless a message has just confirmed its version", async () => {
    const [asked, keys]: [(string | undefined)[], string[]] = [[], []];
    let version = "v1";
    const contexts = new RunContexts(
      {
        runContext: (_key, known) => {
          asked.push(known);
          return Promise.resolve(known === version ? null : { ...context, version });
        },
        secretValues: () => Promise.resolve([]),
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
    contexts.confirm("v1", 0);
    assert.equal(await use(0), "v1");
    assert.deepEqual(asked, [undefined], "what is not known must be asked for");
    contexts.confirm("v1", 1000);
    assert.equal(await use(1001), "v1");
    assert.equal(asked.length, 1);
    // Said once counts once, and not for long.
    await use(1002);
    assert.equal(asked.length, 2);
    contexts.confirm("v1", 2000);
    await use(3000);
    assert.equal(asked.length, 3);
    version = "v2";
    contexts.confirm("v2", 4000);
    assert.equal(await use(4000), "v2");
    assert.deepEqual([asked.length, keys], [4, ["a", "a"]]);
    // One that is about to come is waited for, and counts as one that has come.
    const coming = Promise.withResolvers<Confirmed | undefined>();
    contexts.confirmSoon(coming.promise);
    const waiting = use(5000);
    coming.resolve({ version: "v2", at: 5010 });
    assert.equal(await waiting, "v2");
    assert.equal(asked.length, 4);
    // A clock that was set back makes nothing fresh that came before.
    contexts.confirmSoon(Promise.resolve({ version: "v2", at: 5500 }));
    await new Promise(setImmediate);
    await use(5400);
    assert.equal(asked.length, 5);
    for (const [soon, now] of [
      [{ version: "v2", at: 6000 }, 7000],
      [{ version: "v1", at: 8000 }, 8000],
      [undefined, 9000],
    ] as const) {
      const before: number = asked.length;
      contexts.confirmSoon(Promise.resolve(soon));
      await use(now);
      assert.equal(asked.length, before + 1, JSON.stringify(soon));
    }
  });
  test("[R2] each try calls its own model", async () => {
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
  test("[P5] a model client that never ends is timed out and stopped", async () => {
    const b = bench(() => new Promise(() => {}));
    const call = b.caller.call(effect, flight());
    await settle();
    for (const end of b.timers) end();
    const event = await call;
    assert.equal(event?.type === "ModelFailed" && event.error.reason, "model.timeout");
    assert.equal(b.requests[0]?.signal.aborted, true);
    assert.equal(b.timers.size, 0);
  });
  test("[AD8] [DG4] a call takes no longer than its run may, the time not counted that it waited", async () => {
    const { run } = thinking;
    assert.ok(run.phase === "thinking");
    const at = async (now: number, more: Partial<Thinking> = {}) => {
      const state = (): State => ({ ...thinking, run: { ...run, startedAt: 1_000, ...more } });
      const b = bench(() => new Promise(() => {}), { now: () => now, state });
      void b.caller.call(effect, flight());
      await settle();
      return b.requests[0]?.timeoutMs;
    };
    const { llmMs } = context.config.timeouts;
    const { runMs } = context.config.limits;
    assert.equal(await at(1_000), Math.min(llmMs, runMs + 1));
    assert.equal(await at(1_000 + runMs - 200), 201);
    assert.equal(await at(1_000 + runMs - 200, { waitedMs: 300 }), 501);
    assert.equal(await at(1_000 + runMs - 200, { extra: { ms: 400 } }), 601);
    assert.equal(await at(1_000 + runMs + 60_000), 1, "it is over when the call ends");
  });
  test("[R3] a call that is no longer wanted reports nothing, and its late text is dropped", async () => {
    const stop = new AbortController();
    const b = bench(() => new Promise(() => {}));
    const call = b.caller.call(effect, flight({ signal: stop.signal }));
    await settle();
    stop.abort();
    assert.equal(await call, undefined);
    b.requests[0]?.onText("late");
    assert.deepEqual(b.deltas, []);
  });
  test("an exception becomes a retryable failure", async () => {
    const rejects = (): Promise<never> => Promise.reject(new Error("boom"));
    for (const b of [
      bench(rejects),
      bench(() => Promise.resolve(replied("x")), { prompts: { assemble: rejects } }),
      bench(() => Promise.resolve(replied("x")), {
        contexts: new RunContexts({ runContext: () => Promise.resolve(context), modelAccess: rejects, secretValues: rejects }, () => "k"),
      }),
      bench(() => Promise.resolve(replied("x")), {
        contexts: new RunContexts({ runContext: rejects, modelAccess: rejects, secretValues: rejects }, () => "k"),
      }),
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
