/**
 * A job is taken, runs as a task, and ends with a report that says how it ended, over HTTP and over the gateway's methods. The gateway,
 * the jobs and the sessions are real; the model and the clock are made up.
 */
import { describe, expect, test } from "vitest";
import type { ResultOf } from "../../../../protocol/gen/methods.ts";
import type { AgentJob, JobListResult, JobTaken } from "../../../../protocol/gen/types.ts";
import { says } from "../../session/support.ts";
import { alarm, jobStage } from "../schedule/support.ts";
import { inQueue, show, stands, submit, TASK } from "./support.ts";

const stage = jobStage();

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
    expect((await stands(await submit(), "budget_exceeded")).report).toMatchObject({ error: { reason: "budget.steps" } });
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
    expect(waits.report?.summary).toContain(`gsv approval allow ${code}. The job goes on then: gsv job watch ${id}`);
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
