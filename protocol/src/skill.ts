/** Skills: requirements, state, installation and approval. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { AgentId, Capability, NodeId } from "./ids.ts";

const SkillRequirements = struct("SkillRequirements", "Requirements of a skill. One machine must meet all of them.", {
  capabilities: t.array(Capability, 64),
  /** Programs that the skill uses. Machines don't report their programs, so these are shown and not checked. */
  bins: t.optional(t.array(t.string(128), 64)),
});
const SkillMetadata = struct(
  "SkillMetadata",
  "Additional keys of a SKILL.md: the first of `gsv`, `openclaw` and `clawdbot` under `metadata`.",
  {
    always: t.optional(t.bool()),
    emoji: t.optional(t.string(32)),
    homepage: t.optional(t.string(1024)),
    requires: t.optional(
      struct("SkillNeeds", "Requirements that a skill declares.", {
        capabilities: t.optional(t.array(Capability, 64)),
        bins: t.optional(t.array(t.string(128), 64)),
      }),
    ),
    /** Texts, or steps for other programs. They are shown and never run. */
    install: t.optional(t.array(t.json(), 16)),
  },
);
struct("SkillFrontMatter", "The front matter of a SKILL.md. Other keys are ignored.", {
  name: t.optional(t.string(128, { minLength: 1 })),
  description: t.string(8192, { minLength: 1 }),
  homepage: t.optional(t.string(1024)),
  always: t.optional(t.bool()),
  metadata: t.optional(SkillMetadata),
});
const SkillScope = enumOf(
  "SkillScope",
  "Where a skill is installed: for one agent, for all agents, or built in. Of skills with the same name the first in this order is used.",
  ["agent", "global", "builtin"],
);
const SkillState = enumOf(
  "SkillState",
  "`ready`: the skill is usable. `unchecked`: it is usable, but it needs programs that were not looked for on any machine. `changed`: its files are not the approved ones, so it is not used. `invalid`: its front matter is invalid. `disabled`: `skills.entries` disables it. `unmet`: no connected machine meets its requirements.",
  ["ready", "changed", "invalid", "disabled", "unmet", "unchecked"],
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
  /** The author's installation steps for the requirements. They are never run automatically. */
  install: t.optional(t.array(t.string(1024), 16)),
  /** `sha256`: hash of all files. `approvedSha256`: the approved hash, when it differs. */
  sha256: t.optional(t.string(64)),
  approvedSha256: t.optional(t.string(64)),
  approvedAt: t.optional(t.time()),
  approvedBy: t.optional(t.string(256)),
});
const SkillFile = struct("SkillFile", "A file of a skill, by its path in the skill's folder.", {
  path: t.string(512, { minLength: 1 }),
  content: t.text(),
});
const SkillUploadedFile = struct(
  "SkillUploadedFile",
  "A file of a skill whose bytes were sent with `skills.upload`, by its place in the bytes of that upload.",
  {
    path: t.string(512, { minLength: 1 }),
    offset: t.int(),
    sizeBytes: t.int(),
    /** Hex. The gateway compares it with the bytes that it received. */
    sha256: t.string(64, { minLength: 64 }),
  },
);
const SkillNode = struct("SkillNode", "A machine and its capabilities.", {
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
  doc: "Lists the skills of an agent and whether they are usable.",
  params: { agentId: t.optional(AgentId) },
  result: SkillsReport,
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("skills.update", {
  doc: "Checks the skills again.",
  params: { agentId: t.optional(AgentId) },
  result: SkillsReport,
  callers: ["client"],
  scope: "operate",
  audit: "none",
  idempotent: true,
});
const skill = { agentId: t.optional(AgentId), name: t.string(128, { minLength: 1 }) };
method("skills.show", {
  doc: "Returns one skill with its text and the names of its other files.",
  params: skill,
  result: { skill: SkillEntry, content: t.text(), files: t.array(t.string(1024), 256) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["skill.not_found", "storage.failed"],
  idempotent: true,
});
method("skills.upload", {
  doc: "Stores a chunk of the files of a skill before `skills.install`. Chunks arrive in any order and may be repeated. An upload is deleted 10 minutes after its last chunk.",
  params: {
    /** A new UUID for each upload. */
    uploadId: t.string(64, { minLength: 16 }),
    /** Position of the chunk. Every chunk but the last has `skillChunkBytes` bytes. */
    index: t.int(0, 15),
    /** The bytes in base64. */
    content: t.text(),
  },
  result: { receivedBytes: t.int(), expiresAt: t.time() },
  callers: ["client"],
  scope: "admin",
  audit: "none",
  errors: ["skill.too_many_uploads", "skill.upload_lost"],
  idempotent: true,
});
method("skills.install", {
  doc: "Installs a skill for one agent or for all agents, and approves its files. Replaces a skill of the same name only with `replace`. A skill that does not fit one frame is sent with `skills.upload` first.",
  params: {
    agentId: t.optional(AgentId),
    name: t.string(128, { minLength: 1 }),
    /** `agent` when absent. */
    scope: t.optional(SkillScope),
    /** Text files. These and `uploaded` are the whole skill; SKILL.md must be one of them. */
    files: t.array(SkillFile, 256),
    replace: t.optional(t.bool()),
    /** The upload that `uploaded` refers to. The same installation of the same upload is done once. */
    uploadId: t.optional(t.string(64, { minLength: 16 })),
    uploaded: t.optional(t.array(SkillUploadedFile, 256)),
  },
  result: { skill: SkillEntry },
  callers: ["client"],
  scope: "admin",
  audit: { target: "name" },
  errors: [
    "skill.invalid",
    "skill.too_large",
    "skill.exists",
    "skill.limit",
    "skill.upload_lost",
    "path.invalid",
    "file.too_large",
    "storage.failed",
    "agent.unknown",
  ],
});
method("skills.remove", {
  doc: "Deletes a skill's files. A skill of the same name in another scope is then used again. Built-in skills can only be disabled.",
  params: { ...skill, scope: t.optional(SkillScope) },
  result: { removed: t.literal(true), scope: SkillScope },
  callers: ["client"],
  scope: "admin",
  audit: { target: "name" },
  errors: ["skill.not_found", "skill.builtin", "storage.failed"],
});
method("skills.approve", {
  doc: "Approves the current files of a skill. `sha256` is the hash of the reviewed files: when the files have changed since, nothing is approved.",
  params: { ...skill, sha256: t.string(64, { minLength: 64 }) },
  result: { skill: SkillEntry },
  callers: ["client"],
  scope: "admin",
  audit: { target: "name" },
  errors: ["skill.not_found", "skill.invalid", "skill.changed", "storage.failed"],
  idempotent: true,
});
