/** The jobs that a change of the packs leaves without their agents. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { jobsWithoutAgent } from "./without-agent.ts";

test("[SC17] a change of the packs names the jobs whose agents it takes away", () => {
  const job = (id: string, agentId: string) => ({ id, agentId, enabled: true, nextAt: 1 });
  const { nextAt: _none, ...over } = job("over", "seller");
  const jobs = [job("weekly", "seller"), job("own", "main"), job("earlier", "unlisted"), { ...job("off", "seller"), enabled: false }, over];
  assert.deepEqual(jobsWithoutAgent(["seller"], jobs), [
    "1 job has no agent now: weekly (seller). Until the pack is on again, times of repeating jobs are skipped and other jobs wait. To remove one: `gsv cron remove weekly`.",
  ]);
  assert.deepEqual(jobsWithoutAgent([], jobs), []);
  const many = ["a", "b", "c", "d"].map((id) => job(id, "seller"));
  assert.match(
    jobsWithoutAgent(["seller"], many).join(),
    /^4 jobs have no agent now: a \(seller\), b \(seller\), c \(seller\) and 1 more\./,
  );
});
