/** Between sessions and the jobs of the gateway. */
import type { CronAddParams, CronUpdateParams } from "../../../protocol/gen/types.ts";
import type { Result } from "./result.ts";
import type { Taint } from "./taint.ts";

/** A call of gsv__Cron. It sees and changes the jobs of its agent only. `taint`: what the conversation has read that writes the job. */
export type CronCall = { readonly agentId: string } & (
  | { readonly kind: "list" }
  | { readonly kind: "runs"; readonly id?: string | undefined }
  | { readonly kind: "add"; readonly params: CronAddParams; readonly taint?: Taint | undefined }
  | { readonly kind: "update"; readonly params: CronUpdateParams; readonly taint?: Taint | undefined }
  | { readonly kind: "remove"; readonly id: string }
  | { readonly kind: "run"; readonly id: string }
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

/** For the deletion of an agent (rule SC13). */
export interface AgentJobsPort {
  readonly agentJobs: {
    /** Ids of the agent's jobs. */
    of(agentId: string): readonly string[];
    remove(agentId: string): void;
  };
}
