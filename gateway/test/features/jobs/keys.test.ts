/**
 * An idempotency key stands for one job, also at the same moment and after a request that was cut. The gateway, the jobs and the
 * sessions are real; the model and the clock are made up.
 */
import { describe, expect, test, vi } from "vitest";
import type { JobTaken } from "../../../../protocol/gen/types.ts";
import { parts } from "../../../src/app/compose.ts";
import { gateway, token } from "../../support/gateway.ts";
import { alarm, jobStage, pass } from "../schedule/support.ts";
import { cancel, DAY, inQueue, refused, send, stands, submit, submitCut, TASK } from "./support.ts";
import { evict } from "../../support/evict.ts";

const stage = jobStage();

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
  test("finds its job also when the agent is gone, with the present status", async () => {
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
