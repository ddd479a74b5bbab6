/** What a session sets aside for a model call, when it asks, and what it counts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { base, context, RUN } from "../../test/session/effect-bench.ts";
import { callTerms } from "../models/terms.ts";
import type { Usage } from "../../../protocol/gen/types.ts";
import type { CallTerms, ModelOutcome } from "../ports/model.ts";
import { sentence } from "../ports/result.ts";
import type { SpendAnswer, SpendAsk } from "../ports/spend.ts";
import { budgetOf } from "./run-settings.ts";
import { type Allowed, type CallAsk, SpendGate } from "./spend-gate.ts";

/** $0.01 of input and $0.10 of output at most. */
const PRICED: CallTerms = { output: 10_000, thinking: 0, inputUsd: 0.01, rates: { output: 0.000_01 } };
const config = { ...context.config, limits: { ...context.config.limits, runTokens: 50_000 } };

class Far {
  readonly asks: SpendAsk[] = [];
  now = 1_000;
  answer: (ask: SpendAsk) => SpendAnswer | Promise<SpendAnswer> = ({ need, report }) => ({
    ok: true,
    settled: report.count,
    grant: { costUsd: 3 * need.costUsd, tokens: 3 * need.tokens, calls: 64, until: this.now + 1_000 },
  });
  gate(terms: CallTerms | undefined | (() => CallTerms | undefined) = PRICED, noted: string[] = []): SpendGate {
    return new SpendGate({
      gateway: {
        reserveSpend: async (ask) => {
          this.asks.push(ask);
          return this.answer(ask);
        },
      },
      terms: () => (typeof terms === "function" ? terms() : terms),
      state: () => base,
      wall: () => this.now,
      failed: (_what, error) => void noted.push(error instanceof Error ? error.message : ""),
    });
  }
}
const ask = (over: Partial<CallAsk> = {}): CallAsk => ({
  model: { provider: "p", id: "m" },
  config,
  inputTokens: 1_000,
  cachedTokens: 0,
  maxTokens: undefined,
  thinkLevel: undefined,
  run: RUN,
  ownBudget: budgetOf({ config: over.config ?? config }, (over.run ?? RUN).origin),
  ...over,
});
/** The current model, for a run that has paused. */
const NOW = { model: { provider: "p", id: "m" }, config, maxTokens: undefined, thinkLevel: undefined } as const;
function allowed(result: Allowed): Extract<Allowed, { ok: true }>["call"] {
  assert.ok(result.ok, result.ok ? "" : result.error.message);
  return result.call;
}
const HEARD = { chars: 10, isAccepted: true, isStopped: false };
const replied = (used: Usage): ModelOutcome => ({
  kind: "replied",
  message: { role: "assistant", content: [], timestamp: 0, api: "x", provider: "p", model: "m", usage: used, stopReason: "stop" },
  calls: [],
  usage: used,
});
const failed = (used?: Usage): ModelOutcome => ({
  kind: "failed",
  error: { reason: "model.unreachable", message: "Broken off." },
  retryable: true,
  ...(used === undefined ? {} : { usage: used }),
});
const usage = (costUsd?: number) => ({ input: 100, output: 50, total: 150, ...(costUsd === undefined ? {} : { costUsd }) });

describe("a model call", () => {
  test("[SP1] sets its worst cost aside; calls under one grant ask once, as long as they use less", async () => {
    const far = new Far();
    const gate = far.gate();
    for (let call = 0; call < 20; call++) allowed(await gate.begin(ask())).end(replied(usage(0.001)), HEARD);
    assert.equal(far.asks.length, 1);
    assert.ok(Math.abs((far.asks[0]?.need.costUsd ?? 0) - 0.11) < 1e-9);
    assert.ok(Math.abs((far.asks[0]?.least.costUsd ?? 0) - 0.05096) < 1e-9);
    for (let call = 0; call < 4; call++) allowed(await gate.begin(ask())).end(replied(usage(0.11)), HEARD);
    assert.equal(far.asks.length, 2);
  });
  test("[SP1] asks again when the grant's time is over, and for another guest", async () => {
    const far = new Far();
    const gate = far.gate();
    allowed(await gate.begin(ask())).end(replied(usage(0)), HEARD);
    far.now += 1_000;
    allowed(await gate.begin(ask())).end(replied(usage(0)), HEARD);
    assert.equal(far.asks.length, 2);
    const guest = { kind: "channel", channel: "c", accountId: "a", senderId: "7", role: "guest" } as const;
    allowed(await gate.begin(ask({ run: { ...RUN, origin: guest } }))).end(replied(usage(0)), HEARD);
    assert.deepEqual(
      far.asks.map((asked) => asked.guest),
      [undefined, undefined, "c:a:7"],
    );
  });
  test("[SP1] gets a shorter answer when less is granted", async () => {
    const far = new Far();
    far.answer = () => ({ ok: true, settled: 0, grant: { costUsd: 0.07, tokens: 0, calls: 1, until: 9_999 } });
    assert.equal(allowed(await far.gate().begin(ask())).maxTokens, 6_000);
    assert.equal(allowed(await new Far().gate().begin(ask())).maxTokens, undefined);
    const thinking = new Far();
    thinking.answer = far.answer;
    assert.equal(allowed(await thinking.gate({ ...PRICED, thinking: 1_000 }).begin(ask())).maxTokens, 5_000);
  });
  test("[SP10] a run that has paused at its own limit, or at one of the ledger, fits when the limit was raised", async () => {
    const far = new Far();
    const gate = far.gate();
    const run = { ...RUN, spent: { input: 1, output: 1, total: 2, costUsd: 0.96 } };
    const refused = await gate.begin(ask({ run }));
    assert.ok(!refused.ok && refused.offer);
    const own = (costUsd: number): Promise<boolean> =>
      gate.fits({ ...NOW, run, offer: refused.offer ?? assert.fail(), ownBudget: { steps: 1, ms: 1, costUsd } });
    assert.deepEqual([await own(1), await own(1.01), await own(1.02)], [false, false, true]);
    assert.equal(far.asks.length, 0);
    const raise = { scope: "day", unit: "costUsd", period: "2026-03-01", amount: 1 } as const;
    const offer = { of: "period", raise, why: "", setting: "limits.dayCostUsd", least: { costUsd: 0.1, tokens: 0 } } as const;
    const ofDay = (): Promise<boolean> => gate.fits({ ...NOW, run: RUN, offer, ownBudget: { steps: 1, ms: 1, costUsd: 1 } });
    far.answer = () => ({ ok: false, settled: 0, error: { reason: "budget.day", message: "Used up." } });
    assert.equal(await ofDay(), false);
    far.answer = ({ need, report }) => ({ ok: true, settled: report.count, grant: { ...need, calls: 1, until: far.now + 1 } });
    assert.equal(await ofDay(), true);
    assert.deepEqual(far.asks.at(-1)?.least, offer.least);
    far.answer = () => Promise.reject(new Error("the gateway is away"));
    await assert.rejects(ofDay());
  });
  test("[SP10] a run that has paused fits when the current model needs less, or costs nothing", async () => {
    const far = new Far();
    let terms: CallTerms | undefined = PRICED;
    const gate = far.gate(() => terms);
    const run = { ...RUN, spent: { input: 1, output: 1, total: 2, costUsd: 0.96 } };
    const refused = await gate.begin(ask({ run }));
    assert.ok(!refused.ok && refused.offer);
    assert.deepEqual(refused.offer.size, { inputTokens: 1_000, cachedTokens: 0 });
    const fits = (offer = refused.offer ?? assert.fail()): Promise<boolean> =>
      gate.fits({ ...NOW, run, offer, ownBudget: { steps: 1, ms: 1, costUsd: 1 } });
    assert.equal(await fits(), false);
    terms = { ...PRICED, inputUsd: 0.001, rates: { output: 0.000_001 } };
    assert.equal(await fits(), true);
    // A question of an earlier version does not know how large the call was.
    const { size: _size, ...old } = refused.offer;
    assert.equal(await fits(old), false);
    terms = undefined;
    assert.equal(await fits(), true);
  });
  test("[SP1] [R1] is refused, without a question, when the run's own budget leaves less than its least", async () => {
    const far = new Far();
    const refused = await far.gate().begin(ask({ run: { ...RUN, spent: { input: 1, output: 1, total: 2, costUsd: 0.96 } } }));
    assert.ok(!refused.ok && !refused.retryable);
    assert.equal(refused.error.reason, "budget.cost");
    assert.match(sentence(refused.error), /used \$0\.96 of its \$1\.00.*Say "continue".*limits\.runCostUsd/);
    const origin = { kind: "schedule", jobId: "report", budget: { steps: 12, ms: 600_000, costUsd: 0.01 } } as const;
    const ofJob = await far.gate().begin(ask({ run: { ...RUN, origin } }));
    assert.ok(!ofJob.ok);
    assert.match(sentence(ofJob.error), /its \$0\.01, .*A job may use no more in one run: let it do less at once\.$/);
    // The owner's own limit is lower than what a job may use.
    const lower = { ...config, limits: { ...config.limits, runCostUsd: 0.02 } };
    const wide = { ...origin, budget: { ...origin.budget, costUsd: 0.25 } };
    const ofOwner = await far.gate().begin(ask({ config: lower, run: { ...RUN, origin: wide } }));
    assert.ok(!ofOwner.ok);
    assert.match(
      sentence(ofOwner.error),
      /its \$0\.02, .*This limit is your setting `limits\.runCostUsd`: raise it, or let the job do less at once\.$/,
    );
    assert.equal(refused.offer?.least?.costUsd.toFixed(5), "0.05096");
    const near = allowed(await far.gate().begin(ask({ run: { ...RUN, spent: { input: 1, output: 1, total: 2, costUsd: 0.9 } } })));
    assert.equal(near.maxTokens, 9_000);
    assert.equal(far.asks.length, 1);
  });
  test("[SP1] [F17] of a model without a price counts tokens, toward the run's budget too", async () => {
    const far = new Far();
    const unpriced: CallTerms = { output: 10_000, thinking: 0, inputUsd: 0 };
    const sum = allowed(await far.gate(unpriced).begin(ask())).end(replied(usage()), HEARD).spent;
    assert.deepEqual(far.asks[0]?.need, { costUsd: 0, tokens: 11_000 });
    assert.deepEqual([sum?.costUsd, sum?.tokens], [0, 150]);
    const refused = await far.gate(unpriced).begin(ask({ run: { ...RUN, unpriced: 46_000 } }));
    assert.ok(!refused.ok);
    assert.match(sentence(refused.error), /46,000 tokens of its 50,000 tokens.*limits\.runTokens/);
  });
  test("[SP2] that its provider did not count is estimated from what was sent and received; one that was not made is nothing", async () => {
    const gate = new Far().gate();
    const ended = async (outcome: ModelOutcome, chars: number, isStopped = false, isAccepted = chars > 0) => {
      const { outcome: counted, spent } = allowed(await gate.begin(ask())).end(outcome, { chars, isAccepted, isStopped });
      // The run's own budget counts the same.
      assert.equal(counted.usage?.output, spent?.output);
      return spent;
    };
    const stopped = await ended(failed(), 4_000, true);
    assert.deepEqual([stopped?.input, stopped?.output], [1_000, 1_200]);
    assert.ok(Math.abs((stopped?.costUsd ?? 0) - 0.022) < 1e-9);
    assert.deepEqual(await ended(failed(), 4_000), stopped);
    assert.deepEqual(await ended(replied({ input: 0, output: 0, total: 0 }), 4_000), stopped);
    assert.equal((await ended(failed(), 0, true))?.input, 1_000);
    // It has taken the call, and nothing of its answer came.
    const silent = await ended(failed(), 0, false, true);
    assert.deepEqual([silent?.input, silent?.output], [1_000, 0]);
    const late = { ...failed(), error: { reason: "model.timeout", message: "Too late." } } as const;
    assert.equal((await ended(late, 0))?.input, 1_000);
    // Nothing had begun: the provider has refused the call.
    assert.equal(await ended(failed(), 0), undefined);
    assert.equal(await ended(failed({ input: 0, output: 0, total: 0 }), 0), undefined);
    const call = allowed(await gate.begin(ask()));
    call.cancel();
    assert.deepEqual(gate.spent().open, { costUsd: 0, tokens: 0 });
  });
  test("[SP2] that broke off counts no less than what had arrived, whatever the provider counted at its begin", async () => {
    const gate = new Far().gate();
    const begun = { input: 900, output: 1, cacheRead: 100, total: 1_001, costUsd: 0.01 };
    const ended = async (chars: number) =>
      allowed(await gate.begin(ask())).end(failed(begun), { chars, isAccepted: true, isStopped: false }).spent;
    const long = await ended(4_000);
    assert.deepEqual([long?.input, long?.cacheRead, long?.output], [900, 100, 1_200]);
    assert.ok(Math.abs((long?.costUsd ?? 0) - (0.01 + 1_199 * 0.000_01)) < 1e-9);
    assert.equal((await ended(0))?.output, 1);
    const whole = allowed(await gate.begin(ask())).end(replied(begun), { chars: 4_000, isAccepted: true, isStopped: false });
    assert.equal(whole.spent?.output, 1);
  });
  test("[SP12] a provider's count beyond what the call can have used is cut and noted; a plausible one is not", async () => {
    const noted: string[] = [];
    const far = new Far();
    const begin = async (terms: CallTerms) => allowed(await far.gate(terms, noted).begin(ask()));
    // Four times the estimated input and twice the longest answer are plausible.
    const most = { input: 8_096, output: 20_000, cacheRead: 0, cacheWrite: 0, total: 28_096, costUsd: 0.2 };
    const call = await begin(PRICED);
    assert.deepEqual(call.end(replied(most), HEARD).outcome.usage, most);
    assert.deepEqual(noted, []);
    const lie = { input: 1e12, output: 1e12, cacheRead: 1e12, cacheWrite: 1e12, total: 4e12, costUsd: 1e9 };
    const { outcome, spent } = call.end(replied(lie), HEARD);
    const capped = outcome.usage ?? lie;
    assert.deepEqual([capped.input, capped.output, capped.cacheRead, capped.cacheWrite, capped.total], [8_096, 20_000, 0, 0, 28_096]);
    assert.ok(Math.abs((capped.costUsd ?? 0) - 0.280_96) < 1e-9);
    assert.match(
      noted.join(),
      /p\/m counted 4000000000000 tokens, \$1000000000\.00, more than the call can have used; 28096 tokens, \$0\.28 count/,
    );
    // The ledger gets no more either.
    assert.equal(spent?.costUsd, capped.costUsd);
    const unpriced = await begin({ output: 10_000, thinking: 0, inputUsd: 0 });
    const { costUsd: _, ...tokens } = lie;
    assert.equal(unpriced.end(failed(tokens), HEARD).spent?.tokens, 28_096);
    // The price of the whole input counts, when the provider's cache did not have it.
    const cold = await begin({ ...PRICED, inputUsd: 0.000_1, dearest: { input: 0.000_01, output: 0.000_01 } });
    const paid = { input: 1_000, output: 10, total: 1_010, costUsd: 0.01 };
    assert.equal(cold.end(replied(paid), HEARD).spent?.costUsd, 0.01);
  });
  test("[SP1] an answer of the ledger that is lost can be tried again; a refusal cannot", async () => {
    const far = new Far();
    far.answer = () => Promise.reject(new Error("lost"));
    const lost = await far.gate().begin(ask());
    assert.ok(!lost.ok && lost.retryable);
    far.answer = () => ({ ok: false, settled: 0, error: { reason: "budget.day", message: "Full." } });
    const refused = await far.gate().begin(ask());
    assert.ok(!refused.ok && !refused.retryable && refused.error.reason === "budget.day");
  });
  test("[SP1] the ledger's question ends the grant and names what the open call may use", async () => {
    const far = new Far();
    const gate = far.gate();
    const call = allowed(await gate.begin(ask()));
    assert.ok(Math.abs(gate.spent().open.costUsd - 0.11) < 1e-9);
    call.end(replied(usage(0.01)), HEARD);
    assert.deepEqual(gate.spent().open, { costUsd: 0, tokens: 0 });
    allowed(await gate.begin(ask()));
    assert.equal(far.asks.length, 2);
  });
});

describe("[SP1] the terms of a call", () => {
  const of = (over: Partial<CallAsk>, price?: { input: number; output: number; cacheRead?: number; cacheWrite?: number }) =>
    callTerms(
      { provider: "own", id: "m" },
      {
        ...config,
        providers: { own: { baseUrl: "http://127.0.0.1:1", wire: "openai-completions", maxTokens: 2_000, ...(price ? { price } : {}) } },
      },
      ask(over),
    );
  test("are the configured price, the dearest rate for input, and the longest answer", () => {
    const terms = of({ inputTokens: 1_000_000 }, { input: 2, output: 10, cacheRead: 0.5, cacheWrite: 3 });
    const dearest = { input: 0.000_003, output: 0.000_01 };
    assert.deepEqual(terms, { output: 2_000, thinking: 0, inputUsd: 3, rates: { output: 0.000_01 }, dearest });
    assert.equal(of({ maxTokens: 500 })?.output, 500);
  });
  test("count cached input at the rate of the cache", () => {
    const price = { input: 2, output: 10, cacheRead: 0.5, cacheWrite: 3 };
    assert.equal(of({ inputTokens: 1_000_000, cachedTokens: 400_000 }, price)?.inputUsd, 0.2 + 1.8);
    assert.equal(of({ inputTokens: 1_000_000, cachedTokens: 5_000_000 }, price)?.inputUsd, 0.5);
  });
  test("have no rates when the price is not known; the demo has none at all", () => {
    assert.equal(of({})?.rates, undefined);
    assert.equal(callTerms({ provider: "demo", id: "demo" }, config, ask()), undefined);
  });
  test("include the thoughts of a model that thinks within a budget, and the dearer rates of a long request", () => {
    const claude = callTerms({ provider: "anthropic", id: "claude-haiku-4-5" }, config, ask({ thinkLevel: "high", maxTokens: 1_000 }));
    assert.deepEqual([claude?.output, claude?.thinking], [17_384, 16_384]);
    const rates = (inputTokens: number) =>
      callTerms({ provider: "openai", id: "gpt-5.6-sol" }, config, ask({ inputTokens }))?.rates?.output ?? 0;
    assert.deepEqual([rates(272_000), rates(272_001)], [0.000_02, 0.000_03]);
  });
});
