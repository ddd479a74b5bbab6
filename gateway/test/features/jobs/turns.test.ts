/**
 * When a job begins: how many run and wait at once, whose turn it is, and that none begins while GSV is stopped. The gateway, the jobs
 * and the sessions are real; the model and the clock are made up.
 */
import { describe, expect, test } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { eventually } from "../../support/gateway.ts";
import { alarm, hold, jobStage } from "../schedule/support.ts";
import { cancel, inQueue, jobAlarm, push, refused, send, show, stands, submit, TASK } from "./support.ts";

const stage = jobStage();

describe("[JB5] turns", () => {
  test("at most so many run at once, and a change of the setting has its effect", async () => {
    await stage.peer.ok("config.set", { path: "jobs.maxConcurrent", value: 2 });
    const release = hold(stage, "held");
    const ids = [await submit(), await submit(), await submit(), await submit()];
    for (const id of ids) push(id);
    await eventually(() => expect(stage.calls).toHaveLength(2));
    expect(await inQueue((queue) => queue.running())).toBe(2);
    await stage.peer.ok("config.set", { path: "jobs.maxConcurrent", value: 3 });
    await eventually(async () => {
      await alarm();
      for (const id of ids) push(id);
      expect(stage.calls).toHaveLength(3);
    });
    expect((await stage.peer.refused("config.set", { path: "jobs.maxConcurrent", value: 0 })).reason).toBe("config.invalid");
    release();
    for (const id of ids) await stands(id, "succeeded");
    expect(stage.calls).toHaveLength(4);
  });
});

test("[JB6] agents take turns, also when one has submitted all of its jobs before the other", async () => {
  await stage.peer.ok("agents.define", { text: "metadata: { id: two, name: two }\ncore_context: { system_prompt: You sort. }\n" });
  await stage.peer.ok("config.set", { path: "jobs.maxConcurrent", value: 1 });
  await stage.peer.ok("gateway.stop", {});
  const names = new Map<string, string>();
  for (const name of ["two 1", "two 2", "two 3", "main 1", "main 2"])
    names.set(await submit({ agent_name: name.split(" ")[0], instructions: name }), name);
  await stage.peer.ok("gateway.resume", {});
  const order: string[] = [];
  while (order.length < names.size) {
    await alarm();
    const id = await inQueue((queue) => [...names.keys()].find((each) => ["granted", "running"].includes(queue.find(each)?.state ?? "")));
    if (id === undefined) continue;
    order.push(names.get(id) ?? "");
    await stands(id, "succeeded");
  }
  expect(order).toEqual(["two 1", "main 1", "two 2", "main 2", "two 3"]);
});

test("[JB5] while as many jobs wait for the owner as may wait, none begins", async () => {
  await inQueue((queue) => {
    for (let number = 0; number < LIMITS.jobsAwaiting; number++)
      queue.add(
        { id: `x${number}`, tenantId: "main", agentId: "main", bodySha256: "x", createdAt: stage.now },
        "awaiting_approval",
        undefined,
      );
  });
  const id = await submit();
  await jobAlarm(id);
  await alarm();
  await jobAlarm(id);
  expect(await show(id)).toMatchObject({ status: "queued" });
  expect(stage.calls).toHaveLength(0);
  await inQueue((queue) => queue.remove("x0"));
  // A change of the setting is a reason to look at the queue.
  await stage.peer.ok("config.set", { path: "jobs.maxConcurrent", value: 5 });
  await alarm();
  await stands(id, "succeeded");
});

test("[JB7] one job more than may wait is refused, and says when to come again", async () => {
  await inQueue((queue) => {
    for (let number = 0; number < LIMITS.jobsWaiting; number++)
      queue.add({ id: `x${number}`, tenantId: "main", agentId: "main", bodySha256: "x", createdAt: stage.now }, "queued", undefined);
  });
  await stage.peer.ok("gateway.stop", {});
  const response = await send("POST", "/jobs", { body: TASK });
  expect(response.headers.get("Retry-After")).toBe("60");
  expect(await refused(response)).toEqual([429, "limit.jobs"]);
});

test("[JB11] while GSV is stopped jobs are taken and wait, can be cancelled, and begin after the resume", async () => {
  await stage.peer.ok("gateway.stop", {});
  const [first, second] = [await submit(), await submit()];
  await jobAlarm(first);
  await jobAlarm(second);
  await alarm();
  expect(await cancel(second)).toMatchObject({ status: "cancelled" });
  expect(await show(first)).toMatchObject({ status: "queued" });
  expect(stage.calls).toHaveLength(0);
  await stage.peer.ok("gateway.resume", {});
  await eventually(async () => {
    await alarm();
    expect(await inQueue((queue) => queue.find(first)?.state)).not.toBe("queued");
  });
  await stands(first, "succeeded");
  expect(stage.calls).toHaveLength(1);
});
