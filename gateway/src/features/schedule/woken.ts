/** Runs that hooks cause. A hook without a job of the owner's has a job of its own, without times, which no list shows. */
import type { WokenJobsPort } from "../../ports/schedule.ts";
import { hookJobId } from "./job.ts";
import type { JobStore } from "./job-store.ts";
import type { Jobs } from "./jobs.ts";

export const wokenJobs = (
  store: JobStore,
  load: () => Promise<{ readonly jobs: Jobs }>,
  now: () => number,
): WokenJobsPort["wokenJobs"] => ({
  problemOf: async (spec, agentId) => (await load()).jobs.specProblem(spec, agentId),
  keep: (hook, agentId, spec, now) => {
    const id = hookJobId(hook);
    store.keep({
      id,
      agentId,
      body: { name: hook, createdAt: now, updatedAt: now, schedule: { kind: "beat" }, spec },
      enabled: true,
      lookedAt: now,
      failures: 0,
    });
    return id;
  },
  drop: (hook) => void store.remove(hookJobId(hook)),
  ownIdOf: hookJobId,
  stateOf: (jobId) => {
    const job = store.find(jobId);
    if (job === undefined) return "none";
    if (!job.enabled) return "paused";
    // Its own time comes first.
    const isDue = job.nextAt !== undefined && job.nextAt <= now();
    return isDue || store.open(jobId) !== undefined ? "busy" : "free";
  },
  agentOf: (jobId) => store.find(jobId)?.agentId,
  wake: (jobId, given, now) => store.takeByHand(jobId, now, { given })?.id,
  runOf: (id) => {
    const run = store.runById(id);
    if (run === undefined) return undefined;
    const { error, summary } = run.body;
    return { status: run.status, ...(error === undefined ? {} : { error }), ...(summary === undefined ? {} : { summary }) };
  },
});
