/** Tasks for agents over HTTP: what is asked, and the report of the run that answers. Field names are those of the platform's HTTP interface. */
import { enumOf, struct, t } from "./dsl.ts";
import { SessionKey } from "./ids.ts";
import { Usage } from "./chat.ts";
import { ToolOutcome } from "./tool.ts";

const o = t.optional;
struct("RunRequest", "A task for an agent.", {
  /** `metadata.name` of its definition, or the id of an agent without one. */
  agent_name: t.string(64, { minLength: 1 }),
  instructions: t.string(65536, { minLength: 1 }),
  /** Data for the task. The agent is shown it as data, never as instructions. */
  payload: o(t.json()),
});
const ReportStatus = enumOf("ReportStatus", "How a task stands.", [
  "completed",
  "failed",
  "budget_exceeded",
  "awaiting_approval",
  "cancelled",
]);
const ReportCall = struct("ReportCall", "A tool call of the run.", {
  tool: t.string(192),
  call_id: t.string(128),
  /** `ok`: it was made, and its tool reported no error. Absent: it was not made, or has not ended. */
  outcome: o(ToolOutcome),
  /** How the command of the call ended: a command with another exit code than 0 has run, so its call is `ok`. */
  exit_code: o(t.int(-2147483648, 2147483647)),
  /** The signal that ended the command. */
  signal: o(t.string(32)),
  duration_ms: o(t.int()),
});
const ReportDelegation = struct("ReportDelegation", "A task that an agent has handed to another one.", {
  agent_name: t.string(64),
  task_id: t.string(64),
  /** The conversation of the task. */
  session_key: SessionKey,
  /** 1: handed on by the run of this report; 2: by one of those, and so on. Each stands behind the one that has handed it on. */
  depth: t.int(1),
  /** Absent: it has not ended. */
  status: o(ReportStatus),
  cost_usd: t.number(0),
});
struct("AgentReport", "What became of a task.", {
  status: ReportStatus,
  /** The agent's answer; while it waits or when it failed, a sentence that says why. */
  summary: t.text(),
  /** The last ones of the run, at most 1,000. */
  tool_calls: t.array(ReportCall, 1000),
  usage: Usage,
  /** US dollars, as far as the models' prices are known, with what its delegations cost. */
  cost_usd: t.number(0),
  /** Tasks that were handed to other agents, at most 200. Absent: none. */
  delegations: o(t.array(ReportDelegation, 200)),
  error: o(struct("ReportError", "Why a task failed.", { reason: t.string(128), message: t.text() })),
  metadata: struct("ReportMetadata", "Where the task can be looked at.", {
    agent_id: t.string(64),
    task_id: t.string(64),
    /** The conversation of the task, for `gsv session` and `gsv why`. */
    session_key: SessionKey,
    run_id: t.string(128),
    /** Codes of questions that wait for the owner. */
    approvals: o(t.array(t.string(16), 64)),
  }),
});
