/**
 * A year of jobs in simulated time: the runner and its rows are real, the clock and the conversations are made up. The gateway is killed at
 * any call to a conversation, is off for hours, its clock jumps both ways, and runs fail. Each time of each job must be started at most
 * once and be accounted for: it ran, was skipped with a reason, or is missed.
 */
import { reset, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, inject, test } from "vitest";
import { JobStore } from "../../../src/features/schedule/job-store.ts";
import type { Job, JobRun } from "../../../src/features/schedule/job.ts";
import { NeedStore } from "../../../src/features/schedule/need-store.ts";
import { Runner, type RunnerPorts } from "../../../src/features/schedule/runner.ts";
import { Subscriptions } from "../../../src/kernel/subscriptions.ts";
import type { RunEnd, SessionNote, SessionSend } from "../../../src/ports/session.ts";
import { cronLines } from "../../../src/schedule/cron-lines.ts";
import { lineOf, nextTime, type Schedule } from "../../../src/schedule/schedule.ts";
import { rng, type Rng } from "../../sim/rng.ts";
import { FAR, gateway, seed } from "../../support/gateway.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const START = FAR;
const END = START + 366 * DAY;
const SCHEDULES: Readonly<Record<string, Schedule>> = {
  often: { kind: "every", everyMs: 5 * HOUR, anchorMs: START },
  morning: { kind: "cron", expr: "0 9 * * *", tz: "Europe/Berlin" },
  /** Does not exist on one day of the year, and comes twice on another. */
  night: { kind: "cron", expr: "30 2 * * *", tz: "Europe/Berlin" },
  weekly: { kind: "cron", expr: "15 18 * * 5", tz: "America/New_York" },
  once: { kind: "at", atMs: START + 200 * DAY },
  flaky: { kind: "every", everyMs: 11 * HOUR, anchorMs: START + HOUR },
};

/** The conversations of the jobs, which outlive the gateway. Each call to them may be the last thing that the gateway does. */
class Conversations {
  readonly begun = new Map<string, { readonly endsAt: number; readonly end: RunEnd; readonly job: string }>();
  readonly notes = new Set<string>();
  sends = 0;
  #failed = 0;
  readonly #rng: Rng;

  constructor(random: Rng) {
    this.#rng = random;
  }
  send({ runId, identity }: SessionSend, now: number): void {
    this.sends++;
    if (this.begun.has(runId)) return;
    const job = identity.key.split(":").at(-1) ?? "";
    // A job is paused after five failures in a row, and its times are no more then.
    const fails = job === "flaky" && this.#failed < 4 && this.#rng.chance(0.4);
    if (job === "flaky") this.#failed = fails ? this.#failed + 1 : 0;
    const end: RunEnd = fails ? { state: "error", error: "It failed." } : { state: "final", text: "Done." };
    const isStuck = job !== "flaky" && this.#rng.chance(0.02);
    this.begun.set(runId, { endsAt: now + (isStuck ? 6 * HOUR : this.#rng.int(0, 20_000)), end, job });
  }
  endOf(runId: string, now: number): RunEnd {
    const run = this.begun.get(runId);
    if (run === undefined) return { state: "unknown" };
    return now >= run.endsAt ? run.end : { state: "running", waitedMs: 0 };
  }
}

class Year {
  now = START;
  kills = 0;
  jumps = 0;
  readonly conversations: Conversations;
  readonly #random: Rng;
  readonly #store: JobStore;
  readonly #needs: NeedStore;
  #generation = 0;
  /** The last row of each time that was seen, as old rows are removed. */
  readonly rows = new Map<string, JobRun>();

  constructor(storage: ConstructorParameters<typeof JobStore>[0], random: Rng) {
    this.#store = new JobStore(storage);
    this.#needs = new NeedStore(storage);
    this.#random = random;
    this.conversations = new Conversations(random);
  }
  add(id: string, schedule: Schedule): void {
    const first = schedule.kind === "at" ? schedule.atMs : nextTime(schedule, START, lineOf(schedule, cronLines));
    const job: Job = {
      id,
      agentId: "main",
      body: {
        name: id,
        deleteAfterRun: false,
        createdAt: START,
        updatedAt: START,
        schedule,
        spec: { mode: "task", message: "Do it." },
      },
      enabled: true,
      ...(first === undefined ? {} : { nextAt: first }),
      lookedAt: START,
      failures: 0,
    };
    this.#store.add(job);
  }
  /** A gateway that has just started. */
  #runner(dies: () => void): Runner {
    const { conversations } = this;
    const generation = ++this.#generation;
    const ask = async <T>(_key: string, work: (session: never) => Promise<T>): Promise<T> => {
      // Before the call, or after it was made and before its answer came.
      const [before, after] = [this.#random.chance(0.01), this.#random.chance(0.01)];
      const dead = (): Promise<never> => {
        if (generation === this.#generation) dies();
        return new Promise<never>(() => undefined);
      };
      if (generation !== this.#generation || before) return dead();
      const answer = await work({
        send: async (input: SessionSend) => {
          conversations.send(input, this.now);
          return { ok: true, value: { status: "started", runId: input.runId, queued: false } };
        },
        runEnd: async (runId: string) => conversations.endOf(runId, this.now),
        reset: async () => ({ ok: true, value: { archivedMessages: 0 } }),
        note: async ({ key }: SessionNote) => void conversations.notes.add(key),
        abort: async () => ({ ok: true, value: {} }),
      } as never);
      return generation !== this.#generation || after ? dead() : answer;
    };
    const none = (): undefined => undefined;
    const ports = {
      ask,
      store: this.#store,
      needs: this.#needs,
      engine: cronLines,
      now: () => this.now,
      stopped: none,
      sessions: {
        find: none,
        isOwners: () => true,
        takeUp: ({ key }: { key: string }) => ({ key, ref: "r", agentId: "main", isOwnersSession: true }),
      },
      config: { hasAgent: () => true, mainKey: () => "main", effective: () => ({ userTimezone: "Europe/Berlin" }) },
      approvals: { waiting: () => [] },
      notify: { tell: none, over: none },
      nodes: { list: () => [] },
      subscriptions: new Subscriptions(),
      contextVersion: () => "1",
      scrub: (text: string) => text,
      log: { error: none, info: none, warn: none },
      arm: none,
      background: none,
    };
    return new Runner(ports as unknown as RunnerPorts);
  }

  async live(): Promise<void> {
    let killed: () => void = () => undefined;
    let runner = this.#runner(() => killed());
    let passes = 0;
    while (this.now < END) {
      const due = [this.#store.nextDue(this.now, false), this.#store.nextCheck()].filter((time) => time !== undefined);
      this.now = Math.max(this.now + 1, Math.min(END, ...due));
      if (this.#random.chance(0.004)) this.#disturb();
      const { promise: death, resolve } = Promise.withResolvers<"killed">();
      killed = () => resolve("killed");
      const outcome = await Promise.race([runner.run().then(() => "ran" as const), death]);
      if (++passes % 25 === 0) this.#note();
      if (outcome === "killed" || this.#random.chance(0.002)) {
        this.kills++;
        this.now += this.#random.int(1, 5_000);
        runner = this.#runner(() => killed());
      }
    }
    this.#note();
  }
  /** The gateway is off for a while, or its clock is set. */
  #disturb(): void {
    this.jumps++;
    const by = this.#random.pick([10 * MINUTE, 3 * HOUR, DAY, -10 * MINUTE, -3 * HOUR, -DAY]);
    this.now = Math.max(START, this.now + by);
  }
  #note(): void {
    for (const job of Object.keys(SCHEDULES))
      for (const row of this.#store.runs(job, Number.MAX_SAFE_INTEGER, 30)) this.rows.set(`${job} ${row.ts}`, row);
  }
}

/** Every time of a schedule in the year. */
function timesOf(schedule: Schedule): readonly number[] {
  if (schedule.kind === "at") return [schedule.atMs];
  const line = lineOf(schedule, cronLines);
  const times: number[] = [];
  for (let at = nextTime(schedule, START, line); at !== undefined && at < END - DAY; at = nextTime(schedule, at, line)) times.push(at);
  return times;
}

describe("[SC1] [SC4] [P16] [P20] a year with kills, hours off, clocks that jump and runs that fail", () => {
  afterEach(async () => {
    await reset();
  });
  for (const number of inject("isLong") ? [1, 2] : [1])
    test(`history ${number}: each time is started at most once and accounted for`, async () => {
      await seed();
      await runInDurableObject(gateway(), async (_gateway, state) => {
        const year = new Year(state.storage, rng(number));
        for (const [id, schedule] of Object.entries(SCHEDULES)) year.add(id, schedule);
        await year.live();
        const { conversations, rows } = year;
        expect(year.kills, "the history has kills").toBeGreaterThan(20);
        expect(year.jumps).toBeGreaterThan(5);
        const counts: Record<string, number> = {};
        for (const [job, schedule] of Object.entries(SCHEDULES)) {
          const own = [...rows.values()].filter((row) => row.jobId === job);
          const counted = own.flatMap(({ ts, body }) => (body.count === undefined ? [] : [{ upTo: ts, count: body.count }]));
          for (const ts of timesOf(schedule)) {
            const row = rows.get(`${job} ${ts}`);
            const isCounted = counted.some(({ upTo, count }) => ts <= upTo && upTo - ts <= count * 7 * DAY);
            expect(row !== undefined || isCounted, `${job} at ${new Date(ts).toISOString()}`).toBe(true);
            if (row === undefined) continue;
            counts[row.status] = (counts[row.status] ?? 0) + 1;
            expect(["ok", "error", "skipped", "missed"], `${job} ${ts} ${row.status}`).toContain(row.status);
            if (row.status === "skipped") expect(row.body.error ?? row.body.reason).toBeTruthy();
            if (row.status === "error") expect(row.body.error).toBeTruthy();
          }
          // One run for each row that has begun: its name is that of the row.
          const ran = own.filter(({ status, body }) => (status === "ok" || status === "error") && body.runId !== undefined);
          expect(new Set(ran.map(({ body }) => body.runId)).size).toBe(ran.length);
          for (const { id, status } of own)
            expect(conversations.notes.has(`cron:${job}:${id}`), `the answer of ${job} ${id}`).toBe(status === "ok");
        }
        // No run without a row.
        const named = new Set([...rows.values()].map(({ body }) => body.runId));
        for (const runId of conversations.begun.keys()) expect(named.has(runId), runId).toBe(true);
        expect(conversations.sends, "some messages were sent again").toBeGreaterThan(conversations.begun.size);
        expect(Object.keys(counts).sort()).toEqual(["error", "missed", "ok", "skipped"]);
      });
    }, 120_000);
});
