/** Agents: who there is, and making one. */
import { method, struct, t } from "./dsl.ts";
import { ModelRef } from "./chat.ts";
import { AgentId } from "./ids.ts";
import { AgentBinding } from "./config.ts";

const AgentEntry = struct("AgentEntry", "One agent.", {
  agentId: AgentId,
  description: t.optional(t.string(1024)),
  /** The one that answers where nothing else is said. */
  isDefault: t.bool(),
  /** The agent's own; absent: the configured one. */
  model: t.optional(ModelRef),
  /** False while BOOTSTRAP.md is there: the agent does not know yet who it is. */
  commissioned: t.bool(),
  sessions: t.int(),
  lastActiveAt: t.optional(t.time()),
});
const AgentFile = struct("AgentFile", "A file that the prompt is made from.", {
  path: t.string(1024),
  sizeBytes: t.int(),
  updatedAt: t.time(),
});
method("agents.list", {
  doc: "Agents, the default one first.",
  result: { agents: t.array(AgentEntry, 256) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("agents.get", {
  doc: "One agent, with the files that its prompt is made from and where it answers.",
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
  doc: "Makes an agent. `bootstrap` false leaves the commissioning out, for an agent whose files are brought along.",
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
