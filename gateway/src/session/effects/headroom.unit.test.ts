/** Whether a model call is made or headroom first, and who is asked for summaries: the interpreters against far ends that the test plays. */
import { archiving, base, flight, media, ORIGIN, replied, RUN as RUN_BASE, unlimited } from "../../../test/session/effect-bench.ts";
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { asAgentId } from "../../../../protocol/gen/types.ts";
import type { GsvError } from "../../ports/result.ts";
import type { ModelOutcome, ModelRequest } from "../../ports/model.ts";
import type { RunContext } from "../../ports/run-context.ts";
import { History } from "../history.ts";
import type { EventBody } from "../machine/event.ts";
import type { Archiving, KnownContext, State, Thinking } from "../machine/state.ts";
import { RunContexts } from "../run-context.ts";
import { SUMMARY_SYSTEM } from "../summary.ts";
import { appendMemory, PARKED_TRIES } from "./append-memory.ts";
import { deciding } from "../../../test/session/effect-bench.ts";
import { ModelCaller } from "./call-model.ts";
import { ContextSize } from "./context-size.ts";
import { deleteMedia } from "./delete-media.ts";
import { summarize } from "./summarize.ts";
import type { After } from "../../../../protocol/runtime/within.ts";

const RUN: Thinking = { ...RUN_BASE, phase: "thinking", attempt: 0, tries: 0, restarts: 0, deadline: 0 };
type Compaction = RunContext["config"]["compaction"];
const contextOf = (compaction?: Compaction, provider = "p"): RunContext => ({
  version: "v1",
  config: {
    model: { provider, id: "m", fallbacks: [] },
    timeouts: { llmMs: 1_000, toolMs: 60_000 },
    limits: { stepsPerRun: 5, runMs: 1_000, runCostUsd: 1 },
    session: { mainKey: "main" },
    userTimezone: "Europe/Amsterdam",
    ...(compaction ? { compaction } : {}),
  },
  agent: { id: asAgentId("main") },
  skillPins: [],
  tools: [],
  nodes: [],
});
/** Exchanges of about 300 tokens each. */
function talk(exchanges: number): History {
  const history = new History();
  for (let n = 0; n < exchanges; n++) {
    const at = { at: n, runId: `r${n}` };
    const said = `question ${n} ${"x".repeat(480)}`;
    history.append({
      ...at,
      seq: 2 * n + 1,
      kind: "user",
      messageId: `m${n}`,
      origin: ORIGIN,
      message: { role: "user", content: said, timestamp: 0 },
    });
    const answer = replied(`answer ${n} ${"y".repeat(480)}`);
    if (answer.kind === "replied")
      history.append({ ...at, seq: 2 * n + 2, kind: "assistant", step: 1, attempt: 0, calls: [], message: answer.message });
  }
  const last = 2 * exchanges + 1;
  const message = { role: "user", content: "and now?", timestamp: 0 } as const;
  history.append({ seq: last, at: last, runId: "run", kind: "user", messageId: "m", origin: ORIGIN, message });
  return history;
}
const contexts = (context: RunContext): RunContexts =>
  new RunContexts(
    {
      runContext: (_key, known) => Promise.resolve(known === "v1" ? null : context),
      modelAccess: () => Promise.resolve({ apiKeys: {}, headers: {} }),
      secretValues: () => Promise.resolve([]),
    },
    () => "k",
  );
const endless: After = () => () => {};
const atOnce: After = (_ms, work) => {
  work();
  return () => {};
};

interface Asked {
  readonly event: EventBody | undefined;
  readonly requests: readonly ModelRequest[];
}
async function callModel(over: {
  readonly window: number;
  readonly exchanges?: number;
  readonly compaction?: Compaction;
  readonly run?: Partial<Thinking>;
  readonly known?: KnownContext;
  readonly state?: Partial<State>;
  readonly outcome?: ModelOutcome;
  readonly refusal?: GsvError;
}): Promise<Asked> {
  const history = talk(over.exchanges ?? 20);
  const requests: ModelRequest[] = [];
  const state: State = { ...base, run: { ...RUN, ...over.run }, ...(over.known ? { context: over.known } : {}), ...over.state };
  const caller = new ModelCaller({
    state: () => state,
    history: () => history,
    size: new ContextSize({ history: () => history, contextWindow: () => over.window, wall: () => 1_000 }),
    contexts: contexts(contextOf(over.compaction)),
    prompts: { assemble: () => Promise.resolve({ ok: true, value: { system: "s".repeat(400), sections: [] } }) },
    model: {
      takesImages: () => true,
      refusal: () => over.refusal,
      call: (request) => {
        requests.push(request);
        return Promise.resolve(over.outcome ?? replied("fine"));
      },
    },
    spend: unlimited,
    native: { entries: [] },
    decide: deciding,
    media,
    mediaNumbers: () => new Map(),
    untranscribed: () => [],
    commit: () => {},
    wall: () => 1_000,
    now: () => state.clock.now,
    delta: () => {},
    wantsThoughts: () => false,
    after: endless,
    failed: (_what, error) => assert.fail(String(error)),
  });
  const event = await caller.call({ type: "CallModel", id: "r1/t1/m0", notBefore: 0 }, flight());
  return { event, requests };
}

describe("[R7] before a model call", () => {
  test("with headroom the model is called with the whole conversation", async () => {
    const { event, requests } = await callModel({ window: 100_000 });
    assert.deepEqual([event?.type, requests[0]?.messages.length], ["ModelReplied", 41]);
  });
  test("without headroom the model is not called, and the plan keeps the end of the conversation", async () => {
    const { event, requests } = await callModel({ window: 8_000 });
    assert.equal(requests.length, 0);
    assert.ok(event?.type === "ContextFull" && event.plan.count > 10 && event.plan.count + event.plan.kept === 41);
  });
  test("the provider's count replaces the estimate, larger or smaller, for that model only", async () => {
    const much: KnownContext = { tokens: 90_000, seq: 40, model: "p/m" };
    assert.equal((await callModel({ window: 100_000, known: much })).event?.type, "ContextFull");
    assert.equal((await callModel({ window: 100_000, known: { ...much, model: "p/other" } })).event?.type, "ModelReplied");
    const little: KnownContext = { tokens: 3_000, seq: 40, model: "p/m" };
    assert.equal((await callModel({ window: 10_000, known: little })).event?.type, "ModelReplied");
    assert.equal((await callModel({ window: 10_000 })).event?.type, "ContextFull");
  });
  test("an implausible count is ignored", async () => {
    assert.equal((await callModel({ window: 3_000, known: { tokens: 12, seq: 40, model: "p/m" } })).event?.type, "ContextFull");
  });
  test("tokens decide, never the number of messages", async () => {
    assert.equal((await callModel({ window: 1_000_000, exchanges: 1_000 })).event?.type, "ModelReplied");
    assert.equal((await callModel({ window: 1_200, exchanges: 3 })).event?.type, "ContextFull");
  });
  test("[R8] nothing is compacted for a model that cannot be called: the reason comes first", async () => {
    const refusal: GsvError = { reason: "model.not_configured", message: "Unknown provider." };
    assert.equal((await callModel({ window: 4_000 })).event?.type, "ContextFull");
    const { event, requests } = await callModel({ window: 4_000, refusal });
    assert.ok(event?.type === "ModelFailed" && !event.retryable);
    assert.deepEqual([event.error, requests.length], [refusal, 0]);
  });
  test("[R6] [P10] a refusal for a missing key ends with the way back of the place whose model counts", async () => {
    const refusal: GsvError = {
      reason: "model.not_configured",
      message: "No key is set for P.",
      hint: "Run `gsv config set apiKeys.p -`.",
    };
    const hint = async (over: Parameters<typeof callModel>[0]): Promise<string | undefined> => {
      const { event } = await callModel({ ...over, refusal });
      return event?.type === "ModelFailed" ? event.error.hint : undefined;
    };
    assert.match(
      (await hint({ window: 4_000 })) ?? "",
      /apiKeys\.p -`, or use the built-in demo model: `gsv config set model\.provider demo`\.$/,
    );
    const own = { settings: { model: { provider: "p", id: "m" } } };
    assert.match(
      (await hint({ window: 4_000, state: own })) ?? "",
      /apiKeys\.p -`, or go back to the configured model: `\/model default`\.$/,
    );
  });
  test("[R10] when compaction is tried already, disabled or impossible, the view is shortened", async () => {
    for (const over of [
      { run: { compactionTried: true } },
      { compaction: { enabled: false } },
      { state: { autoResetAfter: 5_000 } },
    ] as const) {
      const { event, requests } = await callModel({ window: 4_000, ...over });
      assert.equal(event?.type, "ModelReplied");
      assert.ok(JSON.stringify(requests[0]?.messages).includes("characters were left out here"), JSON.stringify(over));
      assert.equal(requests[0]?.messages.length, 41);
    }
  });
  test("[P4.4] an overflow comes with a plan that keeps half as much, however large the window is said to be", async () => {
    const outcome: ModelOutcome = { kind: "failed", error: { reason: "model.context_overflow", message: "Too long." }, retryable: false };
    const { event } = await callModel({ window: 1_000_000, outcome });
    assert.ok(event?.type === "ModelFailed" && event.plan && event.plan.count > 20);
    const again = await callModel({ window: 1_000_000, outcome, run: { overflows: 1 } });
    assert.ok(JSON.stringify(again.requests[0]?.messages).includes("characters were left out here"));
  });
});

const ARCHIVING: Archiving = { ...archiving, kind: "compact", stage: "summarize", upto: 20, count: 20, kept: 1 };
async function ask(
  over: Partial<Archiving>,
  more: {
    readonly compaction?: Compaction;
    readonly provider?: string;
    readonly isOwnersSession?: boolean;
    readonly outcome?: ModelOutcome;
    readonly wall?: number;
  } = {},
): Promise<Asked> {
  const history = talk(10);
  const requests: ModelRequest[] = [];
  const identity = { ...base.identity, isOwnersSession: more.isOwnersSession ?? true };
  const state: State = {
    ...base,
    identity,
    run: { ...ARCHIVING, ...over },
    work: { summary: "", memories: "" },
    updatedAt: Date.UTC(2026, 2, 1, 22, 59),
  };
  const event = await summarize({ type: "Summarize", id: "s1/0", notBefore: 0 }, flight(), {
    state: () => state,
    history: () => history,
    contexts: contexts(contextOf(more.compaction, more.provider)),
    model: {
      takesImages: () => true,
      refusal: () => undefined,
      call: (request) => {
        requests.push(request);
        return Promise.resolve(more.outcome ?? replied("<summary>gist</summary><memories># Fact\n- tea</memories>"));
      },
    },
    spend: unlimited,
    contextWindow: () => 8_000,
    wall: () => more.wall ?? Date.UTC(2026, 2, 1, 23, 5),
    after: endless,
    failed: (_what, error) => assert.fail(String(error)),
  });
  return { event, requests };
}

describe("[R8] a chunk of a summary", () => {
  test("is about a quarter of the window, asked without tools or conversation, and says where the next begins", async () => {
    const { event, requests } = await ask({});
    assert.equal(requests[0]?.systemPrompt, SUMMARY_SYSTEM);
    assert.deepEqual([requests[0]?.tools, requests[0]?.messages.length], [[], 1]);
    assert.ok(event?.type === "Summarized" && event.cursor > 10 && event.cursor < 20);
    assert.deepEqual([event.summary, event.memories], ["gist", "**Fact**\n- tea"]);
  });
  test("days and times are the user's: today for a compaction, that of the last activity for a reset", async () => {
    const compaction = await ask({});
    assert.deepEqual(compaction.event?.type === "Summarized" && compaction.event.day, { date: "2026-03-02", time: "00:05" });
    const reset = await ask({ kind: "reset" });
    assert.deepEqual(reset.event?.type === "Summarized" && reset.event.day, { date: "2026-03-01", time: "23:59" });
  });
  test("`compaction.model` is asked, else the run's", async () => {
    const { requests } = await ask({}, { compaction: { model: { provider: "cheap", id: "one" } } });
    assert.deepEqual(requests[0]?.model, { provider: "cheap", id: "one" });
    assert.deepEqual((await ask({})).requests[0]?.model, { provider: "p", id: "m" });
  });
  test("[S8] memories are asked for in the owner's own conversation only, and not when that is switched off", async () => {
    for (const more of [{ isOwnersSession: false }, { compaction: { extractMemories: false } }]) {
      const { event, requests } = await ask({}, more);
      assert.ok(!JSON.stringify(requests[0]?.messages).includes("<memories>"));
      assert.equal(event?.type === "Summarized" && event.memories, "");
      assert.equal((await ask({ kind: "reset" }, more)).requests.length, 0);
    }
  });
  test("the demo model is never asked", async () => {
    const { event, requests } = await ask({}, { provider: "demo" });
    assert.ok(requests.length === 0 && event?.type === "SummarizeFailed" && !event.retryable);
    assert.equal((await ask({ kind: "reset" }, { provider: "demo" })).event?.type, "Summarized");
  });
  test("an empty answer counts as a failure and costs what it cost", async () => {
    const { event } = await ask({}, { outcome: replied("  ") });
    assert.ok(event?.type === "SummarizeFailed" && event.retryable && event.usage?.total === 2);
  });
});

describe("[K27] effects that are never given up", () => {
  const effect = { type: "AppendMemory", id: "memory/1", date: "2026-03-01" } as const;
  test("a daily file that can't be written is retried, reported once, and never given up", async () => {
    const events: EventBody[] = [];
    const ports = {
      state: () => base,
      text: () => "- tea",
      memory: {
        append: () => Promise.resolve({ ok: false as const, error: { reason: "storage.failed" as const, message: "away" } }),
        quarantine: () => Promise.reject(new Error("nothing of others was read")),
      },
      wall: () => 1,
      commit: (event: EventBody) => void events.push(event),
    };
    for (let tries = 0; tries < 3 * PARKED_TRIES; tries++) assert.notEqual(await appendMemory(effect, flight({ tries }), ports), "done");
    assert.deepEqual(
      events.map(({ type }) => type),
      ["Parked"],
    );
  });
  test("[R5] files that the fresh conversation or a waiting message names stay; a bucket that hangs is a failure", async () => {
    const file = (r2Key: string) => ({
      role: "user" as const,
      content: [{ type: "image" as const, r2Key, mimeType: "image/png" }],
      timestamp: 0,
    });
    const kept: string[][] = [];
    const events: string[] = [];
    const ports = (hangs: boolean) => ({
      state: () => base,
      rows: (from: number) =>
        from > 7
          ? []
          : [{ seq: 7, at: 0, runId: "r", kind: "user" as const, messageId: "m", origin: ORIGIN, message: file("media/s/fresh.png") }],
      queued: () => [{ messageId: "q", runId: "r", origin: ORIGIN, message: file("media/s/waiting.png"), directives: {} }],
      media: {
        delete: (_key: string, _before: number, keep: ReadonlySet<string>) => {
          kept.push([...keep].sort());
          return hangs ? new Promise<never>(() => {}) : Promise.resolve({ ok: true as const, value: 3 });
        },
      },
      after: hangs ? atOnce : endless,
      commit: (event: EventBody) => void events.push(event.type),
      deleted: (_id: string, count: number) => void events.push(String(count)),
      dropNumbers: (keep: ReadonlySet<string>) => void events.push(`numbers but ${keep.size}`),
    });
    const gone = { type: "DeleteMedia", id: "media/1", before: 5, from: 7 } as const;
    assert.equal(await deleteMedia(gone, flight(), ports(false)), "done");
    assert.deepEqual([kept, events], [[["media/s/fresh.png", "media/s/waiting.png"]], ["3", "numbers but 2", "EffectDone"]]);
    assert.notEqual(await deleteMedia(gone, flight(), ports(true)), "done");
  });
});
