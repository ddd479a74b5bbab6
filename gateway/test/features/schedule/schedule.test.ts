/** Jobs with the real gateway, its alarm and real sessions. Only the model and the clock are made up. */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { describe, expect, it } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { CronAddParams, CronRun } from "../../../../protocol/gen/types.ts";
import { says } from "../../session/support.ts";
import { client, eventually, FAR, gateway } from "../../support/gateway.ts";
import * as support from "./support.ts";
import { alarm, asked, HOUR, hold, inside, jobStage, task, useWhatsapp } from "./support.ts";
import { evict } from "../../support/evict.ts";

const stage = jobStage();
const { calls } = stage;
const pass = (ms: number): void => support.pass(stage, ms);
const add = (params = task()) => support.add(stage, params);
const runs = (jobId?: string) => support.runs(stage, jobId);
const becomes = (status: CronRun["status"], jobId?: string) => support.becomes(stage, status, jobId);
const mainNotes = () => support.shownIn(stage);

describe("[SC1] [P16] a time of a job", () => {
  it("begins one run, in a conversation of its own, and the answer is a note in the main conversation", async () => {
    const { job, times } = await add();
    expect(times).toEqual([1, 2, 3, 4, 5].map((n) => FAR + n * HOUR));
    expect(job.state.nextRunAtMs).toBe(FAR + HOUR);
    await alarm();
    expect(calls).toHaveLength(0);
    pass(HOUR);
    const run = await becomes("ok");
    expect(run).toMatchObject({ ts: FAR + HOUR, summary: "the report", sessionKey: "agent:main:cron:report" });
    expect(calls).toHaveLength(1);
    expect(asked(calls[0])).toContain("Write the report.");
    expect((await mainNotes()).filter((text) => text.includes("the report"))).toHaveLength(1);
    const { events } = await stage.peer.ok<{ events: object[] }>("session.subscribe", { sessionKey: "agent:main:main", afterSeq: 0 });
    const content = [{ type: "text", text: 'The job "Report" says:\n\nthe report' }];
    expect(events).toMatchObject([{ event: "session", payload: { kind: "note", message: { role: "assistant", content } } }]);
    await alarm();
    expect(calls).toHaveLength(1);
  });
  it("each run of a task begins without the one before", async () => {
    await add();
    pass(HOUR);
    await becomes("ok");
    pass(HOUR);
    await eventually(async () => {
      await alarm();
      expect((await runs()).filter(({ status }) => status === "ok")).toHaveLength(2);
    });
    expect(calls).toHaveLength(2);
    expect(calls[1]?.messages).toHaveLength(1);
  });
  it("[K28] killed between the row and the begin: it begins once", async () => {
    await add();
    pass(HOUR);
    await inside((store) => {
      const job = store.find("report");
      if (job === undefined) throw new Error("no job");
      store.take(job, { start: FAR + HOUR, missed: [], missedCount: 0 }, FAR + 2 * HOUR, stage.now, false);
    });
    await abortAllDurableObjects();
    stage.peer = await client();
    await becomes("ok");
    expect(calls).toHaveLength(1);
  });
  it("[K28] killed in the run, and after it: one answer, delivered once", async () => {
    const release = hold(stage, "the report");
    await add();
    pass(HOUR);
    await becomes("running");
    await evict(gateway());
    stage.peer = await client();
    await eventually(() => expect(calls).toHaveLength(1));
    release();
    pass(20_000);
    await becomes("ok");
    // As if the row had not been written when the note was.
    await runInDurableObject(gateway(), (_gateway, state) => {
      state.storage.sql.exec("UPDATE cron_runs SET status = 'running', check_at = ?", stage.now);
    });
    await evict(gateway());
    stage.peer = await client();
    pass(20_000);
    await becomes("ok");
    expect(calls).toHaveLength(1);
    expect((await mainNotes()).filter((text) => text.includes("the report"))).toHaveLength(1);
  });
});

describe("[SC4] a gateway that was not there", () => {
  it("runs a repeating job once for its latest time; the others are missed", async () => {
    await add();
    pass(5.5 * HOUR);
    await becomes("ok");
    const all = await runs();
    expect(all.map(({ ts, status }) => [(ts - FAR) / HOUR, status]).toSorted()).toEqual([
      [1, "missed"],
      [2, "missed"],
      [3, "missed"],
      [4, "missed"],
      [5, "ok"],
    ]);
    expect(calls).toHaveLength(1);
    expect(asked(calls[0])).toContain("30 min late");
  });
  it("names twenty of many missed times and counts the rest", async () => {
    await add(task({ schedule: { kind: "every", everyMs: HOUR, anchorMs: FAR + HOUR } }));
    pass(50 * HOUR);
    await becomes("ok");
    const missed = (await runs()).filter(({ status }) => status === "missed");
    expect(missed).toHaveLength(21);
    expect(missed.reduce((sum, { count }) => sum + (count ?? 1), 0)).toBe(49);
  });
  it("never drops a reminder, and removes it when it has run", async () => {
    await add(task({ schedule: { kind: "at", atMs: FAR + HOUR }, spec: { mode: "systemEvent", text: "Call the dentist." } }));
    pass(100 * HOUR);
    await eventually(async () => {
      await alarm();
      expect((await stage.peer.ok<ResultOf<"cron.list">>("cron.list")).jobs).toHaveLength(0);
    });
    expect(calls).toHaveLength(1);
    expect(asked(calls[0])).toMatch(/Call the dentist\./);
    expect(asked(calls[0])).toContain("4 days late");
  });
  it("[SC2] [P20] a clock that goes back, or forward and back, begins no time twice", async () => {
    await add();
    pass(HOUR);
    await becomes("ok");
    pass(-HOUR);
    await alarm();
    pass(HOUR);
    await alarm();
    expect(calls).toHaveLength(1);
    pass(24 * HOUR);
    await eventually(async () => {
      await alarm();
      expect(calls).toHaveLength(2);
      expect((await runs()).some(({ status }) => status === "running" || status === "waiting")).toBe(false);
    });
    pass(-23 * HOUR);
    await eventually(async () => {
      await alarm();
      expect((await stage.peer.ok<ResultOf<"cron.status">>("cron.status")).nextRunAtMs).toBe(FAR + 3 * HOUR);
    });
  });
});

describe("[SC5] [SC7] jobs beside each other", () => {
  it("run four at once; a further one waits; one that goes on is not begun again", async () => {
    let open = 0;
    let most = 0;
    let isHeld = true;
    stage.answer = async () => {
      most = Math.max(most, ++open);
      while (isHeld) await scheduler.wait(2);
      open--;
      return says("done");
    };
    for (let n = 0; n < 6; n++) await add(task({ id: `job-${n}`, name: `Job ${n}`, schedule: { kind: "every", everyMs: HOUR / 3 } }));
    pass(HOUR / 3);
    await eventually(async () => {
      await alarm();
      expect(open).toBe(4);
    });
    pass(HOUR / 3);
    await alarm();
    expect((await runs("job-0"))[0]).toMatchObject({ status: "skipped", error: "The run before still goes on." });
    isHeld = false;
    const done = (count: number) =>
      eventually(async () => {
        await alarm();
        const ended = await inside((store) => store.runs(undefined, Number.MAX_SAFE_INTEGER, 50));
        expect(ended.filter(({ status }) => status === "ok")).toHaveLength(count);
      });
    await done(4);
    // Those that wait are looked at again.
    pass(20_000);
    await done(6);
    expect(most).toBe(4);
  });
  it("[SC6] a run that does not end is ended, and says so", async () => {
    const release = hold(stage, "late");
    await add();
    pass(HOUR);
    await becomes("running");
    pass(50 * 60_000);
    const run = await becomes("error");
    release();
    expect(run.error).toMatch(/had not ended 50 minutes after it began/);
  });
  it("a job that fails five times in a row is paused, says so once, and goes on when it is enabled", async () => {
    stage.answer = () => ({ kind: "failed", error: { reason: "model.auth", message: "The key is wrong." }, retryable: false });
    await add();
    await add(task({ id: "good", name: "Good" }));
    for (let n = 1; n <= 5; n++) {
      pass(HOUR);
      await eventually(async () => {
        await alarm();
        expect((await runs()).filter(({ status }) => status === "error")).toHaveLength(n);
      });
    }
    const { jobs } = await stage.peer.ok<ResultOf<"cron.list">>("cron.list");
    expect(jobs.find(({ id }) => id === "report")).toMatchObject({
      enabled: false,
      state: { failures: 5, paused: expect.stringContaining("The key is wrong.") },
    });
    await eventually(async () => {
      const told = (await mainNotes()).filter((text) => text.includes('"Report" is paused'));
      expect(told).toHaveLength(1);
      expect(told[0]).toContain("gsv cron resume report");
    });
    stage.answer = () => says("the report");
    const { job } = await stage.peer.ok<ResultOf<"cron.update">>("cron.update", { id: "report", patch: { enabled: true } });
    expect(job.state).toMatchObject({ nextRunAtMs: FAR + 6 * HOUR });
    expect(job.state.failures).toBeUndefined();
  });
  it("a repeating job tells its first failure in a row, and a job with one time each of its own", async () => {
    stage.answer = () => ({ kind: "failed", error: { reason: "model.auth", message: "The key is wrong." }, retryable: false });
    await add();
    await add(task({ id: "once", name: "Once", schedule: { kind: "at", atMs: FAR + HOUR } }));
    const fails = (count: number) =>
      eventually(async () => {
        await alarm();
        expect((await runs()).filter(({ status }) => status === "error")).toHaveLength(count);
      });
    const told = async () => (await mainNotes()).filter((text) => text.includes(" failed"));
    pass(HOUR);
    await fails(1);
    await eventually(async () => {
      await alarm();
      expect((await told()).toSorted()).toEqual([
        expect.stringMatching(
          /^The job "Once" failed, and no further time of it comes: .*The key is wrong[\s\S]*Run it again: `gsv cron run once`\.$/,
        ),
        expect.stringMatching(
          /^The job "Report" failed: .*The key is wrong[\s\S]*`gsv cron runs report`.*after 5 failures in a row it is paused\.$/,
        ),
      ]);
    });
    pass(2 * HOUR);
    await fails(2);
    await alarm();
    expect(await told()).toHaveLength(2);
    stage.answer = () => says("the report");
    pass(HOUR);
    await becomes("ok");
    stage.answer = () => ({ kind: "failed", error: { reason: "model.auth", message: "The key is wrong." }, retryable: false });
    pass(HOUR);
    await fails(3);
    await eventually(async () => {
      await alarm();
      expect(await told()).toHaveLength(3);
    });
  });
  it("[SC10] nothing begins while GSV is stopped; a reminder waits for the owner to let it go on", async () => {
    await add();
    await add(task({ id: "once", schedule: { kind: "at", atMs: FAR + HOUR } }));
    await stage.peer.ok("gateway.stop", {});
    pass(HOUR);
    await eventually(async () => {
      await alarm();
      expect((await runs())[0]).toMatchObject({ status: "skipped", error: "GSV is stopped." });
    });
    expect(await runs("once")).toHaveLength(0);
    const rows = (await runs()).length;
    expect(await stage.peer.refused("cron.run", { id: "report" })).toMatchObject({
      reason: "gateway.stopped",
      message: "GSV is stopped, so the job was not started.",
      hint: expect.stringContaining("`gsv resume`"),
    });
    expect(await runs()).toHaveLength(rows);
    expect(calls).toHaveLength(0);
    expect(await stage.peer.ok("cron.status")).toMatchObject({ enabled: false, jobs: 2 });
    await stage.peer.ok("gateway.resume", {});
    expect(await stage.peer.ok("cron.status")).toMatchObject({ enabled: true, jobs: 2 });
    await eventually(async () => {
      await alarm();
      expect(calls).toHaveLength(1);
    });
  });
});

describe("[SC6] [SC8] [SC9] what a job may do", () => {
  it("a run has its own limit of money", async () => {
    stage.answer = () => {
      const step = says("", [{ name: "gsv__ReadFile", arguments: { path: "SOUL.md" } }]);
      return step.kind === "replied" ? { ...step, usage: { input: 1, output: 1, total: 2, costUsd: 0.3 } } : step;
    };
    await add();
    pass(HOUR);
    const run = await becomes("error");
    expect(run.error).toMatch(/\$0\.30 of \$0\.25\)\. A job may use no more in one run/);
    expect(calls).toHaveLength(1);
  });
  it("a run has its own limit of steps", async () => {
    let n = 0;
    stage.answer = () => says("", [{ name: "gsv__ReadFile", arguments: { path: "SOUL.md", n: n++ } }]);
    await add();
    pass(HOUR);
    const run = await becomes("error");
    expect(run.error).toMatch(/12 steps\. A job may use no more in one run/);
    expect(calls).toHaveLength(12);
  });
  it("uses the model and the thinking level that the job names", async () => {
    await add(task({ spec: { mode: "task", message: "x", model: "ollama/other", thinking: "low" } }));
    pass(HOUR);
    await eventually(async () => {
      await alarm();
      expect(calls[0]?.model).toMatchObject({ provider: "ollama", id: "other" });
    });
    expect(calls[0]?.thinkLevel).toBe("low");
  });
  it("[R6] a job of an earlier version that names another model of the demo runs, and a new one is refused", async () => {
    const spec = (model: string) => task({ spec: { mode: "task", message: "x", model } });
    expect(await stage.peer.refused("cron.add", spec("demo/other"))).toMatchObject({
      message: expect.stringContaining('no model "other"'),
    });
    await add(spec("demo/demo"));
    await runInDurableObject(gateway(), (_gateway, { storage }) =>
      storage.sql.exec("UPDATE cron_jobs SET body = replace(body, 'demo/demo', 'demo/other')"),
    );
    pass(HOUR);
    await eventually(async () => {
      await alarm();
      expect(calls[0]?.model).toMatchObject({ provider: "demo", id: "demo" });
    });
  });
  it("an answer to a place where the agent may not write is an error, and nothing is sent", async () => {
    useWhatsapp();
    await add(task({ spec: { mode: "task", message: "x", to: "whatsapp/default/dm/31600000000@s.whatsapp.net" } }));
    pass(HOUR);
    const run = await becomes("error");
    expect(run).toMatchObject({
      summary: "the report",
      error: expect.stringMatching(/^The answer was not delivered\. GSV may not write to /),
    });
    expect(run.error).not.toContain("You may write");
  });
  it("[NT5] a failed job with a place is told where a test of its notification is told", async () => {
    const sessionKey = "agent:main:cli:dm:main";
    await stage.peer.ok("chat.send", { sessionKey, message: "hello" });
    await add(task({ spec: { mode: "task", message: "x", to: "whatsapp/default/dm/31600000000@s.whatsapp.net" } }));
    pass(HOUR);
    await becomes("error");
    const { notification } = await stage.peer.ok<ResultOf<"notifications.test">>("notifications.test");
    expect(notification.toldIn).toBe(sessionKey);
    await eventually(async () => {
      await alarm();
      const { notifications } = await stage.peer.ok<ResultOf<"notifications.list">>("notifications.list");
      const [failed] = notifications.filter(({ text }) => text.startsWith('The job "Report" failed'));
      expect(failed).toMatchObject({ state: "told", toldIn: sessionKey });
    });
  });
  it("[SC8] a place that can't be reached now is accepted with a warning for the owner", async () => {
    useWhatsapp();
    let count = 0;
    const warned = async (to: string): Promise<string | undefined> =>
      (await stage.peer.ok<{ warning?: string }>("cron.add", task({ id: `r${++count}`, spec: { mode: "task", message: "x", to } })))
        .warning;
    expect(await warned("whatsapp/default/dm/31600000000@s.whatsapp.net")).toMatch(
      /^A message to whatsapp\/default\/dm\/31600000000@s\.whatsapp\.net would not arrive now\. GSV may not write to .* is not approved\. Requests: `gsv pair list`\. The account default of whatsapp is not connected/,
    );
    expect(await warned("pigeon/default/dm/1")).toContain("There is no channel pigeon.");
  });
  it("refuses what can't be, with the code and what to do", async () => {
    const bad = (params: Partial<CronAddParams>) => stage.peer.refused("cron.add", task(params));
    expect(await bad({ schedule: { kind: "cron", expr: "61 * * * *" } })).toMatchObject({ reason: "cron.bad_schedule" });
    expect(await bad({ agentId: "no-one" as CronAddParams["agentId"] & string })).toMatchObject({ reason: "agent.unknown" });
    expect(await bad({ spec: { mode: "task", message: "x", to: "somewhere" } })).toMatchObject({ reason: "channel.unknown" });
    expect(await bad({ spec: { mode: "task", message: "x", model: "x" } })).toMatchObject({ reason: "protocol.invalid_params" });
    expect(await bad({ spec: { mode: "task", message: "x", model: "anthorpic/claude-x" } })).toMatchObject({
      message: expect.stringContaining("Did you mean anthropic?"),
    });
    expect(await stage.peer.refused("cron.update", { id: "none", patch: {} })).toMatchObject({ reason: "cron.not_found" });
    expect(await stage.peer.refused("cron.run", { id: "none" })).toMatchObject({ reason: "cron.not_found" });
    expect(calls).toHaveLength(0);
  });
  it("[SC3] keeps its time zone when the owner's changes, and the change says so", async () => {
    const schedule = { kind: "cron", expr: "0 7 * * *" } as const;
    await add({ ...task(), schedule });
    const set = (value: string) => stage.peer.ok<ResultOf<"config.set">>("config.set", { path: "userTimezone", value });
    expect((await set("Europe/Berlin")).warnings).toEqual([
      expect.stringMatching(/^1 job keeps its time zone: report \(UTC\)\. To change one: `gsv cron edit report /),
    ]);
    await stage.peer.ok("cron.update", { id: "report", patch: { schedule: { ...schedule, tz: "Europe/Berlin" } } });
    expect((await set("Europe/Berlin")).warnings).toBeUndefined();
    const unset = () => stage.peer.ok<ResultOf<"config.unset">>("config.unset", { path: "userTimezone" });
    expect((await unset()).warnings).toEqual([expect.stringMatching(/^1 job keeps its time zone: report \(Europe\/Berlin\)\./)]);
    expect((await unset()).warnings).toBeUndefined();
  });
  it("adds the same job once, and there are two hundred at most", async () => {
    await add();
    await add();
    expect((await stage.peer.ok<ResultOf<"cron.list">>("cron.list")).jobs).toHaveLength(1);
    expect(await stage.peer.refused("cron.add", task({ name: "Another" }))).toMatchObject({ reason: "cron.exists" });
    await inside((store) => {
      const job = store.find("report");
      if (job !== undefined) for (let n = 1; n < 200; n++) store.add({ ...job, id: `job-${n}` });
    });
    expect(await stage.peer.refused("cron.add", task({ id: "one-more" }))).toMatchObject({ reason: "cron.too_many" });
  });
  it("keeps 200 rows of jobs that were removed after their run", async () => {
    await add(task({ enabled: false }));
    const kept = await inside((store) => {
      const job = store.find("report");
      if (job === undefined) throw new Error("no job");
      for (let n = 0; n < 205; n++) {
        const once = { ...job, id: `once-${n}`, enabled: true, nextAt: FAR, body: { ...job.body, deleteAfterRun: true } };
        store.add(once);
        const run = store.take(once, { start: FAR, missed: [], missedCount: 0 }, undefined, FAR, false);
        if (run === undefined) throw new Error("not taken");
        store.end(run.id, "ok", {}, FAR, { failures: 5, reason: String });
      }
      return store.runs(undefined, Number.MAX_SAFE_INTEGER, 300).map(({ jobId }) => jobId);
    });
    expect(kept).toHaveLength(200);
    expect(kept.at(-1)).toBe("once-5");
  });
  it("runs by hand, once at a time, and removes a job with its rows", async () => {
    await add();
    await stage.peer.ok("cron.run", { id: "report" });
    expect(await stage.peer.refused("cron.run", { id: "report" })).toMatchObject({ reason: "cron.running" });
    await becomes("ok");
    expect(await stage.peer.ok<ResultOf<"cron.remove">>("cron.remove", { id: "report" })).toEqual({ ok: true, removed: true });
    expect(await stage.peer.refused("cron.runs", { jobId: "report" })).toMatchObject({ reason: "cron.not_found" });
    expect(await stage.peer.ok<ResultOf<"cron.remove">>("cron.remove", { id: "report" })).toEqual({ ok: true, removed: false });
  });
  it("a new job with the id and the time of a removed one runs at that time", async () => {
    const once = task({ schedule: { kind: "at", atMs: FAR + HOUR } });
    await add(once);
    pass(HOUR);
    await becomes("ok");
    expect((await stage.peer.ok<ResultOf<"cron.list">>("cron.list")).jobs).toEqual([]);
    pass(-HOUR);
    await add(once);
    expect(await runs()).toEqual([]);
    pass(HOUR);
    expect(await becomes("ok")).toMatchObject({ ts: FAR + HOUR });
    expect(calls).toHaveLength(2);
  });
  it("a run of a removed job does not end as one of a new job with its id", async () => {
    const release = hold(stage, "the old report");
    await add();
    pass(HOUR);
    await becomes("running");
    await stage.peer.ok("cron.remove", { id: "report" });
    await add(task({ schedule: { kind: "every", everyMs: 2 * HOUR }, spec: { mode: "task", message: "Write the new report." } }));
    expect(await runs()).toEqual([]);
    release();
    await eventually(async () => {
      await alarm();
      expect((await stage.peer.ok<ResultOf<"cron.status">>("cron.status")).running).toBe(0);
    });
    expect(await runs()).toEqual([]);
    expect(await mainNotes()).toEqual([]);
    stage.answer = () => says("the new report");
    pass(2 * HOUR);
    expect(await becomes("ok")).toMatchObject({ summary: "the new report" });
    expect((await mainNotes()).filter((text) => text.includes("report"))).toHaveLength(1);
  });
});
