/** Jobs whose agent went with its pack (rule SC17): the change that turns the pack off names them. PURE. */
import { type Job, nounOf } from "./job.ts";

const NAMED = 3;

/** `gone`: the agents that the change took away with their packs. */
export function jobsWithoutAgent(
  gone: readonly string[],
  jobs: readonly Pick<Job, "id" | "agentId" | "enabled" | "nextAt">[],
): readonly string[] {
  const lost = jobs.filter((job) => nounOf(job) === "job" && job.enabled && job.nextAt !== undefined && gone.includes(job.agentId));
  const [first] = lost;
  if (first === undefined) return [];
  const named = lost.slice(0, NAMED).map(({ id, agentId }) => `${id} (${agentId})`);
  const more = lost.length > NAMED ? ` and ${lost.length - NAMED} more` : "";
  const what = `${lost.length} ${lost.length === 1 ? "job has" : "jobs have"} no agent now`;
  return [
    `${what}: ${named.join(", ")}${more}. Until the pack is on again, times of repeating jobs are skipped and other jobs wait. To remove one: \`gsv cron remove ${first.id}\`.`,
  ];
}
