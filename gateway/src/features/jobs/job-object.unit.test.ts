/** The driver of a job's object, killed at each of its calls to the outside: before the call has its effect, and after it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentReport } from "../../../../protocol/gen/types.ts";
import type { JobHostPort, NewJob } from "../../ports/jobs.ts";
import { failure, succeed } from "../../ports/result.ts";
import type { TaskStatus } from "../../ports/tasks.ts";
import { JobObject } from "./job-object.ts";

const JOB: NewJob = {
  id: "job",
  tenantId: "t",
  agentId: "main",
  bodySha256: "x",
  createdAt: 1,
  request: { agent_name: "main", instructions: "Count." },
};
const WEEK_MS = 7 * 86_400_000;
class Killed extends Error {}

/** The world outside of the object, and what a kill leaves of it. */
class Stage {
  readonly kept = new Map<string, unknown>();
  now = 10;
  alarmAt: number | undefined;
  place = "queued";
  mayBegin = true;
  /** Runs by the id of their task: a repeated begin finds the first. */
  readonly runs = new Map<string, { stopped: boolean; looks: number }>();
  begins = 0;
  readonly index = new Map<string, unknown>();
  erased = false;
  calls = 0;
  killAt = -1;
  killsBefore = false;
  beginFails: "passes" | "stays" | "throws" | undefined;
  logged = 0;
  object = this.life();

  /** Another instance of the object, with what is stored. */
  life(): JobObject {
    return new JobObject({
      storage: {
        get: <T>(key: string) => structuredClone(this.kept.get(key)) as T | undefined,
        put: (key, value) => void this.kept.set(key, structuredClone(value)),
        delete: (key) => void this.kept.delete(key),
      },
      host: this.#host(),
      index: () => ({
        put: (key, _value, { metadata }) => this.#call(() => void this.index.set(key, metadata)),
        delete: (key) => this.#call(() => void this.index.delete(key)),
        list: () => Promise.reject(new Error("not used")),
      }),
      now: () => this.now,
      setAlarm: (at) => {
        this.alarmAt = at;
      },
      erase: () =>
        this.#call(() => {
          this.kept.clear();
          this.alarmAt = undefined;
          this.erased = true;
        }),
      log: { error: () => void this.logged++ },
    });
  }
  async #call<T>(effect: () => T): Promise<T> {
    const isKilled = this.calls++ === this.killAt;
    if (isKilled && this.killsBefore) throw new Killed();
    const done = effect();
    if (isKilled) throw new Killed();
    return done;
  }
  #host(): JobHostPort {
    return {
      claimJob: () =>
        this.#call(() => {
          if (this.mayBegin) this.place = "running";
          return this.mayBegin;
        }),
      updateQueue: (_id, place) =>
        this.#call(() => {
          this.place = place;
        }),
      beginJob: ({ id }) =>
        this.#call(() => {
          if (this.beginFails === "throws") throw new Error("cut");
          if (this.beginFails === "passes") return failure("node.offline", "Away.");
          if (this.beginFails === "stays") return failure("agent.unknown", "There is no agent main.");
          this.begins++;
          if (!this.runs.has(id)) this.runs.set(id, { stopped: false, looks: 0 });
          return succeed(`agent:main:task:${id}`);
        }),
      lookAtJob: ({ id }) =>
        this.#call(() => {
          const run = this.runs.get(id);
          assert.ok(run !== undefined, "only a run that began is looked at");
          return succeed(this.#stand(run));
        }),
      stopJob: ({ id }) =>
        this.#call(() => {
          const run = this.runs.get(id);
          if (run !== undefined) run.stopped = true;
          return succeed(undefined);
        }),
    };
  }
  #stand(run: { stopped: boolean; looks: number }): TaskStatus {
    const report = (status: AgentReport["status"]): AgentReport => ({ status, summary: status, cost_usd: 0.5 }) as AgentReport;
    if (run.stopped) return { state: "ended", report: report("cancelled") };
    run.looks++;
    if (run.looks === 1) return { state: "running" };
    if (run.looks === 2) return { state: "awaiting", report: report("awaiting_approval"), approvals: ["K7Q2A"] };
    return { state: "ended", report: report("completed") };
  }
  /** The alarms that come, until none is set or the week is over. A kill is the end of an instance; the alarm comes again. */
  async run(until: () => boolean = () => false): Promise<void> {
    for (let pass = 0; pass < 100 && this.alarmAt !== undefined && !until(); pass++) {
      this.now = Math.max(this.now, this.alarmAt);
      const killed = this.calls <= this.killAt;
      await this.object.alarm();
      if (killed && this.calls > this.killAt) this.object = this.life();
    }
  }
}
const hasEnded = (stage: Stage): boolean => (stage.kept.get("state") as { endedAt?: number } | undefined)?.endedAt !== undefined;

for (const killsBefore of [true, false])
  test(`[JB4] killed ${killsBefore ? "before" : "after"} the effect of each call: one run, one end, and in the end nothing is left`, async () => {
    for (let killAt = 0; ; killAt++) {
      const stage = new Stage();
      stage.killAt = killAt;
      stage.killsBefore = killsBefore;
      await stage.object.accept(JOB);
      await stage.object.accept({ ...JOB, createdAt: 2 });
      await stage.run(() => hasEnded(stage) && stage.now < WEEK_MS && stage.alarmAt !== undefined && stage.alarmAt > WEEK_MS);
      const shown = await stage.object.get();
      assert.deepEqual([shown?.status, shown?.report?.summary, shown?.created_at], ["succeeded", "completed", 1], `call ${killAt}`);
      assert.equal(stage.runs.size, 1);
      assert.equal(stage.place, "ended");
      assert.equal((stage.index.values().next().value as { status: string }).status, "succeeded");
      await stage.run();
      assert.deepEqual([stage.erased, stage.place, stage.index.size, stage.kept.size], [true, "gone", 0, 0], `call ${killAt}`);
      if (stage.calls <= killAt) break;
    }
  });

test("[JB8] cancelled between any two calls: a job that was not begun never begins, any other ends as cancelled or as it had ended", async () => {
  const ends = new Set<string>();
  for (let at = 0; ; at++) {
    const stage = new Stage();
    await stage.object.accept(JOB);
    // The alarm is interrupted at this call, and the cancel comes before the next alarm.
    stage.killAt = at;
    stage.killsBefore = true;
    await stage.run(() => stage.calls > at);
    // The calls after its last week are about its removal.
    if (stage.now > WEEK_MS) break;
    const before = await stage.object.get();
    const runsBefore = stage.runs.size;
    await stage.object.cancel();
    await stage.run(() => stage.place === "ended" && hasEnded(stage) && (stage.alarmAt ?? 0) > WEEK_MS);
    const after = await stage.object.get();
    if (before?.ended_at !== undefined) assert.equal(after?.status, before.status);
    if (before?.status === "queued") assert.deepEqual([after?.status, runsBefore, stage.runs.size], ["cancelled", 0, 0], `call ${at}`);
    ends.add(`${before?.status} ${after?.status}`);
    assert.ok(after?.ended_at !== undefined && after.cancelling === undefined, `call ${at}`);
  }
  for (const seen of ["queued cancelled", "running cancelled", "awaiting_approval cancelled", "succeeded succeeded"])
    assert.ok(ends.has(seen), `${seen} is not among ${[...ends].join(", ")}`);
});

test("[JB5] a job that may not begin sleeps until it is woken", async () => {
  const stage = new Stage();
  stage.mayBegin = false;
  await stage.object.accept(JOB);
  stage.alarmAt = undefined;
  await stage.object.alarm();
  assert.deepEqual([stage.alarmAt, stage.begins], [undefined, 0]);
  stage.mayBegin = true;
  assert.equal(await stage.object.wake(), true);
  await stage.run(() => hasEnded(stage));
  assert.equal(stage.begins, 1);
  assert.equal(await new Stage().object.wake(), false, "an object without a job");
});

test("[JB3] what passes is tried again, and what stays ends the job with its reason", async () => {
  const stage = new Stage();
  stage.beginFails = "passes";
  await stage.object.accept(JOB);
  await stage.object.alarm();
  assert.ok(!hasEnded(stage) && (stage.alarmAt ?? 0) > stage.now);
  stage.beginFails = "stays";
  await stage.run(() => hasEnded(stage));
  const shown = await stage.object.get();
  assert.deepEqual([shown?.status, shown?.error?.reason, shown?.session_key], ["failed", "agent.unknown", undefined]);
});

test("[JB4] a step that fails again and again has growing pauses up to a minute, few lines in the log, and its reason in the job", async () => {
  for (const [fails, reason] of [
    ["passes", "node.offline"],
    ["throws", "internal"],
  ] as const) {
    const stage = new Stage();
    stage.beginFails = fails;
    await stage.object.accept(JOB);
    const pauses: number[] = [];
    for (let pass = 0; pass < 21; pass++) {
      stage.now = Math.max(stage.now, stage.alarmAt ?? 0);
      // The count of failures is stored, so a new instance continues it.
      stage.object = stage.life();
      await stage.object.alarm();
      pauses.push((stage.alarmAt ?? 0) - stage.now);
    }
    assert.deepEqual(pauses.slice(0, 7), [2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    assert.deepEqual([pauses.at(-1), stage.logged], [60_000, 3]);
    assert.deepEqual([(await stage.object.get())?.status, (await stage.object.get())?.error?.reason], ["running", reason]);
    stage.beginFails = undefined;
    await stage.run(() => hasEnded(stage));
    await stage.run(() => (stage.alarmAt ?? 0) > WEEK_MS);
    assert.deepEqual([(await stage.object.get())?.status, (await stage.object.get())?.error], ["succeeded", undefined]);
  }
});
