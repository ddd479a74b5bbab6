/** Jobs that the agent does by itself: once, at an interval, or by a cron expression. */
import { enumOf, method, struct, t, tagged } from "./dsl.ts";
import { AgentId, NodeId, SessionKey, ThinkLevel } from "./ids.ts";

const JobId = t.string(64, { minLength: 1, pattern: "^[a-z0-9][a-z0-9_-]*$" });
const Zone = t.string(64, { minLength: 1 });

export const CronSchedule = tagged(
  "CronSchedule",
  "When a job runs. The gateway gives the numbers; a caller may give words instead.",
  "kind",
  {
    at: {
      atMs: t.optional(t.time()),
      /** Instead of `atMs`: `2026-11-23T09:00`, `in 2 hours`, `tomorrow 9am`, in the user's time zone or in `tz`. */
      at: t.optional(t.string(128, { minLength: 1 })),
      tz: t.optional(Zone),
    },
    every: {
      /** At least a minute. */
      everyMs: t.optional(t.int(60_000, 366 * 86_400_000)),
      /** Instead of `everyMs`: `30m`, `2h30m`, `1d`. */
      every: t.optional(t.string(32, { minLength: 1 })),
      /** One of its times. Absent: the time at which the job was added. */
      anchorMs: t.optional(t.time()),
    },
    cron: {
      /** Five fields, with names of months and days: `0 9 * * mon-fri`. */
      expr: t.string(256, { minLength: 1 }),
      /** Absent: the user's time zone. */
      tz: t.optional(Zone),
    },
  },
);
export const CronSpec = tagged("CronSpec", "What a job does.", "mode", {
  /** The owner is told the text as it is: no model is called. */
  remind: {
    text: t.string(8192, { minLength: 1 }),
    /** `channel/account/kind/peer`. Absent: where notifications of the kind `reminder` are told. */
    to: t.optional(t.string(512, { minLength: 1 })),
    /** The conversation of the owner that has the text too. Absent: the agent's main conversation. */
    sessionKey: t.optional(SessionKey),
  },
  /** A conversation of the owner gets the text, and the agent answers it. */
  systemEvent: {
    text: t.string(8192, { minLength: 1 }),
    /** Absent: the agent's main conversation. */
    sessionKey: t.optional(SessionKey),
  },
  /** A new conversation of the job's own gets the message. */
  task: {
    message: t.string(8192, { minLength: 1 }),
    model: t.optional(t.string(256)),
    thinking: t.optional(ThinkLevel),
    timeoutSeconds: t.optional(t.int(10, 1800)),
    /** How long its calls wait for machines that are not connected. 0: not at all. Absent: 2 hours. */
    waitSeconds: t.optional(t.int(0, 86400)),
    /** False: the answer is kept in the log of runs only. */
    deliver: t.optional(t.bool()),
    /** Where the answer goes: `channel/account/kind/peer`. Absent: it is a note in a conversation of the owner. */
    to: t.optional(t.string(512, { minLength: 1 })),
    /** The conversation that gets the note. Absent: the agent's main conversation. */
    sessionKey: t.optional(SessionKey),
    /** True: an answer that could not be delivered does not count as a failure. */
    bestEffortDeliver: t.optional(t.bool()),
  },
});
export const CronOutcome = enumOf(
  "CronOutcome",
  "What became of one time of a job. `waiting`: it begins when one of the others ends. `running`: it has begun. `ok`, `error`: its run ended. `skipped`: it was not begun, for the reason that is given. `missed`: the gateway was not running, or the clock jumped.",
  ["running", "ok", "error", "skipped", "missed", "waiting"],
);
export const CronJobState = struct("CronJobState", "The state of a job.", {
  nextRunAtMs: t.optional(t.time()),
  runningAtMs: t.optional(t.time()),
  lastRunAtMs: t.optional(t.time()),
  lastStatus: t.optional(CronOutcome),
  lastError: t.optional(t.string(2048)),
  lastDurationMs: t.optional(t.int()),
  /** Runs in a row that failed. */
  failures: t.optional(t.int()),
  /** Why the gateway paused the job. */
  paused: t.optional(t.string(512)),
});
export const CronJob = struct("CronJob", "A job.", {
  id: JobId,
  agentId: AgentId,
  name: t.string(128, { minLength: 1 }),
  description: t.optional(t.string(1024)),
  enabled: t.bool(),
  /** The job is removed after its run. Absent: a job with one time is removed when its run did not fail, every other job stays. */
  deleteAfterRun: t.optional(t.bool()),
  createdAtMs: t.time(),
  updatedAtMs: t.time(),
  schedule: CronSchedule,
  spec: CronSpec,
  state: CronJobState,
});
export const CronWait = enumOf(
  "CronWait",
  "What a run that has not ended waits for. `slot`: the end of another run. `resume`: GSV is stopped. `owner`: an answer to a question of the run. `machine`: a machine that is not connected.",
  ["slot", "resume", "owner", "machine"],
);
export const CronRun = struct("CronRun", "One time of a job.", {
  id: t.int(),
  jobId: JobId,
  /** The time for which it ran. */
  ts: t.time(),
  status: CronOutcome,
  /** Absent: the run goes on, or has ended. */
  waits: t.optional(CronWait),
  /** With `machine`: the machines that it waits for. */
  machines: t.optional(t.array(NodeId, 64)),
  startedAtMs: t.optional(t.time()),
  durationMs: t.optional(t.int()),
  error: t.optional(t.string(2048)),
  /** The beginning of the answer. */
  summary: t.optional(t.string(2048)),
  sessionKey: t.optional(SessionKey),
  runId: t.optional(t.string(128)),
  /** With `missed`: how many times this row stands for. */
  count: t.optional(t.int(1)),
});

export const CronComing = struct(
  "CronComing",
  "A time that is to come. With `lastAtMs`: all times of one job on one day, which are too many to be shown one by one.",
  {
    /** Absent: it is the heartbeat of the agent. */
    jobId: t.optional(JobId),
    agentId: AgentId,
    name: t.string(128, { minLength: 1 }),
    /** The first of the times. Earlier than now: a job with one time that waits until GSV goes on. */
    atMs: t.time(),
    lastAtMs: t.optional(t.time()),
    count: t.int(1),
    /** There are more than `count`. */
    isMore: t.optional(t.literal(true)),
    /** Absent: the times are not equally far apart, or were not all counted. */
    everyMs: t.optional(t.int()),
  },
);
export const CronDay = struct("CronDay", "A calendar day in the user's time zone, with the times that come on it.", {
  /** `2026-11-22`. */
  date: t.string(10),
  times: t.array(CronComing, 500),
});
export const CronFailure = struct("CronFailure", "A job or a heartbeat whose last run failed.", {
  /** Absent: it is the heartbeat of the agent. */
  jobId: t.optional(JobId),
  agentId: AgentId,
  name: t.string(128, { minLength: 1 }),
  /** Runs in a row that failed. */
  failures: t.int(1),
  /** The scheduled time of the run. */
  atMs: t.optional(t.time()),
  error: t.optional(t.string(2048)),
  /** The gateway paused it. */
  paused: t.optional(t.literal(true)),
});

const create = {
  name: t.string(128, { minLength: 1 }),
  agentId: t.optional(AgentId),
  description: t.optional(t.string(1024)),
  enabled: t.optional(t.bool()),
  deleteAfterRun: t.optional(t.bool()),
  schedule: CronSchedule,
  spec: CronSpec,
};
const errors = ["cron.bad_schedule", "agent.unknown", "channel.unknown", "session.bad_key", "auth.forbidden"] as const;

method("cron.status", {
  doc: "Returns how many jobs there are, how many run now, and what comes next.",
  result: {
    /** False while GSV is stopped: then nothing begins. */
    enabled: t.bool(),
    jobs: t.int(),
    running: t.int(),
    nextRunAtMs: t.optional(t.time()),
    next: t.array(CronJob, 5),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("cron.list", {
  doc: "Lists the jobs, the next to run first.",
  params: { agentId: t.optional(AgentId), includeDisabled: t.optional(t.bool()) },
  result: { jobs: t.array(CronJob, 200), count: t.int() },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("cron.preview", {
  doc: "Returns the next times of a schedule and stores nothing.",
  params: { schedule: CronSchedule, count: t.optional(t.int(1, 50)) },
  result: { schedule: CronSchedule, times: t.array(t.time(), 50), tz: Zone },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["cron.bad_schedule"],
  idempotent: true,
});
method("cron.upcoming", {
  doc: "Returns the times of all jobs and heartbeats that are to come, day by day in the user's time zone, and what failed last.",
  params: {
    /** Today is the first one. 0: no days. Absent: 7. */
    days: t.optional(t.int(0, 31)),
    /** Entries of all days. Absent: 200. */
    limit: t.optional(t.int(1, 500)),
  },
  result: {
    tz: Zone,
    nowMs: t.time(),
    /** While GSV is stopped, no time begins a run. */
    stopped: t.bool(),
    /** Jobs and heartbeats that have a time to come. */
    jobs: t.int(),
    heartbeats: t.int(),
    /** The next time of each of the first few jobs. */
    next: t.array(CronComing, 5),
    /** Days without a time are left out. */
    days: t.array(CronDay, 31),
    /** Entries that are left out, because of the limit. */
    leftOut: t.int(),
    /** Last days that are left out, because there is too much to work out. */
    daysLeftOut: t.int(),
    /** Some of the jobs that failed, the latest first. */
    failed: t.array(CronFailure, 5),
    failedCount: t.int(),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("cron.add", {
  doc: "Adds a job. With an id that exists already, the same job is answered, and another one is refused.",
  params: { ...create, id: t.optional(JobId) },
  result: {
    ok: t.literal(true),
    job: CronJob,
    times: t.array(t.time(), 5),
    /** Why the job's place can't be reached now. */
    warning: t.optional(t.string(1024)),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "name" },
  errors: [...errors, "cron.exists", "cron.too_many"],
});
method("cron.update", {
  doc: "Changes a job. Absent fields stay unchanged. A job that the gateway paused runs again when it is enabled.",
  params: {
    id: JobId,
    patch: struct("CronPatch", "Changes of a job.", {
      name: t.optional(t.string(128, { minLength: 1 })),
      description: t.optional(t.string(1024)),
      enabled: t.optional(t.bool()),
      deleteAfterRun: t.optional(t.bool()),
      schedule: t.optional(CronSchedule),
      spec: t.optional(CronSpec),
    }),
  },
  result: {
    ok: t.literal(true),
    job: CronJob,
    times: t.array(t.time(), 5),
    /** Why the job's place can't be reached now. */
    warning: t.optional(t.string(1024)),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "id" },
  errors: [...errors, "cron.not_found"],
  idempotent: true,
});
method("cron.remove", {
  doc: "Removes a job and its log of runs. A run of it that has begun goes on.",
  params: { id: JobId },
  result: { ok: t.literal(true), removed: t.bool() },
  callers: ["client"],
  scope: "operate",
  audit: { target: "id" },
  idempotent: true,
});
method("cron.run", {
  doc: "Runs a job now, beside its schedule.",
  params: { id: JobId },
  result: { ok: t.literal(true), run: CronRun },
  callers: ["client"],
  scope: "operate",
  audit: { target: "id" },
  errors: ["cron.not_found", "cron.running", "gateway.stopped"],
});
method("cron.runs", {
  doc: "Lists what became of the last times of the jobs, the newest first.",
  params: { jobId: t.optional(JobId), limit: t.optional(t.int(1, 200)), beforeId: t.optional(t.int()) },
  result: { runs: t.array(CronRun, 200), count: t.int() },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["cron.not_found"],
  idempotent: true,
});
