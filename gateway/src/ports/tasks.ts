/** Runs of tasks of other programs, for those that give them a turn: `POST /run` at once, jobs in their order. */
import type { AgentReport, EscalationCause, RunRequest } from "../../../protocol/gen/types.ts";
import type { CausingEvent } from "./origin.ts";
import type { Result } from "./result.ts";
import type { Taint } from "./taint.ts";

/** A task that may be run. */
export interface CheckedTask {
  readonly agentId: string;
  /** The digest of the request. */
  readonly bodySha256: string;
}
/** A task that has an id. Its conversation, run and message are named after it, so that each call about it can be made again. */
export interface NamedTask extends CheckedTask {
  readonly id: string;
  /** The request had a key. */
  readonly keyed?: true;
  /** Absent: a program has given the task. */
  readonly event?: CausingEvent & { readonly taint: Taint };
}
/** `report`: it has ended, or waits for the owner's word. */
export type TaskStatus =
  | { readonly state: "running" }
  | { readonly state: "ended"; readonly report: AgentReport }
  | { readonly state: "awaiting"; readonly report: AgentReport; readonly approvals: readonly string[] };

export interface TaskRunsPort {
  readonly taskRuns: {
    /** What is wrong with a task, before anything of it is stored. */
    check(request: RunRequest): Promise<Result<CheckedTask>>;
    /** Stores the task, then sends its message; returns the key of its conversation. Once per id, however often it is called. */
    begin(task: NamedTask, request: RunRequest): Promise<Result<string>>;
    /** How the task stands. Waits a while for its end, or for questions that wait for the owner and are not `seen` yet. */
    look(task: Pick<NamedTask, "id" | "agentId">, seen: readonly string[]): Promise<Result<TaskStatus>>;
    /** Ends the run. */
    stop(task: Pick<NamedTask, "id" | "agentId">): Promise<Result<void>>;
  };
}
/** A task that has ended without its result. */
export interface FailedTask {
  readonly id: string;
  readonly agentId: string;
  readonly sessionKey: string;
  readonly runId: string;
  readonly cause: Exclude<EscalationCause, "low_confidence">;
  /** Why, for a person. */
  readonly message: string;
  readonly taint?: Taint;
  readonly hops: number;
}
/** Ends of tasks, for the feature of events. */
export interface TaskEndsPort {
  readonly taskEnds: {
    /** `takes`: tasks of this agent are looked at until they end. `failed` may be called again for one task; false: it is, later. */
    toldTo(listener: { readonly takes: (agentId: string) => boolean; readonly failed: (task: FailedTask) => Promise<boolean> }): void;
  };
}
