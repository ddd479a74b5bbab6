/** Calls of the model without an answer, as the run's record keeps them. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Bench, BUDGET } from "../../../../test/session/machine-bench.ts";
import { FAILED_CALLS, LIMITS } from "../limits.ts";
import { modelEffectId } from "../ids.ts";
import type { SentCall } from "../log.ts";

const sent: SentCall = { at: 1, provider: "p", model: "m", layers: [1, 0, 2, 0, 3, 0], tools: 1 };
function fail(b: Bench, models = 1): void {
  const { run } = b.state;
  assert.ok(run.phase === "thinking");
  b.apply({
    type: "ModelFailed",
    effectId: modelEffectId(run),
    error: { reason: "model.overloaded", message: "Busy." },
    retryable: true,
    budget: BUDGET,
    models,
    streamed: true,
    sent,
  });
}

describe("[AU8] calls of the model without an answer", () => {
  test("they are stored with the step's answer, and the next step begins with none", () => {
    const b = new Bench();
    b.say("a");
    fail(b);
    // The wait before the next try is not over: nothing was lost.
    b.apply({ type: "Woke" });
    b.now += 60_000;
    b.apply({ type: "Woke" });
    const before = b.state.run;
    assert.deepEqual(before.phase === "thinking" && before.failed, [
      { at: 1_000_000, reason: "model.overloaded", sent },
      { at: 1_060_000, reason: "interrupted" },
    ]);
    b.reply("done");
    const [row] = b.log.filter(({ kind }) => kind === "assistant");
    assert.equal(row?.kind === "assistant" && row.failed?.length, 2);
    b.say("b");
    const after = b.state.run;
    assert.equal(after.phase === "thinking" && after.failed, undefined);
  });
  test("the newest of them are kept", () => {
    const b = new Bench();
    b.say("a");
    for (let count = 0; count <= FAILED_CALLS; count++) {
      const { run } = b.state;
      if (run.phase === "thinking") b.now = run.deadline - LIMITS.leaseMs;
      fail(b, 99);
    }
    const { run } = b.state;
    assert.equal(run.phase === "thinking" && run.failed?.length, FAILED_CALLS);
    assert.ok(run.phase === "thinking" && (run.failed?.[0]?.at ?? 0) > 1_000_000);
  });
});
