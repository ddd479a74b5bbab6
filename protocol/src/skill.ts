/** Skills: what they need and which are usable. */
import { method, struct, t } from "./dsl.ts";
import { AgentId, Capability, NodeId } from "./ids.ts";

const SkillRequirements = struct("SkillRequirements", "What a skill needs on one machine.", { capabilities: t.array(Capability, 64) });
const SkillEntry = struct("SkillEntry", "One skill and whether it is usable.", {
  name: t.string(128),
  description: t.string(8192),
  location: t.string(1024),
  always: t.bool(),
  eligible: t.bool(),
  eligibleHosts: t.array(NodeId, 1000),
  reasons: t.array(t.string(1024), 64),
  requirements: t.optional(SkillRequirements),
});
const SkillNode = struct("SkillNode", "A machine as skills see it.", {
  nodeId: NodeId,
  online: t.bool(),
  hostCapabilities: t.array(Capability, 64),
});
const SkillsReport = struct("SkillsReport", "Skills of an agent.", {
  agentId: AgentId,
  refreshedAt: t.time(),
  nodes: t.array(SkillNode, 1000),
  skills: t.array(SkillEntry, 1000),
});
method("skills.status", {
  doc: "Skills of an agent and whether they are usable.",
  params: { agentId: t.optional(AgentId) },
  result: SkillsReport,
  callers: ["client"],
  scope: "read",
  idempotent: true,
});
method("skills.update", {
  doc: "Looks at the skills again.",
  params: { agentId: t.optional(AgentId) },
  result: SkillsReport,
  callers: ["client"],
  scope: "operate",
  idempotent: true,
});
