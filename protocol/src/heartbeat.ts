/** Heartbeats: an agent looks by itself, from time to time, whether something is to be done. */
import { HeartbeatHours } from "./config.ts";
import { CronOutcome } from "./cron.ts";
import { enumOf, method, struct, t } from "./dsl.ts";
import { AgentId } from "./ids.ts";

export const HeartbeatSkip = enumOf(
  "HeartbeatSkip",
  "Why a heartbeat called no model. `empty`: HEARTBEAT.md has no task. `not_due`: none of its conditions is true. `wrong`: it has a line that is no condition. `busy`: a run goes on in the main conversation. `hours`: the active hours were over. `budget`: a limit of the day or month is used up. `stopped`: GSV is stopped.",
  ["empty", "not_due", "wrong", "busy", "hours", "budget", "stopped"],
);
export const HeartbeatFailing = struct("HeartbeatFailing", "A condition of HEARTBEAT.md that could not be looked at.", {
  condition: t.string(1024),
  /** Failures in a row. */
  count: t.int(),
  since: t.time(),
  why: t.string(512),
});
export const HeartbeatState = struct("HeartbeatState", "Where the heartbeat of an agent stands.", {
  enabled: t.bool(),
  /** What is wrong: a setting, or a line of HEARTBEAT.md. */
  problem: t.optional(t.string(2048)),
  everyMs: t.optional(t.int()),
  target: t.optional(t.string(512)),
  activeHours: t.optional(HeartbeatHours),
  nextRunAtMs: t.optional(t.time()),
  runningAtMs: t.optional(t.time()),
  lastRunAtMs: t.optional(t.time()),
  lastStatus: t.optional(CronOutcome),
  lastSkip: t.optional(HeartbeatSkip),
  /** Why nothing was run the last time, or what failed. */
  lastReason: t.optional(t.string(2048)),
  /** Why the gateway paused the heartbeat. */
  paused: t.optional(t.string(512)),
  /** Absent when each condition could be looked at. */
  failing: t.optional(t.array(HeartbeatFailing, 20)),
  /** In the last 24 hours: model runs, what they cost, and what was skipped by reason. */
  runs: t.int(),
  costUsd: t.number(0),
  skipped: t.map(t.int()),
});

method("heartbeat.status", {
  doc: "Returns the heartbeats of each agent.",
  /** `agents` is for clients of the first version; `states` says the same with its shape. */
  result: { agents: t.map(t.json()), states: t.map(HeartbeatState) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("heartbeat.start", {
  doc: "Lets the heartbeats that are configured go on, also those that the gateway paused.",
  result: { message: t.text(), agents: t.map(t.json()), states: t.map(HeartbeatState) },
  callers: ["client"],
  scope: "admin",
  audit: { target: null },
  idempotent: true,
});
method("heartbeat.trigger", {
  doc: "Runs a heartbeat now, without regard to the active hours and to the conditions of HEARTBEAT.md.",
  params: { agentId: t.optional(AgentId) },
  result: { ok: t.bool(), message: t.text(), skipped: t.optional(t.bool()), skipReason: t.optional(t.text()) },
  callers: ["client"],
  scope: "operate",
  audit: { target: "agentId" },
  errors: ["agent.unknown"],
});
const HeartbeatChecked = struct("HeartbeatChecked", "How a condition of HEARTBEAT.md stands now.", {
  condition: t.string(1024),
  state: enumOf(
    "HeartbeatCheckState",
    "`failed`: it could not be looked at. `wrong`: it cannot be followed, and the heartbeat stands still until it is repaired.",
    ["true", "false", "failed", "wrong"],
  ),
  why: t.string(2048),
});
method("heartbeat.check", {
  doc: "Evaluates each condition of HEARTBEAT.md now, without regard to the active hours. Changes no mark, counts no failure and asks no model; commands run under the policy, as in a heartbeat.",
  params: { agentId: t.optional(AgentId) },
  result: {
    agentId: AgentId,
    /** Whether a heartbeat that came now would ask the model. */
    wakes: t.bool(),
    /** The same as a sentence, with the reason. */
    message: t.text(),
    /** In the order of the file, wrong lines first. */
    conditions: t.array(HeartbeatChecked, 1000),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "agentId" },
  errors: ["agent.unknown", "gateway.stopped"],
  idempotent: true,
});
method("heartbeat.set", {
  doc: "Changes the heartbeat of an agent. Absent fields stay unchanged.",
  params: {
    agentId: t.optional(AgentId),
    /** `30m`, `2h30m`; `0` is off. */
    every: t.optional(t.string(16, { minLength: 1 })),
    prompt: t.optional(t.string(8192)),
    target: t.optional(t.string(512, { minLength: 1 })),
    activeHours: t.optional(HeartbeatHours),
  },
  result: { ok: t.literal(true), agentId: AgentId, state: HeartbeatState },
  callers: ["client"],
  scope: "admin",
  audit: { target: "agentId" },
  errors: ["agent.unknown", "config.invalid", "config.too_large"],
  idempotent: true,
});
