/**
 * How long a job, its task and its conversation are kept. The gateway, the jobs and the sessions are real; the model and the clock are
 * made up.
 */
import { runInDurableObject } from "cloudflare:test";
import { expect, test } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { eventually } from "../../support/gateway.ts";
import { alarm, hold, HOUR, jobStage, pass } from "../schedule/support.ts";
import { DAY, jobAlarm, list, object, push, refused, send, show, stands, submit, TASK } from "./support.ts";

const stage = jobStage();

test("[JB12] a week after its end a job is gone, with its report, its entry in the index, and its conversation", async () => {
  const id = await submit(TASK, "k");
  const { session_key } = await stands(id, "succeeded");
  await jobAlarm(id);
  pass(stage, LIMITS.jobDays * DAY - 1);
  await jobAlarm(id);
  expect(await show(id)).toMatchObject({ status: "succeeded" });
  pass(stage, HOUR);
  await jobAlarm(id);
  await alarm();
  expect(await refused(await send("GET", `/jobs/${id}`))).toEqual([404, "job.not_found"]);
  expect((await list()).jobs).toEqual([]);
  expect(await runInDurableObject(object(id), (_object, state) => [...state.storage.kv.list()])).toEqual([]);
  await eventually(async () =>
    expect((await stage.peer.refused("session.get", { sessionKey: session_key })).reason).toBe("session.not_found"),
  );
});

test("[JB12] the task and its conversation go a week after the task began, the job a week after it ended", async () => {
  const release = hold(stage, "held");
  const id = await submit();
  push(id);
  await eventually(() => expect(stage.calls).toHaveLength(1));
  const session_key = (await show(id)).session_key;
  pass(stage, DAY);
  release();
  await stands(id, "succeeded");
  await jobAlarm(id);
  const hasConversation = async () => {
    const found = await stage.peer.call("session.get", { sessionKey: session_key });
    return found.ok;
  };
  expect(await hasConversation()).toBe(true);
  pass(stage, (LIMITS.jobDays - 1) * DAY + HOUR);
  await eventually(async () => {
    await alarm();
    expect(await hasConversation()).toBe(false);
  });
  await jobAlarm(id);
  expect(await show(id)).toMatchObject({ status: "succeeded", report: { summary: "held" } });
  pass(stage, DAY);
  await jobAlarm(id);
  expect(await refused(await send("GET", `/jobs/${id}`))).toEqual([404, "job.not_found"]);
});
