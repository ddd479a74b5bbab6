/** Jobs whose agent went with its pack (rule SC17): a change of the packs names them. PURE. */
import { type Job, nounOf } from "./job.ts";

const NAMED = 3;

export function jobsWithoutAgent(
  path: string,
  jobs: readonly Pick<Job, "id" | "agentId" | "enabled" | "nextAt">[],
  hasAgent: (agentId: string) => boolean,
): readonly string[] {
  if (path !== "packs" && !path.startsWith("packs.")) return [];
  const lost = jobs.filter((job) => nounOf(job) === "job" && job.enabled && job.nextAt !== undefined && !hasAgent(job.agentId));
  const [first] = lost;
  if (first === undefined) return [];
  const named = lost.slice(0, NAMED).map(({ id, agentId }) => `${id} (${agentId})`);
  const more = lost.length > NAMED ? ` and ${lost.length - NAMED} more` : "";
  const what = `${lost.length} ${lost.length === 1 ? "job has" : "jobs have"} no agent now`;
  return [
    `${what}: ${named.join(", ")}${more}. Until the pack is on again, times of repeating jobs are skipped and other jobs wait. To remove one: \`gsv cron remove ${first.id}\`.`,
  ];
}
