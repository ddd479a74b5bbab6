/**
 * A job is run once, whatever is evicted, killed or lost. The gateway, the jobs and the sessions are real; the model and the clock are
 * made up.
 */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { describe, expect, test } from "vitest";
import { eventually } from "../../support/gateway.ts";
import { alarm, jobStage, pass } from "../schedule/support.ts";
import { inQueue, jobAlarm, object, stands, submit, submitCut, without } from "./support.ts";

const stage = jobStage();

describe("[JB4] a job is run once, whatever is evicted or killed", () => {
  test("its first alarm comes within a second", async () => {
    const id = await submit();
    const alarmAt = await runInDurableObject(object(id), (_object, state) => state.storage.getAlarm());
    expect(alarmAt).toBeGreaterThanOrEqual(stage.now);
    expect(alarmAt).toBeLessThanOrEqual(stage.now + 1_000);
    // All that a job needs is loaded before the next test aborts the objects that would load it: in these tests such an import never ends.
    await stands(id, "succeeded");
  });
  test("when all objects are killed before each of its alarms", async () => {
    const ids = [await submit(), await submit(), await submit()];
    for (let round = 0; round < 12; round++) {
      await abortAllDurableObjects();
      await Promise.all(ids.map((id) => jobAlarm(id).catch(() => undefined)));
    }
    for (const id of ids) expect((await stands(id, "succeeded")).report?.summary).toBe("the report");
    expect(stage.calls).toHaveLength(3);
  });
  test("a request that was cut for good leaves nothing", async () => {
    await submitCut();
    expect(await inQueue((queue) => queue.waiting())).toBe(1);
    pass(stage, 2 * 60_000);
    await alarm();
    expect(await inQueue((queue) => queue.waiting())).toBe(0);
  });
  test("a wake that was lost is made again", async () => {
    await stage.peer.ok("config.set", { path: "jobs.maxConcurrent", value: 1 });
    const [first, second] = [await submit(), await submit()];
    await jobAlarm(second);
    const restore = without("wake");
    await stands(first, "succeeded");
    restore();
    expect(await jobAlarm(second), "nothing has set its alarm").toBe(false);
    pass(stage, 60_000);
    await eventually(async () => {
      await alarm();
      expect(await jobAlarm(second)).toBe(true);
    });
    await stands(second, "succeeded");
  });
});
