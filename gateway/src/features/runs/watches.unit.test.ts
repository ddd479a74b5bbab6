/** Tasks are looked at until they end, and failures are told. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { FailedTask } from "../../ports/tasks.ts";
import type { RunEnd } from "../../ports/session.ts";
import type { TaskWatch } from "./watch-store.ts";
import { Subscriptions } from "../../kernel/subscriptions.ts";
import { TaskWatches } from "./watches.ts";

function stageOf(ends: readonly (RunEnd | Error)[], isTold: () => boolean = () => true) {
  const rows = new Map<string, { readonly watch: TaskWatch; lookAt: number }>();
  const told: FailedTask[] = [];
  const left = [...ends];
  const subscriptions = new Subscriptions();
  const stage = {
    now: 0,
    armed: 0,
    subscriptions,
    rows,
    told,
    sweep: () => watches.sweep(),
  };
  const watch = { id: "t1", agentId: "mail", sessionKey: "agent:mail:task:t1", hops: 2, tries: 0, looks: 0 };
  rows.set("t1", { watch, lookAt: 0 });
  const watches = new TaskWatches({
    now: () => stage.now,
    arm: () => stage.armed++,
    subscriptions,
    log: { warn: () => undefined } as never,
    ask: async () => {
      const end = left.length > 1 ? left.shift() : left[0];
      if (end instanceof Error) throw end;
      return end as never;
    },
    failed: async (task) => {
      told.push(task);
      return isTold();
    },
    watches: {
      due: (now) => [...rows.values()].flatMap((row) => (row.lookAt <= now ? [row.watch] : [])),
      again: (id, lookAt, counts) => void rows.set(id, { watch: { ...watch, tries: counts.tries, looks: counts.looks }, lookAt }),
      soon: (id, now) => {
        const row = rows.get(id);
        if (row !== undefined) rows.set(id, { ...row, lookAt: now });
      },
      remove: (id) => void rows.delete(id),
    },
  });
  return stage;
}
const RUNNING: RunEnd = { state: "running", waitedMs: 0 };
const FAILED: RunEnd = {
  state: "error",
  error: "No model.",
  reason: "model.unavailable" as never,
  taint: { label: "world", source: "a page" },
};

test("[EV13] a task that fails is told with its reason, label and chain, once it has ended", async () => {
  const stage = stageOf([{ state: "queued" }, RUNNING, FAILED]);
  for (const at of [0, 15_000, 45_000, 90_000]) {
    stage.now = at;
    await stage.sweep();
  }
  assert.deepEqual(stage.told, [
    {
      ...{ id: "t1", agentId: "mail", sessionKey: "agent:mail:task:t1", runId: "task-t1", cause: "failed", hops: 2 },
      ...{ message: "No model.", taint: { label: "world", source: "a page" } },
    },
  ]);
  assert.equal(stage.rows.size, 0);
});
test("[EV13] a task out of its budget is told as such; one that succeeds or is stopped is not", async () => {
  const over = stageOf([{ state: "error", error: "Too dear.", reason: "budget.cost" }]);
  await over.sweep();
  assert.deepEqual(
    over.told.map(({ cause }) => cause),
    ["budget_exceeded"],
  );
  for (const end of [
    { state: "final", text: "Done." },
    { state: "aborted", error: "" },
  ] as const) {
    const stage = stageOf([end]);
    await stage.sweep();
    assert.deepEqual([stage.told.length, stage.rows.size], [0, 0], end.state);
  }
});
test("[EV13] what can't be told or looked at is looked at again, after growing pauses", async () => {
  let isTold = false;
  const stage = stageOf([new Error("down"), FAILED], () => isTold);
  await stage.sweep();
  const first = stage.rows.get("t1")?.lookAt ?? 0;
  stage.now = first;
  await stage.sweep();
  const second = (stage.rows.get("t1")?.lookAt ?? 0) - first;
  assert.ok(second > first, `${second} is longer than ${first}`);
  isTold = true;
  stage.now += second;
  await stage.sweep();
  assert.deepEqual([stage.told.length, stage.rows.size], [2, 0]);
});
test("[EV13] a task that goes on is looked at after growing pauses, and not beyond the time for which tasks are kept", async () => {
  const stage = stageOf([RUNNING]);
  let looks = 0;
  let pause = 0;
  for (; stage.rows.size > 0; looks++) {
    await stage.sweep();
    const next = stage.rows.get("t1")?.lookAt ?? stage.now;
    if (next > stage.now) pause = next - stage.now;
    stage.now = next;
    assert.ok(looks < 2_000, "it has an end");
  }
  const days = stage.now / 86_400_000;
  assert.ok(days >= 7 && days < 8, `${days} days`);
  assert.equal(pause, 600_000);
  assert.deepEqual(stage.told, []);
});
test("[EV13] the end of a task that is followed is noticed at once", async () => {
  const stage = stageOf([RUNNING, FAILED]);
  await stage.sweep();
  stage.now = 5_000;
  const payload = (state: string, runId = "task-t1") => [{ event: "chat" as const, payload: { runId, state } }];
  for (const events of [payload("delta"), payload("error", "other")]) stage.subscriptions.publish("agent:mail:task:t1", events);
  await stage.sweep();
  assert.deepEqual([stage.told.length, stage.armed], [0, 0]);
  stage.subscriptions.publish("agent:mail:task:t1", payload("error"));
  await stage.sweep();
  assert.deepEqual([stage.told.length, stage.armed, stage.rows.size], [1, 1, 0]);
});
