/**
 * The index of jobs: written again after a failure, and listed by status and agent in pages. The gateway, the jobs and the sessions are
 * real; the model and the clock are made up.
 */
import { env } from "cloudflare:workers";
import { describe, expect, test, vi } from "vitest";
import type { JobListResult } from "../../../../protocol/gen/types.ts";
import { eventually } from "../../support/gateway.ts";
import { jobStage, pass } from "../schedule/support.ts";
import { jobAlarm, list, stands, submit, TASK } from "./support.ts";

const stage = jobStage();

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
