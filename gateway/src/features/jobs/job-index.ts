/** The index of jobs in a KV namespace (rules JB9, JB10): one key for each job, with a summary as its metadata. Its values are empty. */
import { checkJobSummary } from "../../../../protocol/gen/validators/checks.js";
import type { AgentReport, JobListParams, JobListResult, JobSummary } from "../../../../protocol/gen/types.ts";
import { utf8Bytes } from "../../../../protocol/runtime/utf8.ts";
import type { IndexSpace, NewJob } from "../../ports/jobs.ts";
import { headOf, type JobState } from "./machine.ts";

const PREFIX = "job/";
/** Keys are in the order of their bytes, so the newest job must have the smallest number. */
const LAST_TIME = 9_999_999_999_999;
const TIME_DIGITS = 13;
/** Metadata has at most 1,024 bytes. */
const INSTRUCTIONS_BYTES = 300;
const LIMIT = 50;
/** Keys that one call of the namespace lists, at most. */
const KEYS = 1_000;
/** Calls of the namespace for one page: with a rare status, the page may be short. */
const CALLS = 20;

export const indexKey = ({ id, createdAt }: Pick<NewJob, "id" | "createdAt">): string =>
  `${PREFIX}${String(LAST_TIME - createdAt).padStart(TIME_DIGITS, "0")}/${id}`;

export function summaryOf(job: NewJob, state: JobState, report: Pick<AgentReport, "cost_usd" | "usage"> | undefined): JobSummary {
  // Calls of models without a known price count as 0, which is not their price.
  const isPriced = report !== undefined && (report.cost_usd > 0 || report.usage.costUsd !== undefined);
  return {
    ...headOf(job, state),
    instructions: beginning(job.request.instructions),
    ...(state.endedAt === undefined || !isPriced ? {} : { cost_usd: report.cost_usd }),
  };
}
/** One line. No character of it needs an escape of many bytes in JSON. */
function beginning(text: string): string {
  const line = text
    .slice(0, 4 * INSTRUCTIONS_BYTES)
    .replace(/[\s\p{C}]+/gu, " ")
    .trim();
  if (jsonBytes(line) <= INSTRUCTIONS_BYTES) return line;
  let kept = "";
  let bytes = 0;
  for (const character of line) {
    bytes += jsonBytes(character);
    if (bytes > INSTRUCTIONS_BYTES - 3) break;
    kept += character;
  }
  return `${kept}…`;
}
const jsonBytes = (text: string): number => utf8Bytes(JSON.stringify(text)) - 2;

/**
 * A page. Keys that are not of a job are left out. A filtered list always asks for full pages of keys, so its page may end within one of
 * them: its cursor has the last key that was looked at, and the cursor of the page of keys.
 */
export async function listJobs(space: IndexSpace, { status, agent, limit = LIMIT, cursor }: JobListParams): Promise<JobListResult> {
  const jobs: JobSummary[] = [];
  const isFiltered = status !== undefined || agent !== undefined;
  let { after, at } = readCursor(cursor);
  let searched = 0;
  for (let call = 0; call < CALLS; call++) {
    const page = await space.list({
      prefix: PREFIX,
      limit: isFiltered || after !== "" ? KEYS : Math.min(KEYS, limit),
      ...(at === undefined ? {} : { cursor: at }),
    });
    for (const [index, { name, metadata }] of page.keys.entries()) {
      if (name <= after) continue;
      searched++;
      if (!checkJobSummary(metadata)) continue;
      const isWanted =
        (status === undefined || metadata.status === status) &&
        (agent === undefined || metadata.agent_name === agent || metadata.agent_id === agent);
      if (isWanted) jobs.push(metadata);
      if (jobs.length === limit && index < page.keys.length - 1) return { jobs, searched, cursor: `${name}${BETWEEN}${at ?? ""}` };
    }
    if (page.list_complete || page.cursor === undefined) return { jobs, searched };
    at = page.cursor;
    after = "";
    if (jobs.length >= limit || !isFiltered) break;
  }
  return { jobs, searched, ...(at === undefined ? {} : { cursor: at }) };
}
const BETWEEN = "~";
function readCursor(cursor: string | undefined): { readonly after: string; readonly at: string | undefined } {
  const end = cursor?.startsWith(PREFIX) === true ? cursor.indexOf(BETWEEN) : -1;
  if (cursor === undefined || end < 0) return { after: "", at: cursor };
  const at = cursor.slice(end + BETWEEN.length);
  return { after: cursor.slice(0, end), at: at === "" ? undefined : at };
}
