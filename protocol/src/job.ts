/** Jobs: tasks of other programs that wait for their turn. Field names are those of the platform's HTTP interface. */
import { enumOf, method, ref, struct, t } from "./dsl.ts";
import { SessionKey } from "./ids.ts";

const o = t.optional;
const JobId = t.string(64, { minLength: 1, pattern: "^[a-z0-9]+$" });
export const JobStatus = enumOf(
  "JobStatus",
  "How a job stands. `awaiting_approval`: its run waits for the owner's word. The last four are ends.",
  ["queued", "running", "awaiting_approval", "succeeded", "failed", "cancelled", "budget_exceeded"],
);
const FIELDS = {
  job_id: JobId,
  status: JobStatus,
  /** As the request named it. */
  agent_name: t.string(64),
  agent_id: t.string(64),
  /** When it was submitted. */
  created_at: t.time(),
  /** Absent: it has not begun. */
  started_at: o(t.time()),
  /** Absent: it has not ended. */
  ended_at: o(t.time()),
};
const AgentJob = struct("AgentJob", "A job.", {
  ...FIELDS,
  /** It was asked to end and has not ended yet. */
  cancelling: o(t.literal(true)),
  /** The conversation of its run. Absent: it has not begun. */
  session_key: o(SessionKey),
  /** What became of it. Absent: it has not ended and does not wait for the owner, or it was cancelled before it began. */
  report: o(ref("AgentReport")),
  /** Why it failed before its run began; of a job that has not ended: why its current step is tried again. */
  error: o(ref("ReportError")),
});
const JobSummary = struct("JobSummary", "A job, as the index has it. It may be a minute behind.", {
  ...FIELDS,
  /** The beginning. */
  instructions: t.string(512),
  /** US dollars. Absent: it has not ended. */
  cost_usd: o(t.number(0)),
});

method("job.submit", {
  doc: "Stores a job for an agent. Its run begins when it is the job's turn, also when the caller is gone.",
  params: {
    task: ref("RunRequest"),
    /** Sent again within 24 hours, it names the same job. */
    key: o(t.string(255, { minLength: 1, pattern: "^[!-~]+$" })),
  },
  result: struct("JobTaken", "A job that is stored.", { job_id: JobId, status: JobStatus }),
  callers: ["client"],
  scope: "chat",
  audit: "none",
  errors: ["agent.unknown", "agent.definition_invalid", "context.override", "task.key_reused", "limit.jobs"],
});
method("job.list", {
  doc: "Lists jobs, the newest first. A page may have fewer jobs than `limit` although more follow.",
  params: {
    status: o(JobStatus),
    /** A name or an id. */
    agent: o(t.string(64, { minLength: 1 })),
    limit: o(t.int(1, 200)),
    /** The cursor of the previous page. */
    cursor: o(t.string(2048, { minLength: 1 })),
  },
  result: {
    jobs: t.array(JobSummary, 200),
    /** Absent: there are no more. */
    cursor: o(t.string(2048)),
    /** Jobs that were looked at for this page. */
    searched: o(t.int(0)),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("job.get", {
  doc: "Returns a job, with its report when it has ended or waits for the owner.",
  params: { job_id: JobId },
  result: AgentJob,
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["job.not_found"],
  idempotent: true,
});
method("job.cancel", {
  doc: "Cancels a job. A queued one never begins, a running one ends at its next step border at the latest; an ended one stays as it is.",
  params: { job_id: JobId },
  result: AgentJob,
  callers: ["client"],
  scope: "chat",
  audit: "none",
  errors: ["job.not_found"],
  idempotent: true,
});
