/** A task that the run of one agent hands to another agent. */
import type { AgentReport, PolicyMode } from "../../../protocol/gen/types.ts";
import type { OthersUse } from "./others-use.ts";
import type { DelegatedBudget, Origin } from "./origin.ts";
import type { Result } from "./result.ts";
import type { SessionIdentity } from "./session.ts";
import type { Taint } from "./taint.ts";

export interface DelegationAsk {
  readonly from: SessionIdentity;
  readonly runId: string;
  /** The origin of the run that hands the task on. */
  readonly origin: Origin;
  /** The same call again finds the same task. */
  readonly callId: string;
  /** The name of the agent that gets the task. */
  readonly to: string;
  readonly instructions: string;
  readonly payload?: unknown;
  /** What the conversation has read that hands the task on. Absent: nothing but the owner's words and the agent's own. */
  readonly taint?: Taint;
  readonly budget: DelegatedBudget;
  readonly mode?: Exclude<PolicyMode, "full">;
}
export type DelegationStand =
  /** It goes on: ask again. */
  | { readonly state: "running" }
  /** `taint`: what the conversation of the task has read. */
  | { readonly state: "ended"; readonly report: AgentReport; readonly used: OthersUse; readonly taint?: Taint };

export interface DelegationPort {
  /** Begins the task once, and waits a while for its end. */
  delegate(ask: DelegationAsk): Promise<Result<DelegationStand>>;
}
/** What runs have handed on. */
export interface HandedOnPort {
  readonly handedOn: (sessionKey: string, runId: string) => readonly { readonly callId: string; readonly sessionKey: string }[];
  /** The call, conversation and run that handed this run its task. Undefined: it is no such run. */
  readonly handedBy: (
    sessionKey: string,
    runId: string,
  ) => { readonly callId: string; readonly sessionKey: string; readonly runId: string } | undefined;
}
