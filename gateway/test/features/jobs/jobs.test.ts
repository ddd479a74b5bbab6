/** `/jobs` through the Worker, with real gateway, sessions and job objects and a scripted model. */
import { abortAllDurableObjects, runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { AgentJob, JobListResult, JobTaken } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { says } from "../../session/support.ts";
import { ADMIN, eventually, fetchWorker, gateway, token } from "../../support/gateway.ts";
import { alarm, hold, HOUR, jobStage, pass } from "../schedule/support.ts";
import { cancel, inQueue, jobAlarm, list, object, push, refused, send, show, stands, submit, TASK } from "./support.ts";
import { evict } from "../../support/evict.ts";

const stage = jobStage();
const DAY = 24 * HOUR;
/** Calls of the gateway to jobs by this name fail. Returns how to end it. */
function without(name: "accept" | "wake"): () => void {
  const real = parts.job;
  const spy = vi.spyOn(parts, "job").mockImplementation((...given) => {
    const job = real(...given);
    return new Proxy(job, {
      get: (target, member) => (member === name ? () => Promise.reject(new Error("cut")) : Reflect.get(target, member, target)),
    });
  });
  return () => spy.mockRestore();
}
async function submitCut(key?: string): Promise<void> {
  const restore = without("accept");
  expect((await send("POST", "/jobs", { body: TASK, ...(key === undefined ? {} : { key }) })).status).toBe(500);
  restore();
}

describe("[JB1] [JB3] a job", () => {
  test("is taken at once, runs as a task, and has the report in the end", async () => {
    const id = await submit({ ...TASK, payload: { text: "a b" } });
    expect(await show(id)).toMatchObject({ job_id: id, status: "queued", agent_name: "main", agent_id: "main", created_at: stage.now });
    const done = await stands(id, "succeeded");
    expect(done).toMatchObject({
      session_key: `agent:main:task:${id}`,
      started_at: expect.any(Number),
      ended_at: expect.any(Number),
      report: { status: "completed", summary: "the report", metadata: { task_id: id, run_id: `task-${id}` } },
    });
    expect(stage.calls).toHaveLength(1);
    const story = await stage.peer.ok<{ origin: string }>("run.why", { sessionKey: done.session_key });
    expect(story.origin).toBe(`task ${id}`);
  });
  test("that fails, and one that uses up a limit, say so", async () => {
    stage.answer = () => ({ kind: "failed", error: { reason: "model.refused" as never, message: "The model says no." }, retryable: false });
    const failed = await stands(await submit(), "failed");
    expect(failed.report).toMatchObject({ status: "failed", error: { message: "The model says no." } });
    await stage.peer.ok("config.set", { path: "limits.stepsPerRun", value: 1 });
    stage.answer = () => says("", [{ name: "gsv__ReadFile", arguments: { path: "none.md" } }]);
    const advice = async (key?: string): Promise<string> => {
      const { error } = (await stands(await submit(undefined, key), "budget_exceeded")).report ?? {};
      expect(error?.reason).toBe("budget.steps");
      return error?.message ?? "";
    };
    // A new key is named only when the request had one (rule RT2).
    expect(await advice()).toMatch(/ Send the task again, or raise `limits\.stepsPerRun`\.$/);
    expect(await advice("k")).toMatch(/ Send the task again with a new key, or raise `limits\.stepsPerRun`\.$/);
  });
  test("that waits for the owner's word is shown with its codes, and goes on with the answer", async () => {
    await stage.peer.ok("config.set", { path: "toolApproval", value: { mode: "ask" } });
    stage.answer = ({ messages }) =>
      messages.at(-1)?.role === "toolResult"
        ? says("Written.")
        : says("", [{ name: "gsv__WriteFile", arguments: { path: "SOUL.md", content: "x" } }]);
    const id = await submit();
    const waits = await stands(id, "awaiting_approval");
    const [code = ""] = waits.report?.metadata.approvals ?? [];
    expect(waits.report?.summary).toContain(`\`gsv approval allow ${code}\`. The job goes on then: \`gsv job watch ${id}\``);
    expect(await inQueue((queue) => [queue.running(), queue.awaiting()])).toEqual([0, 1]);
    // No one follows its conversation, so the owner is told, once.
    const { notifications } = await stage.peer.ok<ResultOf<"notifications.list">>("notifications.list", { kind: "approval" });
    expect(notifications).toMatchObject([{ kind: "approval", text: expect.stringContaining(`The task ${id} of the agent main waits`) }]);
    expect(notifications[0]?.text).toContain(`\`gsv approval allow ${code}\``);
    await stage.peer.ok("approval.resolve", { code, decision: "allow" });
    const done = await stands(id, "succeeded");
    expect(done.report?.summary).toBe("Written.");
    expect(done.report?.metadata.approvals).toBeUndefined();
  });
  test("is the same over the gateway's methods", async () => {
    const taken = await stage.peer.ok<JobTaken>("job.submit", { task: TASK, key: "k" });
    expect(taken).toMatchObject({ status: "queued" });
    const done = await stands(taken.job_id, "succeeded");
    expect(await stage.peer.ok<AgentJob>("job.get", { job_id: taken.job_id })).toEqual(done);
    expect(await stage.peer.ok<AgentJob>("job.cancel", { job_id: taken.job_id })).toEqual(done);
    expect((await stage.peer.ok<JobListResult>("job.list", {})).jobs).toMatchObject([{ job_id: taken.job_id, status: "succeeded" }]);
    expect(await stage.peer.ok<JobTaken>("job.submit", { task: TASK, key: "k" }), "the same key").toEqual({
      job_id: taken.job_id,
      status: "succeeded",
    });
    expect((await stage.peer.refused("job.get", { job_id: "none" })).reason).toBe("job.not_found");
  });
});

test("[JB3] a job whose agent was deleted while it waited has failed, and nothing ran", async () => {
  const define = (id: string): Promise<unknown> =>
    stage.peer.ok("agents.define", { text: `metadata: { id: ${id}, name: sorter }\ncore_context: { system_prompt: You sort. }\n` });
  await define("one");
  await stage.peer.ok("gateway.stop", {});
  const [gone, other] = [await submit({ ...TASK, agent_name: "sorter" }), await submit({ ...TASK, agent_name: "sorter" })];
  await stage.peer.ok("agents.delete", { agentId: "one" });
  await stage.peer.ok("gateway.resume", {});
  await alarm();
  expect((await stands(gone, "failed")).error).toMatchObject({ reason: "agent.unknown" });
  await define("two");
  expect((await stands(other, "failed")).error?.reason).toBe("agent.unknown");
  expect(stage.calls).toHaveLength(0);
});

describe("[JB1] a request that is refused stores nothing", () => {
  test("for its sender, its form, its agent, its data", async () => {
    const reader = await token("client-ro");
    const node = await token("node", { nodeId: "lap" });
    const post = (body: unknown, more: { readonly key?: string; readonly auth?: string } = {}) =>
      send("POST", "/jobs", { body, ...more }).then(refused);
    expect([
      await post(TASK, { auth: "wrong" }),
      await post(TASK, { auth: reader.token }),
      await post(TASK, { auth: node.token }),
      await post("{"),
      await post({ ...TASK, instructions: "" }),
      await post(TASK, { key: "a b" }),
      await post({ ...TASK, payload: "x".repeat(262_144) }),
      await post({ ...TASK, agent_name: "none" }),
      await post({ ...TASK, payload: { system_prompt: "x" } }),
      await refused(await send("PUT", "/jobs")),
      await refused(await send("POST", "/jobs/abc")),
      await refused(await send("GET", "/jobs/none")),
      await refused(await send("DELETE", "/jobs/none")),
      await refused(await send("GET", "/jobs/a%2Fb")),
      await refused(await send("GET", "/jobs?status=done")),
      await refused(await send("GET", "/jobs?limit=0")),
      await refused(await send("GET", "/jobs?limit=many")),
      await refused(await send("GET", "/jobs?state=queued")),
      await post({ ...TASK, instruction: "x" }),
    ]).toEqual([
      [401, "auth.required"],
      [403, "auth.forbidden"],
      [403, "auth.forbidden"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [413, "protocol.too_large"],
      [404, "agent.unknown"],
      [400, "context.override"],
      [405, "protocol.unsupported"],
      [405, "protocol.unsupported"],
      [404, "job.not_found"],
      [404, "job.not_found"],
      [404, "job.not_found"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
      [400, "protocol.invalid_params"],
    ]);
    expect((await fetchWorker("http://gsv.test/jobs", { method: "POST", body: JSON.stringify(TASK) })).status).toBe(401);
    expect(await inQueue((queue) => queue.waiting())).toBe(0);
    expect((await list()).jobs).toEqual([]);
  });
  test("[JB3] who may only read sees jobs and cancels none", async () => {
    const reader = await token("client-ro");
    const id = await submit();
    expect((await send("GET", `/jobs/${id}`, { auth: reader.token })).status).toBe(200);
    expect((await send("GET", "/jobs", { auth: reader.token })).status).toBe(200);
    expect(await refused(await send("DELETE", `/jobs/${id}`, { auth: reader.token }))).toEqual([403, "auth.forbidden"]);
  });
  test("the body of a caller without the right is not read", async () => {
    const read = vi.fn(() => new Promise<void>(() => undefined));
    const body = new ReadableStream({ pull: read }, { highWaterMark: 0 });
    const response = await fetchWorker("http://gsv.test/jobs", { method: "POST", body, headers: { Authorization: "Bearer wrong" } });
    expect(response.status).toBe(401);
    expect(read).not.toHaveBeenCalled();
  });
  test("a caller who has lost the right since the last job learns nothing else, whatever the body is", async () => {
    const lost = await token("client");
    expect((await send("POST", "/jobs", { body: TASK, auth: lost.token })).status).toBe(202);
    await stage.peer.ok("tokens.revoke", { tokenId: lost.tokenId });
    for (const body of ["no JSON", { ...TASK, agent_name: "none" }, TASK])
      expect(await refused(await send("POST", "/jobs", { body, auth: lost.token }))).toEqual([401, "auth.required"]);
  });
});

describe("[JB2] the same key", () => {
  test("is the same job for a day, of this token and this body", async () => {
    const id = await submit(TASK, "k");
    expect(await submit(TASK, "k")).toBe(id);
    expect(await refused(await send("POST", "/jobs", { body: { ...TASK, instructions: "Other." }, key: "k" }))).toEqual([
      409,
      "task.key_reused",
    ]);
    const other = await token("client");
    const theirs = await (await send("POST", "/jobs", { body: TASK, key: "k", auth: other.token })).json<JobTaken>();
    expect(theirs.job_id).not.toBe(id);
    pass(stage, DAY - 1);
    expect(await submit(TASK, "k")).toBe(id);
    pass(stage, 2);
    const next = await submit({ ...TASK, instructions: "Other." }, "k");
    expect(next).not.toBe(id);
    expect(await submit({ ...TASK, instructions: "Other." }, "k")).toBe(next);
  });
  test("at the same moment is one job", async () => {
    const ids = await Promise.all([submit(TASK, "k"), submit(TASK, "k"), submit(TASK, "k")]);
    expect(new Set(ids).size).toBe(1);
    await stands(ids[0], "succeeded");
    expect(stage.calls).toHaveLength(1);
  });
  test("finds its job also when the agent is gone, with the current status", async () => {
    await stage.peer.ok("agents.define", { text: "metadata: { id: one, name: sorter }\ncore_context: { system_prompt: You sort. }\n" });
    const sort = { ...TASK, agent_name: "sorter" };
    await stage.peer.ok("gateway.stop", {});
    const id = await submit(sort, "k");
    await cancel(id);
    await stage.peer.ok("agents.delete", { agentId: "one" });
    const again = await send("POST", "/jobs", { body: sort, key: "k" });
    expect([again.status, await again.json()]).toEqual([202, { job_id: id, status: "cancelled" }]);
    expect(await refused(await send("POST", "/jobs", { body: sort, key: "other" }))).toEqual([404, "agent.unknown"]);
  });
  test("that comes while the gateway looks whether the first request was cut keeps the job", async () => {
    await submitCut("k");
    pass(stage, 2 * 60_000);
    const real = parts.job;
    let again: string | undefined;
    const spy = vi.spyOn(parts, "job").mockImplementation((...given) => {
      const job = real(...given);
      return new Proxy(job, {
        get: (target, member) =>
          member === "wake"
            ? async () => {
                const isThere = await target.wake();
                again ??= await submit(TASK, "k");
                return isThere;
              }
            : Reflect.get(target, member, target),
      });
    });
    await alarm();
    spy.mockRestore();
    expect(again).toBeDefined();
    expect(await submit(TASK, "k")).toBe(again);
    await stands(again ?? "", "succeeded");
    expect(stage.calls).toHaveLength(1);
  });
  test("of a request that was cut before its object had it stores the job", async () => {
    await submitCut("k");
    await evict(gateway());
    const id = await submit(TASK, "k");
    await stands(id, "succeeded");
    expect(await inQueue((queue) => queue.find(id)?.state)).toBe("ended");
  });
});

describe("[JB4] a job is run once, whatever is evicted or killed", () => {
  test("its first alarm comes within a second", async () => {
    const id = await submit();
    const alarmAt = await runInDurableObject(object(id), (_object, state) => state.storage.getAlarm());
    expect(alarmAt).toBeGreaterThanOrEqual(stage.now);
    expect(alarmAt).toBeLessThanOrEqual(stage.now + 1_000);
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

describe("[JB9] [JB10] the index", () => {
  test("is written again by the next alarm when that failed", async () => {
    const real = env.JOBS_INDEX.put.bind(env.JOBS_INDEX);
    const put = vi.spyOn(env.JOBS_INDEX, "put").mockRejectedValue(new Error("KV is away"));
    const id = await submit();
    await stands(id, "succeeded");
    expect((await list()).jobs).toEqual([]);
    put.mockImplementation(real);
    await eventually(async () => {
      await jobAlarm(id);
      expect((await list()).jobs).toMatchObject([{ job_id: id, status: "succeeded", instructions: TASK.instructions, cost_usd: 0.001 }]);
    });
  });
  test("lists the newest first, by status and agent, in pages", async () => {
    await stage.peer.ok("agents.define", {
      text: 'metadata: { id: agent-sorting, name: sorter }\ncore_context: { system_prompt: "You sort orders." }\ntools: { allowed: [] }\n',
    });
    const ids: string[] = [];
    for (const agent_name of ["main", "sorter", "main", "sorter"]) {
      pass(stage, 1_000);
      const id = await submit({ ...TASK, agent_name });
      ids.push(id);
      await stands(id, "succeeded");
      await jobAlarm(id);
    }
    const idsOf = ({ jobs }: JobListResult) => jobs.map(({ job_id }) => job_id);
    expect(idsOf(await list())).toEqual(ids.toReversed());
    expect(idsOf(await list("?agent=sorter"))).toEqual([ids[3], ids[1]]);
    expect(idsOf(await list("?agent=agent-sorting&status=succeeded"))).toEqual([ids[3], ids[1]]);
    expect(idsOf(await list("?status=failed"))).toEqual([]);
    const first = await list("?limit=3");
    expect(idsOf(first)).toEqual(ids.toReversed().slice(0, 3));
    expect(idsOf(await list(`?limit=3&cursor=${encodeURIComponent(first.cursor ?? "")}`))).toEqual([ids[0]]);
  });
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

test("[JB1] an admin's Authorization is needed for the list too", async () => {
  expect((await fetchWorker("http://gsv.test/jobs")).status).toBe(401);
  expect((await fetchWorker("http://gsv.test/jobs", { headers: { Authorization: `Bearer ${ADMIN}` } })).status).toBe(200);
});
