/**
 * The state machine of one job (rules JB3, JB4, JB8). PURE. `nextStep` says what the job's object does next, `applied` what its result
 * changes. Each step can be made again after a kill: its result is stored before the next step is looked for.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type AgentReport, asSessionKey, type AgentJob, type JobStatus, type ReportStatus } from "../../../../protocol/gen/types.ts";
import { DAY_MS } from "../../../../protocol/runtime/day.ts";
import type { JobQueueStatus, NewJob } from "../../ports/jobs.ts";
import type { TaskStatus } from "../../ports/tasks.ts";

export interface JobState {
  readonly status: JobStatus;
  readonly startedAt?: number;
  readonly endedAt?: number;
  /** The message of its run was sent. */
  readonly sessionKey?: string;
  readonly cancelling?: true;
  /** The run was told to end. */
  readonly stopped?: true;
  /** Questions that wait for the owner. */
  readonly approvals?: readonly string[];
  readonly error?: { readonly reason: string; readonly message: string };
  /** The place that the gateway knows. */
  readonly place: "queued" | Exclude<JobQueueStatus, "gone">;
  /** Counts changes of what the index shows; `indexed` is the one that it has. */
  readonly revision: number;
  readonly indexed: number;
}
export const NEW_STATE: JobState = { status: "queued", place: "queued", revision: 1, indexed: 0 };

/** Steps of this pass of the alarm, which are not repeated in it. */
export interface Pass {
  /** It is not the job's turn; the gateway wakes the object. */
  readonly refused?: true;
  readonly looked?: true;
  readonly indexFailed?: true;
}
export type JobStep =
  | { readonly do: "claim" | "begin" | "stop" | "look" | "index" | "remove" }
  | { readonly do: "place"; readonly place: Exclude<JobQueueStatus, "gone"> }
  /** `at` absent: until the object is woken. */
  | { readonly do: "rest"; readonly at?: number };

export type JobResult =
  | { readonly result: "granted"; readonly now: number }
  | { readonly result: "begun"; readonly sessionKey: string }
  | { readonly result: "refused"; readonly now: number; readonly error: { readonly reason: string; readonly message: string } }
  | { readonly result: "stood"; readonly now: number; readonly stand: TaskStatus }
  | { readonly result: "stopped" }
  | { readonly result: "placed"; readonly place: Exclude<JobQueueStatus, "gone"> }
  | { readonly result: "indexed"; readonly revision: number }
  | { readonly result: "cancel"; readonly now: number };

/** After a failure of the index or of the gateway. */
const RETRY_MS = 2_000;
const LAST_RETRY_MS = 60_000;
/** The pause after so many failures one after another. */
export const retryMs = (count: number): number => Math.min(LAST_RETRY_MS, RETRY_MS * 2 ** Math.min(count - 1, 10));
const ENDS: ReadonlySet<JobStatus> = new Set<JobStatus>(["succeeded", "failed", "cancelled", "budget_exceeded"]);
export const hasEnded = ({ status }: Pick<JobState, "status">): boolean => ENDS.has(status);
const placeOf = (state: JobState): JobState["place"] =>
  state.status === "queued" || state.status === "running" || state.status === "awaiting_approval" ? state.status : "ended";

export function nextStep(state: JobState, pass: Pass, now: number): JobStep {
  const place = placeOf(state);
  if (place !== state.place && place !== "queued") return { do: "place", place };
  if (state.status === "queued" && pass.refused !== true) return { do: "claim" };
  const isRunning = place === "running" || place === "awaiting_approval";
  if (isRunning && state.sessionKey === undefined) return { do: "begin" };
  if (isRunning && state.cancelling === true && state.stopped !== true) return { do: "stop" };
  if (state.indexed < state.revision && pass.indexFailed !== true) return { do: "index" };
  if (isRunning) return pass.looked === true ? { do: "rest", at: now } : { do: "look" };
  const removeAt = state.endedAt === undefined ? undefined : state.endedAt + LIMITS.jobDays * DAY_MS;
  if (removeAt !== undefined && removeAt <= now && pass.indexFailed !== true) return { do: "remove" };
  if (pass.indexFailed === true) return { do: "rest", at: now + RETRY_MS };
  return removeAt === undefined ? { do: "rest" } : { do: "rest", at: removeAt };
}

export function applied(state: JobState, result: JobResult): JobState {
  // An end is final; what still comes is about the gateway and the index.
  if (hasEnded(state) && result.result !== "placed" && result.result !== "indexed") return state;
  switch (result.result) {
    case "granted":
      return state.status === "queued" ? changed(state, { status: "running", startedAt: result.now, place: "running" }) : state;
    case "begun":
      return { ...state, sessionKey: result.sessionKey };
    case "refused":
      return changed(state, { status: "failed", endedAt: result.now, error: result.error });
    case "stopped":
      return { ...state, stopped: true };
    case "placed":
      return { ...state, place: result.place };
    case "indexed":
      return { ...state, indexed: Math.max(state.indexed, result.revision) };
    case "cancel":
      if (state.status === "queued") return changed(state, { status: "cancelled", endedAt: result.now });
      return { ...state, cancelling: true };
    case "stood":
      return stood(state, result.stand, result.now);
  }
}
const changed = (state: JobState, change: Partial<JobState>): JobState => ({ ...state, ...change, revision: state.revision + 1 });

function stood(state: JobState, stand: TaskStatus, now: number): JobState {
  const { approvals: _, ...rest } = state;
  switch (stand.state) {
    case "running":
      return state.status === "running" ? state : changed(rest, { status: "running" });
    case "awaiting":
      return state.status === "awaiting_approval"
        ? { ...state, approvals: stand.approvals }
        : changed(state, { status: "awaiting_approval", approvals: stand.approvals });
    case "ended":
      return changed(rest, { status: END_OF[stand.report.status], endedAt: now });
  }
}
const END_OF: Readonly<Record<ReportStatus, JobStatus>> = {
  completed: "succeeded",
  failed: "failed",
  budget_exceeded: "budget_exceeded",
  cancelled: "cancelled",
  // A run that has ended waits for nothing.
  awaiting_approval: "failed",
};

/** What every view of a job says. */
export const headOf = ({ id, agentId, createdAt, request }: NewJob, { status, startedAt, endedAt }: JobState) => ({
  job_id: id,
  status,
  agent_name: request.agent_name,
  agent_id: agentId,
  created_at: createdAt,
  ...(startedAt === undefined ? {} : { started_at: startedAt }),
  ...(endedAt === undefined ? {} : { ended_at: endedAt }),
});

/** A job as its readers see it. `retried`: why its current step is made again. */
export function shown(job: NewJob, state: JobState, report: AgentReport | undefined, retried: JobState["error"]): AgentJob {
  const { endedAt, sessionKey, cancelling } = state;
  const error = state.error ?? (hasEnded(state) ? undefined : retried);
  return {
    ...headOf(job, state),
    ...(cancelling === true && endedAt === undefined ? { cancelling } : {}),
    ...(sessionKey === undefined ? {} : { session_key: asSessionKey(sessionKey) }),
    ...(report === undefined ? {} : { report }),
    ...(error === undefined ? {} : { error }),
  };
}
