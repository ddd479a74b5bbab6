/** The report of a task, from the story of its run and how it stands. PURE. */
import type { AgentReport, ReportDelegation, ReportStatus } from "../../../../protocol/gen/types.ts";
import type { RunEnd, RunStory } from "../../ports/session.ts";

export interface ReportFacts {
  readonly taskId: string;
  readonly agentId: string;
  readonly story: RunStory;
  readonly end: RunEnd;
  /** Codes of questions that wait for the owner. */
  readonly approvals: readonly string[];
  readonly resultAccess: ResultAccess;
  readonly delegations: readonly ReportDelegation[];
}
/** How the end can be asked for when the owner has answered: with the same request and its key, as the job, or not at all. */
export type ResultAccess = "key" | "job" | "none";
const MAX_CALLS = 1_000;
const MAX_DELEGATIONS = 200;
const NO_END = "The end of the run is not known: its conversation was removed.";

export function statusOf(end: RunEnd): ReportStatus {
  switch (end.state) {
    case "final":
      return "completed";
    case "aborted":
      return "cancelled";
    case "error":
      return end.reason?.startsWith("budget.") === true ? "budget_exceeded" : "failed";
    case "unknown":
      return "failed";
    case "running":
    case "queued":
      return "awaiting_approval";
  }
}
export function reportOf({ taskId, agentId, story, end, approvals, resultAccess, delegations }: ReportFacts): AgentReport {
  const { sessionKey, runId, usage, steps } = story;
  const status = statusOf(end);
  const calls = steps.flatMap((step) => step.calls).slice(-MAX_CALLS);
  const why = end.state === "error" || end.state === "aborted" ? end.error || "The run was stopped." : NO_END;
  return {
    status,
    summary:
      end.state === "final" ? end.text : status === "awaiting_approval" ? waitText(approvals, resultAccess, taskId, sessionKey) : why,
    tool_calls: calls.map(({ tool, callId, outcome, exitCode, signal, durationMs }) => ({
      tool,
      call_id: callId,
      ...(outcome === undefined ? {} : { outcome }),
      ...(exitCode === undefined ? {} : { exit_code: exitCode }),
      ...(signal === undefined ? {} : { signal }),
      ...(durationMs === undefined ? {} : { duration_ms: durationMs }),
    })),
    usage,
    cost_usd: delegations.reduce((sum, { cost_usd }) => sum + cost_usd, usage.costUsd ?? 0),
    ...(delegations.length === 0 ? {} : { delegations: delegations.slice(0, MAX_DELEGATIONS) }),
    ...(status === "failed" || status === "budget_exceeded"
      ? { error: { reason: (end.state === "error" ? end.reason : undefined) ?? "internal", message: why } }
      : {}),
    metadata: {
      agent_id: agentId,
      task_id: taskId,
      session_key: sessionKey,
      run_id: runId,
      ...(approvals.length === 0 ? {} : { approvals: [...approvals] }),
    },
  };
}
function waitText(approvals: readonly string[], resultAccess: ResultAccess, taskId: string, sessionKey: string): string {
  const allow = approvals.map((code) => `\`gsv approval allow ${code}\``).join(", ");
  return `The task waits for the owner's word: ${allow}. ${endText(resultAccess, taskId, sessionKey)}`;
}
function endText(resultAccess: ResultAccess, taskId: string, sessionKey: string): string {
  switch (resultAccess) {
    case "key":
      return "Send the same request with its Idempotency-Key again for the end.";
    case "job":
      return `The job goes on then: \`gsv job watch ${taskId}\`.`;
    case "none":
      return `The request had no Idempotency-Key, so that a report of the end cannot be asked for; the conversation ${sessionKey} has it.`;
  }
}
