/** Jobs: between the gateway, which knows whose turn it is, and the object of each job, which has the job. Crosses RPC: plain data only. */
import type { AgentJob, JobListParams, JobListResult, JobStatus, JobTaken, RunRequest } from "../../../protocol/gen/types.ts";
import type { Admitted, HttpCaller, TaskRequest } from "./http.ts";
import type { Result } from "./result.ts";
import type { NamedTask, TaskStatus } from "./tasks.ts";

/** What the gateway knows of a job that waits for its turn. */
export interface JobTurn extends NamedTask {
  readonly tenantId: string;
  readonly createdAt: number;
}
export interface NewJob extends JobTurn {
  readonly request: RunRequest;
}
/** The object of one job. Every call can be made again. */
export interface JobPort {
  /** Stores the job, once. */
  accept(job: NewJob): Promise<void>;
  /** The object looks at once. False: it has no job. */
  wake(): Promise<boolean>;
  /** Null: it has no job. */
  get(): Promise<AgentJob | null>;
  cancel(): Promise<AgentJob | null>;
}
/** What a job takes of the queue: `gone` when it is deleted. */
export type JobQueueStatus = Extract<JobStatus, "running" | "awaiting_approval"> | "ended" | "gone";
/** What the object of a job may ask of the gateway. Every call can be made again. */
export interface JobHostPort {
  /** Whether the job may begin now. If not, the gateway wakes it when it may. */
  claimJob(turn: JobTurn): Promise<boolean>;
  updateQueue(id: string, place: JobQueueStatus): Promise<void>;
  beginJob(task: NamedTask, request: RunRequest): Promise<Result<string>>;
  lookAtJob(task: Pick<NamedTask, "id" | "agentId">, seen: readonly string[]): Promise<Result<TaskStatus>>;
  stopJob(task: Pick<NamedTask, "id" | "agentId">): Promise<Result<void>>;
}
/** The part of a KV namespace that the index of jobs needs. */
export interface IndexSpace {
  put(key: string, value: string, options: { readonly metadata: unknown }): Promise<void>;
  delete(key: string): Promise<void>;
  list(options: { readonly prefix: string; readonly limit: number; readonly cursor?: string }): Promise<{
    readonly keys: readonly { readonly name: string; readonly metadata?: unknown }[];
    readonly list_complete: boolean;
    readonly cursor?: string;
  }>;
}
/** What the Worker may call. It has checked that the caller may do so; `submitJob` needs to know whose key it is. */
export interface JobsHttpPort {
  submitJob(caller: HttpCaller, request: TaskRequest): Promise<Admitted<JobTaken>>;
  listJobs(params: JobListParams): Promise<Admitted<JobListResult>>;
  getJob(id: string): Promise<Admitted<AgentJob>>;
  cancelJob(id: string): Promise<Admitted<AgentJob>>;
}
/** For domain events. */
export interface EventJobsPort {
  readonly eventJobs: {
    /** Durable when the result is ok. Once per id, however often it is called while the job is kept. */
    start(id: string, request: RunRequest, event: NonNullable<NamedTask["event"]>): Promise<Result<void>>;
  };
}
