/** Jobs and their runs as callers see them. PURE. */
import { asAgentId, asNodeId, asSessionKey, type CronJob, type CronRun, type CronSchedule } from "../../../../protocol/gen/types.ts";
import { localTimeOf } from "../../schedule/zone.ts";
import type { Job, JobRun } from "./job.ts";

/** No id of a job has a dot, so the conversation of a hook is not that of a job. */
export const taskSessionKey = (agentId: string, jobId: string): string => `agent:${agentId}:cron:${jobId.replace(":", ".")}`;

/** The contract's limit of one row. */
const MACHINES = 64;
const MINUTE_MS = 60_000;
const twoDigits = (value: number): string => String(value).padStart(2, "0");
/** What a job says about being late, with its time in the time zone `tz`. Within a minute it says nothing. */
export function lateText(scheduled: number, now: number, tz: string): string {
  const minutes = Math.floor((now - scheduled) / MINUTE_MS);
  if (minutes < 1) return "";
  const hours = Math.floor(minutes / 60);
  const late = hours < 1 ? `${minutes} min` : hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
  const { year, month, day, hour, minute } = localTimeOf(scheduled, tz);
  const due = `${year}-${twoDigits(month)}-${twoDigits(day)} ${twoDigits(hour)}:${twoDigits(minute)}`;
  return `, ${late} late: it was due at ${due} (${tz})`;
}

export function shownJob(job: Job, open: JobRun | undefined, last: JobRun | undefined): CronJob {
  const { id, agentId, body, enabled, nextAt, failures, paused } = job;
  const { name, description, deleteAfterRun, createdAt, updatedAt, spec } = body;
  const schedule: CronSchedule = body.schedule.kind === "beat" ? { kind: "every" } : body.schedule;
  return {
    id,
    agentId: asAgentId(agentId),
    name,
    ...(description === undefined ? {} : { description }),
    enabled,
    ...(deleteAfterRun === undefined ? {} : { deleteAfterRun }),
    createdAtMs: createdAt,
    updatedAtMs: updatedAt,
    schedule,
    spec,
    state: {
      ...(nextAt === undefined || !enabled ? {} : { nextRunAtMs: nextAt }),
      ...(open?.body.startedAt === undefined ? {} : { runningAtMs: open.body.startedAt }),
      ...(last === undefined ? {} : { lastRunAtMs: last.ts, lastStatus: last.status }),
      ...(last?.body.error === undefined ? {} : { lastError: last.body.error }),
      ...(last?.body.startedAt === undefined || last.body.endedAt === undefined
        ? {}
        : { lastDurationMs: Math.max(0, last.body.endedAt - last.body.startedAt) }),
      ...(failures === 0 ? {} : { failures }),
      ...(paused === undefined ? {} : { paused }),
    },
  };
}
export function shownRun(run: JobRun, isStopped: boolean): CronRun {
  const { id, jobId, ts, status, body } = run;
  const { startedAt, endedAt, summary, sessionKey, runId, count } = body;
  const error = body.error ?? (status === "waiting" ? body.off : undefined);
  return {
    id,
    jobId,
    ts,
    status,
    ...waitOf(run, isStopped),
    ...(startedAt === undefined ? {} : { startedAtMs: startedAt }),
    ...(startedAt === undefined || endedAt === undefined ? {} : { durationMs: Math.max(0, endedAt - startedAt) }),
    ...(error === undefined ? {} : { error }),
    ...(summary === undefined ? {} : { summary }),
    ...(sessionKey === undefined ? {} : { sessionKey: asSessionKey(sessionKey) }),
    ...(runId === undefined ? {} : { runId }),
    ...(count === undefined ? {} : { count }),
  };
}
/** A question comes before a machine: without its answer the run does not go on when the machine is back. */
function waitOf({ status, body, checkAt }: JobRun, isStopped: boolean): Pick<CronRun, "waits" | "machines"> {
  if (checkAt === undefined) return {};
  if (status === "waiting" && !isStopped && body.off !== undefined) return {};
  if (status === "waiting") return { waits: isStopped ? "resume" : "slot" };
  if (body.asking === true) return { waits: "owner" };
  const machines = body.waiting ?? [];
  return machines.length === 0 ? {} : { waits: "machine", machines: machines.slice(0, MACHINES).map(asNodeId) };
}
