/** `cron.upcoming`: what comes next, and what failed last (rules SC14, SC15). */
import type { ParamsOf, ResultOf } from "../../../../protocol/gen/methods.ts";
import { asAgentId, type CronComing, type CronFailure } from "../../../../protocol/gen/types.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { CronEngine } from "../../schedule/schedule.ts";
import { type Coming, type ComingJob, firstTime, upcoming } from "../../schedule/upcoming.ts";
import type { BeatRows } from "./beat-rows.ts";
import { type Job, lineOfJob } from "./job.ts";
import type { JobStore } from "./job-store.ts";

export interface ComingPorts extends Pick<KernelPorts, "config" | "now">, Pick<StopPort, "stopped"> {
  readonly store: JobStore;
  readonly rows: BeatRows;
  readonly engine: CronEngine;
}
const DAYS = 7;
const ENTRIES = 200;
const SHOWN_NEXT = 5;
const SHOWN_FAILED = 5;

interface Named extends ComingJob {
  readonly of: Job;
}

/** `blocked`: agents whose heartbeat looks at nothing now, so that no time of it is announced. */
export function whatComes(
  ports: ComingPorts,
  { days, limit }: ParamsOf<"cron.upcoming">,
  blocked: ReadonlySet<string>,
): ResultOf<"cron.upcoming"> {
  const { config, now, store, rows, engine, stopped } = ports;
  const at = now();
  rows.sync(at);
  const all = [...store.list(), ...store.beats()];
  const comes = all.filter(({ agentId, body }) => body.beat === undefined || !blocked.has(agentId));
  const jobs = comes.flatMap((job) => namedJob(job, engine));
  const tz = config.effective().userTimezone;
  const found = upcoming(jobs, { now: at, tz, days: days ?? DAYS, limit: limit ?? ENTRIES });
  const firsts = jobs.flatMap((job) => {
    const first = firstTime(job, at);
    return first === undefined ? [] : [{ job, at: first, count: 1 }];
  });
  const heartbeats = firsts.filter(({ job }) => job.of.body.beat !== undefined).length;
  const failed = all.filter((job) => job.failures > 0 && (job.enabled || job.paused !== undefined));
  return {
    tz,
    nowMs: at,
    stopped: stopped() !== undefined,
    jobs: firsts.length - heartbeats,
    heartbeats,
    next: firsts
      .toSorted((a, b) => a.at - b.at)
      .slice(0, SHOWN_NEXT)
      .map(shown),
    days: found.days.map(({ date, entries }) => ({ date, times: entries.map(shown) })),
    leftOut: found.leftOut,
    daysLeftOut: found.daysLeftOut,
    failed: failed
      .map((job) => failureOf(job, store))
      .toSorted((a, b) => (b.atMs ?? 0) - (a.atMs ?? 0))
      .slice(0, SHOWN_FAILED),
    failedCount: failed.length,
  };
}

function namedJob(job: Job, engine: CronEngine): readonly Named[] {
  const { schedule, beat } = job.body;
  if (!job.enabled || job.nextAt === undefined) return [];
  const interval = beat === undefined ? {} : { everyMs: beat.settings.everyMs };
  return [{ of: job, schedule, nextAt: job.nextAt, line: lineOfJob(job, engine), ...interval }];
}
/** No heartbeat is named by an id: its row has one that no job can have. */
const nameOf = ({ id, agentId, body }: Job) => ({
  ...(body.beat === undefined ? { jobId: id } : {}),
  agentId: asAgentId(agentId),
  name: body.name,
});
const shown = ({ job, at, lastAt, count, isMore, everyMs }: Coming<Named>): CronComing => ({
  ...nameOf(job.of),
  atMs: at,
  ...(lastAt === undefined ? {} : { lastAtMs: lastAt }),
  count,
  ...(isMore === undefined ? {} : { isMore }),
  ...(everyMs === undefined ? {} : { everyMs }),
});
function failureOf(job: Job, store: JobStore): CronFailure {
  const last = store.lastEnded(job.id);
  const error = last?.status === "error" ? last : undefined;
  return {
    ...nameOf(job),
    failures: job.failures,
    ...(error === undefined ? {} : { atMs: error.ts }),
    ...(error?.body.error === undefined ? {} : { error: error.body.error }),
    ...(job.paused === undefined ? {} : { paused: true as const }),
  };
}
