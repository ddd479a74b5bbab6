/** Skills: what they need and which are usable. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { AgentId, Capability, NodeId } from "./ids.ts";

const SkillRequirements = struct("SkillRequirements", "What a skill needs on one machine.", {
  capabilities: t.array(Capability, 64),
  /** Programs that it says it uses. Machines don't report theirs, so these are shown and not checked. */
  bins: t.optional(t.array(t.string(128), 64)),
});
const SkillMetadata = struct(
  "SkillMetadata",
  "What a SKILL.md says beside the common keys: the first of `gsv`, `openclaw` and `clawdbot` under `metadata`.",
  {
    always: t.optional(t.bool()),
    emoji: t.optional(t.string(32)),
    homepage: t.optional(t.string(1024)),
    requires: t.optional(
      struct("SkillNeeds", "What a skill says it needs.", {
        capabilities: t.optional(t.array(Capability, 64)),
        bins: t.optional(t.array(t.string(128), 64)),
      }),
    ),
    /** Texts, or the steps of other programs. Only ever shown. */
    install: t.optional(t.array(t.json(), 16)),
  },
);
struct("SkillFrontMatter", "The head of a SKILL.md, `metadata` being the part of it that counts. Other keys are ignored.", {
  name: t.optional(t.string(128, { minLength: 1 })),
  description: t.string(8192, { minLength: 1 }),
  homepage: t.optional(t.string(1024)),
  always: t.optional(t.bool()),
  metadata: t.optional(SkillMetadata),
});
const SkillScope = enumOf("SkillScope", "Whose it is: the agent's own, every agent's, or built in. The first of a name is used.", [
  "agent",
  "global",
  "builtin",
]);
const SkillState = enumOf(
  "SkillState",
  "`ready`: usable as it was installed. `changed`: its files are not those that were approved, so it is not used. `invalid`: its front matter can't be used. `disabled`: switched off by `skills.entries`. `unmet`: no connected machine has what it needs.",
  ["ready", "changed", "invalid", "disabled", "unmet"],
);
const SkillEntry = struct("SkillEntry", "One skill and whether it is usable.", {
  name: t.string(128),
  description: t.string(8192),
  location: t.string(1024),
  always: t.bool(),
  eligible: t.bool(),
  eligibleHosts: t.array(NodeId, 1000),
  reasons: t.array(t.string(1024), 64),
  requirements: t.optional(SkillRequirements),
  scope: t.optional(SkillScope),
  state: t.optional(SkillState),
  homepage: t.optional(t.string(1024)),
  emoji: t.optional(t.string(32)),
  /** How what it needs is installed, in its author's words. Never run by itself. */
  install: t.optional(t.array(t.string(1024), 16)),
  /** Of all its files; what was approved, when that is something else. */
  sha256: t.optional(t.string(64)),
  approvedSha256: t.optional(t.string(64)),
  approvedAt: t.optional(t.time()),
  approvedBy: t.optional(t.string(256)),
});
const SkillFile = struct("SkillFile", "A file of a skill, by its path in the skill's folder.", {
  path: t.string(512, { minLength: 1 }),
  content: t.text(),
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
  audit: "none",
  idempotent: true,
});
method("skills.update", {
  doc: "Looks at the skills again.",
  params: { agentId: t.optional(AgentId) },
  result: SkillsReport,
  callers: ["client"],
  scope: "operate",
  audit: "none",
  idempotent: true,
});
const skill = { agentId: t.optional(AgentId), name: t.string(128, { minLength: 1 }) };
method("skills.show", {
  doc: "One skill with its text and the names of its other files.",
  params: skill,
  result: { skill: SkillEntry, content: t.text(), files: t.array(t.string(1024), 256) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["skill.not_found", "storage.failed"],
  idempotent: true,
});
method("skills.install", {
  doc: "Installs a skill, as the agent's own or for every agent, and approves it as it is. Replaces one of that name only with `replace`.",
  params: {
    agentId: t.optional(AgentId),
    name: t.string(128, { minLength: 1 }),
    /** `agent` when absent. */
    scope: t.optional(SkillScope),
    /** SKILL.md among them. */
    files: t.array(SkillFile, 64),
    replace: t.optional(t.bool()),
  },
  result: { skill: SkillEntry },
  callers: ["client"],
  scope: "admin",
  audit: { target: "name" },
  errors: ["skill.invalid", "skill.exists", "skill.limit", "path.invalid", "file.too_large", "storage.failed", "agent.unknown"],
});
method("skills.remove", {
  doc: "Deletes a skill's files. One of the same name that it had covered is used again. Built-in ones can only be switched off.",
  params: { ...skill, scope: t.optional(SkillScope) },
  result: { removed: t.literal(true), scope: SkillScope },
  callers: ["client"],
  scope: "admin",
  audit: { target: "name" },
  errors: ["skill.not_found", "skill.builtin", "storage.failed"],
});
method("skills.approve", {
  doc: "Says that a skill may be used as it is now. `sha256` is what was looked at: when the files have changed since, nothing is approved.",
  params: { ...skill, sha256: t.string(64, { minLength: 64 }) },
  result: { skill: SkillEntry },
  callers: ["client"],
  scope: "admin",
  audit: { target: "name" },
  errors: ["skill.not_found", "skill.invalid", "skill.changed", "storage.failed"],
  idempotent: true,
});
