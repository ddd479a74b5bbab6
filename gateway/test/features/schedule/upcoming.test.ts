/** What comes next, asked of the real gateway. Only the model and the clock are made up. */
import { describe, expect, it } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import { eventually, FAR } from "../../support/gateway.ts";
import { add, alarm, becomes, HOUR, jobStage, pass, runs, task } from "./support.ts";

const stage = jobStage();
const { calls } = stage;
const DAY = 24 * HOUR;
const upcoming = (params: object = {}) => stage.peer.ok<ResultOf<"cron.upcoming">>("cron.upcoming", params);

describe("[SC14] cron.upcoming", () => {
  it("says that nothing comes", async () => {
    expect(await upcoming()).toMatchObject({ nowMs: FAR, stopped: false, jobs: 0, heartbeats: 0, next: [], days: [], failed: [] });
  });
  it("shows jobs and heartbeats on the days of the owner, and the runs begin at these times", async () => {
    await stage.peer.ok("config.set", { path: "userTimezone", value: "Asia/Tokyo" });
    await stage.peer.ok("heartbeat.set", { every: "6h" });
    await add(stage);
    await add(stage, task({ id: "daily", name: "Daily", schedule: { kind: "cron", expr: "0 9 * * *" } }));
    await add(stage, task({ id: "waits", enabled: false }));
    // It is 09:00 in Tokyo.
    const found = await upcoming({ days: 2 });
    expect(found).toMatchObject({ tz: "Asia/Tokyo", jobs: 2, heartbeats: 1, leftOut: 0, daysLeftOut: 0 });
    expect(found.days).toEqual([
      {
        date: "2100-01-01",
        times: [
          { jobId: "report", agentId: "main", name: "Report", atMs: FAR + HOUR, lastAtMs: FAR + 14 * HOUR, count: 14, everyMs: HOUR },
          { agentId: "main", name: "Heartbeat", atMs: FAR + 6 * HOUR, count: 1 },
          { agentId: "main", name: "Heartbeat", atMs: FAR + 12 * HOUR, count: 1 },
        ],
      },
      {
        date: "2100-01-02",
        times: [
          { jobId: "report", agentId: "main", name: "Report", atMs: FAR + 15 * HOUR, lastAtMs: FAR + 38 * HOUR, count: 24, everyMs: HOUR },
          { agentId: "main", name: "Heartbeat", atMs: FAR + 18 * HOUR, lastAtMs: FAR + 36 * HOUR, count: 4, everyMs: 6 * HOUR },
          { jobId: "daily", agentId: "main", name: "Daily", atMs: FAR + DAY, count: 1 },
        ],
      },
    ]);
    expect(found.next.map(({ jobId, atMs }) => [jobId, atMs])).toEqual([
      ["report", FAR + HOUR],
      [undefined, FAR + 6 * HOUR],
      ["daily", FAR + DAY],
    ]);
    pass(stage, HOUR);
    expect(await becomes(stage, "ok")).toMatchObject({ ts: FAR + HOUR });
    expect((await upcoming({ days: 0 })).next[0]).toMatchObject({ jobId: "report", atMs: FAR + 2 * HOUR });
  });
  it("counts what its limits leave out, and refuses others", async () => {
    await add(stage, task({ schedule: { kind: "every", everyMs: 8 * HOUR } }));
    const found = await upcoming({ days: 2, limit: 1 });
    expect(found.days.map(({ times }) => times.length)).toEqual([1]);
    expect(found.leftOut).toBe(4);
    for (const wrong of [{ days: 32 }, { days: -1 }, { limit: 0 }, { limit: 501 }])
      expect(await stage.peer.refused("cron.upcoming", wrong)).toMatchObject({ reason: "protocol.invalid_params" });
  });
});

describe("[SC15] what does not run, and what failed", () => {
  it("while GSV is stopped, it says so, counts what waits, and keeps a reminder whose time is over", async () => {
    await add(stage);
    await add(stage, task({ id: "once", schedule: { kind: "at", atMs: FAR + HOUR } }));
    await stage.peer.ok("gateway.stop", {});
    pass(stage, HOUR);
    await eventually(async () => {
      await alarm();
      expect(await runs(stage)).toHaveLength(1);
    });
    const found = await upcoming();
    expect(found).toMatchObject({ stopped: true, jobs: 2, heartbeats: 0 });
    expect(found.next[0]).toMatchObject({ jobId: "once", atMs: FAR + HOUR });
    await stage.peer.ok("gateway.resume", {});
    await eventually(async () => {
      await alarm();
      expect(calls).toHaveLength(1);
    });
    const after = await upcoming();
    expect(after).toMatchObject({ stopped: false, jobs: 1 });
  });
  it("shows a job that failed with its error, also when it is paused for it, until it is resumed", async () => {
    stage.answer = () => ({ kind: "failed", error: { reason: "model.auth", message: "The key is wrong." }, retryable: false });
    await add(stage);
    pass(stage, HOUR);
    const { error } = await becomes(stage, "error");
    expect(error).toContain("The key is wrong.");
    expect(await upcoming({ days: 0 })).toMatchObject({
      failed: [{ jobId: "report", agentId: "main", name: "Report", failures: 1, atMs: FAR + HOUR, error }],
      failedCount: 1,
    });
    for (let count = 2; count <= 5; count++) {
      pass(stage, HOUR);
      await eventually(async () => {
        await alarm();
        expect((await runs(stage)).filter(({ status }) => status === "error")).toHaveLength(count);
      });
    }
    expect(await upcoming({ days: 0 })).toMatchObject({ jobs: 0, next: [], failed: [{ failures: 5, paused: true }] });
    await stage.peer.ok("cron.update", { id: "report", patch: { enabled: true } });
    expect(await upcoming({ days: 0 })).toMatchObject({ jobs: 1, failed: [], failedCount: 0 });
  });
});
