/** Heartbeats: regular runs of the agent. */
import { method, t } from "./dsl.ts";
import { AgentId } from "./ids.ts";

method("heartbeat.status", {
  doc: "Returns the heartbeats of each agent.",
  result: { agents: t.map(t.json()) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("heartbeat.start", {
  doc: "Starts the heartbeat schedule.",
  result: { message: t.text(), agents: t.map(t.json()) },
  callers: ["client"],
  scope: "admin",
  audit: { target: null },
  idempotent: true,
});
method("heartbeat.trigger", {
  doc: "Runs a heartbeat now.",
  params: { agentId: t.optional(AgentId) },
  result: { ok: t.bool(), message: t.text(), skipped: t.optional(t.bool()), skipReason: t.optional(t.text()) },
  callers: ["client"],
  scope: "operate",
  audit: "none",
});
