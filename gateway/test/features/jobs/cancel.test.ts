/**
 * A job that is cancelled never begins, or ends with a report that says so. The gateway, the jobs and the sessions are real; the model
 * and the clock are made up.
 */
import { describe, expect, test } from "vitest";
import { eventually } from "../../support/gateway.ts";
import { hold, jobStage } from "../schedule/support.ts";
import { cancel, inQueue, jobAlarm, list, push, show, submit } from "./support.ts";

const stage = jobStage();

describe("[JB8] cancel", () => {
  test("a queued job never begins", async () => {
    const id = await submit();
    expect(await cancel(id)).toMatchObject({ status: "cancelled", ended_at: stage.now });
    await jobAlarm(id);
    expect(await show(id)).toMatchObject({ status: "cancelled" });
    expect((await show(id)).report).toBeUndefined();
    expect(stage.calls).toHaveLength(0);
    expect((await list()).jobs).toMatchObject([{ job_id: id, status: "cancelled" }]);
    expect(await inQueue((queue) => queue.find(id)?.state)).toBe("ended");
  });
  test("a running job ends, and its report says so; later nothing changes", async () => {
    const release = hold(stage, "too late");
    const id = await submit();
    push(id);
    await eventually(() => expect(stage.calls).toHaveLength(1));
    await cancel(id);
    await eventually(async () => expect((await show(id)).status).toBe("cancelled"));
    const done = await show(id);
    expect(done.report).toMatchObject({ status: "cancelled" });
    release();
    expect(await cancel(id)).toEqual(done);
  });
});
