/** What each step of the machine returns beside the new state: effects that it settled, rows that clients have, and use of model calls. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bench, BUDGET, USAGE } from "../../../test/session/machine-bench.ts";
import type { SpendSum } from "../../ports/spend.ts";

const sum = (tokens: number, model = "p/m"): SpendSum => ({
  day: "2026-03-01",
  model,
  calls: 1,
  costUsd: 0.5,
  tokens,
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
});

test("[C3] a step says which effects it ended, and clients can't have more than the log", () => {
  const b = new Bench();
  b.published = 99;
  b.say("a");
  assert.equal(b.state.deliveredSeq, 1);
  b.published = 1;
  const step = b.reply("one");
  assert.deepEqual([step.settled, step.effects.map(({ id }) => id)], [["r1/t1/m0"], ["deliver/2"]]);
});

describe("[SP2] each model call counts once, in the sums since the ledger confirmed the last", () => {
  const report = (b: Bench) => {
    const { base, count, sums } = b.state.spend ?? { base: -1, count: -1, sums: [] };
    return [base, count, sums.reduce((tokens, each) => tokens + each.tokens, 0)];
  };
  const message = { role: "assistant", content: [{ type: "text", text: "x" }], api: "a", provider: "p", model: "m", usage: USAGE } as const;
  const replied = (b: Bench, tokens: number) =>
    b.apply({
      type: "ModelReplied",
      effectId: b.effect("CallModel").id,
      message: { ...message, stopReason: "stop", timestamp: 0 },
      calls: [],
      usage: USAGE,
      budget: BUDGET,
      spent: sum(tokens),
    });
  test("answers, and the sums begin again once they are confirmed", () => {
    const b = new Bench();
    b.say("a");
    assert.equal(b.state.spend, undefined);
    replied(b, 10);
    assert.deepEqual(report(b), [0, 1, 10]);
    b.say("b");
    replied(b, 20);
    assert.deepEqual(report(b), [0, 2, 30]);
    b.settled = 2;
    b.say("c");
    replied(b, 5);
    assert.deepEqual(report(b), [2, 3, 5]);
  });
  test("failures, and the run's tokens without a price", () => {
    const b = new Bench();
    b.say("a");
    const error = { reason: "model.overloaded", message: "x" } as const;
    const failed = (tokens: number) =>
      b.apply({
        type: "ModelFailed",
        effectId: b.effect("CallModel").id,
        error,
        retryable: true,
        models: 1,
        streamed: false,
        spent: sum(tokens),
      });
    failed(7);
    assert.deepEqual([report(b), b.thinking().unpriced], [[0, 1, 7], 7]);
    failed(0);
    assert.deepEqual([report(b), b.thinking().unpriced], [[0, 2, 7], 7]);
    failed(3);
    assert.deepEqual([report(b), b.thinking().unpriced], [[0, 3, 10], 10]);
  });
  test("summaries, those that failed too", () => {
    const b = new Bench();
    b.say("a");
    b.reply("one");
    b.apply({ type: "Reset" });
    b.archive();
    const error = { reason: "model.overloaded", message: "x" } as const;
    b.apply({ type: "SummarizeFailed", effectId: b.effect("Summarize").id, error, retryable: true, spent: sum(4) });
    assert.deepEqual(report(b), [0, 1, 4]);
    b.apply({ type: "Summarized", effectId: b.effect("Summarize").id, cursor: 3, summary: "", memories: "", spent: sum(6) });
    assert.deepEqual(report(b), [0, 2, 10]);
  });
});
