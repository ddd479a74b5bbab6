/** Agents: list, read, create and delete them. */
import { method, struct, t } from "./dsl.ts";
import { ModelRef } from "./chat.ts";
import { AgentId } from "./ids.ts";
import { AgentBinding } from "./config.ts";

const AgentEntry = struct("AgentEntry", "One agent.", {
  agentId: AgentId,
  description: t.optional(t.string(1024)),
  /** The agent that answers where no binding names another one. */
  isDefault: t.bool(),
  /** Absent: the agent uses the configured model. */
  model: t.optional(ModelRef),
  /** False while BOOTSTRAP.md exists: the agent has no identity yet. */
  commissioned: t.bool(),
  sessions: t.int(),
  lastActiveAt: t.optional(t.time()),
});
const AgentFile = struct("AgentFile", "A file that is part of the system prompt.", {
  path: t.string(1024),
  sizeBytes: t.int(),
  updatedAt: t.time(),
});
method("agents.list", {
  doc: "Lists the agents, the default agent first.",
  result: { agents: t.array(AgentEntry, 256) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("agents.get", {
  doc: "Returns one agent, its prompt files and its bindings.",
  params: { agentId: AgentId },
  result: {
    agent: AgentEntry,
    systemPrompt: t.optional(t.string(65536)),
    files: t.array(AgentFile, 256),
    bindings: t.array(AgentBinding, 1024),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["agent.unknown", "storage.failed"],
  idempotent: true,
});
method("agents.create", {
  doc: "Creates an agent. `bootstrap: false` skips the commissioning; use it for an agent whose files are imported.",
  params: {
    agentId: AgentId,
    description: t.optional(t.string(1024)),
    model: t.optional(ModelRef),
    systemPrompt: t.optional(t.string(65536)),
    default: t.optional(t.bool()),
    bootstrap: t.optional(t.bool()),
  },
  result: { agent: AgentEntry },
  callers: ["client"],
  scope: "admin",
  audit: { target: "agentId" },
  errors: ["agent.exists", "agent.limit", "config.invalid", "config.too_large", "storage.failed"],
});
method("agents.delete", {
  doc: "Deletes an agent from the configuration. Its files stay in the workspace. Refused for the default agent, for one that a route names, and, without `sessions`, for one that has sessions or jobs.",
  params: {
    agentId: AgentId,
    /** Delete its sessions and jobs, too, and stop their runs. */
    sessions: t.optional(t.bool()),
  },
  result: {
    ok: t.literal(true),
    agentId: AgentId,
    /** Sessions that are being deleted. */
    sessions: t.int(),
  },
  callers: ["client"],
  scope: "admin",
  audit: { target: "agentId" },
  errors: ["agent.unknown", "agent.kept", "agent.in_use", "config.invalid"],
});
