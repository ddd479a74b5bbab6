/** A job's machine with a gateway that is simulated: each history is cut at a random step, and cancelled at a random one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentReport } from "../../../../protocol/gen/types.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { TaskStatus } from "../../ports/tasks.ts";
import { applied, hasEnded, type JobState, NEW_STATE, nextStep, type Pass } from "./machine.ts";

const WEEK_MS = LIMITS.jobDays * 86_400_000;
const report = (status: AgentReport["status"]): AgentReport => ({ status }) as AgentReport;
const random = (seed: number): (() => number) => {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
};
/** What the world outside of the object has. */
class World {
  place = "queued";
  begun = 0;
  stopped = false;
  looks = 0;
  indexed: string | undefined;
  removed = false;
  readonly next: () => number;

  constructor(next: () => number) {
    this.next = next;
  }
  stand(): TaskStatus {
    this.looks++;
    if (this.stopped) return { state: "ended", report: report("cancelled") };
    if (this.looks === 2) return { state: "awaiting", report: report("awaiting_approval"), approvals: ["K7Q2A"] };
    if (this.looks < 4) return { state: "running" };
    return {
      state: "ended",
      report: report((["completed", "failed", "budget_exceeded"] as const)[Math.floor(this.next() * 3)] ?? "failed"),
    };
  }
}

function history(seed: number): { readonly world: World; readonly states: readonly JobState[]; readonly cancelledWhileQueued: boolean } {
  const next = random(seed);
  const world = new World(next);
  let state = NEW_STATE;
  let pass: Pass = {};
  let now = 1;
  const cancelAt = next() < 0.5 ? Math.floor(next() * 14) : -1;
  let cancelledWhileQueued = false;
  const states: JobState[] = [state];
  const apply = (...[result]: [Parameters<typeof applied>[1]]): void => {
    state = applied(state, result);
    states.push(state);
  };
  for (let at = 0; at < 200 && !world.removed; at++) {
    now++;
    if (at === cancelAt) {
      cancelledWhileQueued = state.status === "queued";
      apply({ result: "cancel", now });
    }
    const step = nextStep(state, pass, now);
    // Killed after the effect, before its result is stored; or before the effect.
    const isLost = next() < 0.3;
    if (next() < 0.1) {
      pass = {};
      continue;
    }
    switch (step.do) {
      case "claim":
        if (next() < 0.3) pass = { ...pass, refused: true };
        else {
          world.place = "running";
          if (!isLost) apply({ result: "granted", now });
        }
        break;
      case "begin":
        world.begun++;
        if (!isLost) apply({ result: "begun", sessionKey: "agent:main:task:x" });
        break;
      case "stop":
        world.stopped = true;
        if (!isLost) apply({ result: "stopped" });
        break;
      case "look":
        apply({ result: "stood", now, stand: world.stand() });
        pass = { ...pass, looked: true };
        break;
      case "place":
        world.place = step.place;
        if (!isLost) apply({ result: "placed", place: step.place });
        break;
      case "index":
        if (next() < 0.3) pass = { ...pass, indexFailed: true };
        else {
          world.indexed = state.status;
          if (!isLost) apply({ result: "indexed", revision: state.revision });
        }
        break;
      case "remove":
        assert.ok(state.endedAt !== undefined && now >= state.endedAt + WEEK_MS);
        world.removed = true;
        break;
      case "rest":
        if (step.at === undefined) assert.equal(state.status, "queued", "only a queued job waits to be woken");
        now = Math.max(now, step.at ?? now);
        pass = {};
        break;
    }
    if (isLost) pass = {};
  }
  return { world, states, cancelledWhileQueued };
}

test("[JB3] [JB4] [JB8] 5,000 histories with kills and cancels: each job ends once, gives its place back, and is in the index as it ended", () => {
  const ends = new Set<string>();
  for (let seed = 1; seed <= 5_000; seed++) {
    const { world, states, cancelledWhileQueued } = history(seed);
    const last = states.at(-1);
    assert.ok(world.removed && last !== undefined && hasEnded(last), `seed ${seed}`);
    ends.add(last.status);
    assert.equal(world.place, "ended", `seed ${seed}`);
    assert.equal(world.indexed, last.status, `seed ${seed}`);
    const firstEnd = states.findIndex(hasEnded);
    assert.ok(
      states.slice(firstEnd).every(({ status, endedAt }) => status === last.status && endedAt === last.endedAt),
      `seed ${seed}: an end is final`,
    );
    if (cancelledWhileQueued) assert.deepEqual([world.begun, last.status], [0, "cancelled"], `seed ${seed}`);
    if (world.stopped) assert.equal(last.cancelling, true, `seed ${seed}: only a cancel stops a run`);
  }
  assert.deepEqual([...ends].sort(), ["budget_exceeded", "cancelled", "failed", "succeeded"]);
});

test("[JB5] a job that waits for the owner gives its place back before it waits, and takes it again when it goes on", () => {
  const running = { ...NEW_STATE, status: "running", place: "running", sessionKey: "s", indexed: 9, revision: 9 } as const;
  const waits = applied(running, {
    result: "stood",
    now: 1,
    stand: { state: "awaiting", report: report("awaiting_approval"), approvals: ["A"] },
  });
  assert.deepEqual(nextStep(waits, { looked: true }, 1), { do: "place", place: "awaiting_approval" });
  const placed = applied(waits, { result: "placed", place: "awaiting_approval" });
  const goesOn = applied(placed, { result: "stood", now: 2, stand: { state: "running" } });
  assert.deepEqual([goesOn.approvals, nextStep(goesOn, {}, 2)], [undefined, { do: "place", place: "running" }]);
});

test("[JB3] a job whose run could not begin has failed, with the reason", () => {
  const state = applied(
    { ...NEW_STATE, status: "running" },
    { result: "refused", now: 5, error: { reason: "agent.unknown", message: "x" } },
  );
  assert.deepEqual([state.status, state.endedAt, state.error?.reason], ["failed", 5, "agent.unknown"]);
});
