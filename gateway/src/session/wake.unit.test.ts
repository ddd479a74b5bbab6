/** When a session wakes next. A lease holds a run while its effect is running in this instance. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Bench, call } from "../../test/session/machine-bench.ts";
import { LIMITS } from "./machine/limits.ts";
import type { Run } from "./machine/state.ts";
import { isOverdue, nextWake, type UnderWay } from "./wake.ts";

const running = (...effects: readonly string[]): UnderWay => ({
  inFlight: () => effects,
  isRunning: (effectId) => effects.includes(effectId),
  nextStart: () => undefined,
});
const deadlineOf = (run: Run): number => {
  assert.ok(run.phase !== "idle");
  return run.deadline;
};

test("[P12] [D4] a run whose own effect is running is not overdue: thinking and archiving", () => {
  const thinking = new Bench();
  thinking.say("a");
  const archiving = new Bench();
  archiving.say("a");
  archiving.reply("one");
  archiving.apply({ type: "Reset" });
  for (const [{ state }, effect] of [
    [thinking, thinking.effect("CallModel").id],
    [archiving, archiving.effect("Archive").id],
  ] as const) {
    const due = deadlineOf(state.run);
    assert.deepEqual([isOverdue(state.run, running(), due - 1), isOverdue(state.run, running(), due)], [false, true]);
    assert.equal(isOverdue(state.run, running("another"), due), true);
    assert.equal(isOverdue(state.run, running(effect), due), false);
    assert.equal(nextWake(state.run, running(), 0), due);
    assert.equal(nextWake(state.run, running(effect), 0), LIMITS.leaseMs, "a tick renews the lease");
  }
});
test("[P12] calls on machines have real deadlines, whatever is running", () => {
  const b = new Bench();
  b.say("a");
  b.reply("", [call()]);
  const { run } = b.state;
  assert.equal(run.phase, "acting");
  const everything = running(...b.state.outbox.map(({ id }) => id));
  assert.equal(isOverdue(run, everything, deadlineOf(run)), true);
});
test("an idle session wakes only for what starts later", () => {
  const { run } = new Bench().state;
  assert.equal(isOverdue(run, running(), Number.MAX_SAFE_INTEGER), false);
  assert.equal(nextWake(run, running(), 5), undefined);
  assert.equal(nextWake(run, { ...running(), nextStart: () => 900 }, 5), 900);
  assert.equal(nextWake(run, { ...running("memory/1"), nextStart: () => 900 }, 5), 900);
});
