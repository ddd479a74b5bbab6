/** Between sessions and the jobs of the gateway. */
import type { CronAddParams, CronRun, CronSpec, CronUpdateParams } from "../../../protocol/gen/types.ts";
import type { ChainLink } from "./origin.ts";
import type { Result } from "./result.ts";
import type { Taint } from "./taint.ts";

/** The call of a run that says when a job runs, or what it does: it is counted (rule SC11). */
export interface JobMaker {
  readonly callId: string;
  readonly runId: string;
}
/** What a call that makes or starts work says about itself. */
interface Making {
  /** The run that makes the call: a job is a further part of its chain (rule EV11). Absent: the owner's own. */
  readonly from?: ChainLink;
}
/** A call of gsv__Cron. It sees and changes the jobs of its agent only. `taint`: what the conversation has read that writes the job. */
export type CronCall = { readonly agentId: string } & (
  | { readonly kind: "list" }
  | { readonly kind: "runs"; readonly id?: string | undefined }
  | ({
      readonly kind: "add";
      readonly params: CronAddParams;
      readonly taint?: Taint | undefined;
      readonly by?: JobMaker | undefined;
    } & Making)
  | ({
      readonly kind: "update";
      readonly params: CronUpdateParams;
      readonly taint?: Taint | undefined;
      readonly by?: JobMaker | undefined;
    } & Making)
  | { readonly kind: "remove"; readonly id: string }
  | ({ readonly kind: "run"; readonly id: string } & Making)
);
export interface CronTold {
  readonly value: unknown;
  /** What is in the value. Absent: nothing of others. */
  readonly taint?: Taint;
}
export interface CronPort {
  /** Safe to make again: an added job has an id that its caller chose. */
  cron(call: CronCall): Promise<Result<CronTold>>;
}

/** What a hook has brought for one run. */
export interface Given {
  readonly hook: string;
  readonly text: string;
  readonly taint: Taint;
}
/** `none`: there is no such job. `busy`: a run of it goes on, and it takes no other. */
export type JobState = "none" | "paused" | "busy" | "free";
/** Runs that a hook causes (gateway/spec/hooks.md). Calls without a promise may be part of a transaction. */
export interface WokenJobsPort {
  readonly wokenJobs: {
    /** What is wrong with what a hook's own runs are to do; undefined: nothing. */
    problemOf(spec: CronSpec, agentId: string): Promise<Result<never> | undefined>;
    /** Keeps a job without times for a hook; returns its id. */
    keep(hook: string, agentId: string, spec: CronSpec, now: number): string;
    drop(hook: string): void;
    ownIdOf(hook: string): string;
    stateOf(jobId: string): JobState;
    agentOf(jobId: string): string | undefined;
    /** Stores a run, which begins soon; returns its id. Undefined: the job is not free. */
    wake(jobId: string, given: Given, now: number): number | undefined;
    runOf(id: number): Pick<CronRun, "status" | "error" | "summary"> | undefined;
  };
}

/** For the deletion of an agent (rule SC13). */
export interface AgentJobsPort {
  readonly agentJobs: {
    /** Ids of the agent's jobs. */
    of(agentId: string): readonly string[];
    remove(agentId: string): void;
  };
}
