/** Agents: list, read, create, define and delete them. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { ModelRef } from "./chat.ts";
import { AgentId } from "./ids.ts";
import { AgentBinding } from "./config.ts";

const AgentEntry = struct("AgentEntry", "One agent.", {
  agentId: AgentId,
  /** The name in its definition. Absent: no definition is in force. */
  name: t.optional(t.string(64)),
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
const AgentFile = struct("AgentFile", "A file of the agent's folder.", {
  path: t.string(1024),
  sizeBytes: t.int(),
  updatedAt: t.time(),
});
const o = t.optional;
const text = (max: number) => t.string(max, { minLength: 1 });
export const ModelTier = enumOf("ModelTier", "Which of the models of `model.tiers` an agent uses.", ["critical", "main", "sub"]);
export const EscalationCause = enumOf(
  "EscalationCause",
  "What makes an agent's run an escalation. `low_confidence`: the agent says so itself, with the tool `report_low_confidence`. `failed`, `budget_exceeded`: the status of a task's report.",
  ["low_confidence", "failed", "budget_exceeded"],
);
/** The names of fields are those of agent.yaml. */
export const AgentDefinition = struct("AgentDefinition", "What an agent is and what it may do, as agent.yaml says it.", {
  metadata: struct("AgentMetadata", "Who the agent is.", {
    id: AgentId,
    /** Other agents and `/run` call it by this name. */
    name: t.string(48, { pattern: "^[a-z][a-z0-9_]*$" }),
    version: o(text(64)),
    description: o(text(1024)),
  }),
  core_context: struct("AgentCoreContext", "Layer 1 of the prompt.", {
    /** The text itself; in agent.yaml also `{file: PATH}`, a file beside it. */
    system_prompt: text(65536),
    hard_constraints: o(t.array(text(2000), 64)),
  }),
  /** Layer 2 of the prompt, by name: `tone`, `decision_style`. */
  characteristics: o(t.map(text(2000))),
  tools: o(
    struct("AgentTools", "The tools that the agent may call.", {
      /** Full names, or the beginning of names and `*`. Absent `tools`: every tool. */
      allowed: t.array(text(192), 256),
    }),
  ),
  /** Names of the agents to which it may hand tasks, each with a tool `delegate_to_NAME`. */
  sub_agents: o(t.array(t.string(48, { pattern: "^[a-z][a-z0-9_]*$" }), 16)),
  autonomy: o(
    struct("AgentAutonomy", "What one run of the agent may use. The limits of the configuration hold beside these.", {
      /** Model calls. */
      max_iterations: o(t.int(1, 1000)),
      time_budget_ms: o(t.int(1000, 86400000)),
      cost_budget_usd: o(t.number(0, 10000)),
      /** Tools of which each call needs the owner's word, written as in `tools.allowed`. */
      requires_approval: o(t.array(text(192), 256)),
      /** A run hands a task on only while fewer runs than this stand above it; of the agents above it, the least holds. Absent: 2. 0: never. */
      max_delegation_depth: o(t.int(0, 8)),
    }),
  ),
  memory_config: o(
    struct("AgentMemory", "The agent's memory between conversations.", {
      /** Gives the agent `remember` and `recall_memory`, also when `tools.allowed` does not list them. */
      long_term_enabled: o(t.bool()),
      /** The most memories that one `recall_memory` gives. Absent: as many as the call asks for. */
      top_k: o(t.int(1, 50)),
      /** `recall_memory` leaves out what scores less; the best memory scores about 1. */
      min_score: o(t.number(0, 1)),
    }),
  ),
  events: o(
    struct("AgentEvents", "The domain events of the agent.", {
      /** Topics of which it may emit events: names, or the beginning of names and `*`. Gives it the tool `emit_event`. */
      emit: o(t.array(text(64), 64)),
      /** Topics of which each event gives the agent a job, written as in `emit`. */
      on: o(t.array(text(64), 64)),
    }),
  ),
  /** Events that are emitted when a run goes wrong, at most one entry for each cause. */
  escalation: o(
    t.array(
      struct("AgentEscalation", "An event that is emitted when a run goes wrong.", {
        when: EscalationCause,
        /** A topic that takes a question: `{question, reason, details}`. */
        to: text(64),
      }),
      3,
    ),
  ),
  /** Absent: the agent's own model, else the configured one. */
  model_tier: o(ModelTier),
});
const DefinitionFile = struct("DefinitionFile", "A file that a definition names, with its path beside agent.yaml.", {
  path: t.string(512, { minLength: 1 }),
  content: t.string(65536),
});
const DefinitionProblem = struct("DefinitionProblem", "What is wrong with a definition, and where.", {
  /** Such as `autonomy.max_iterations`. Empty: the file as a whole. */
  path: t.string(512),
  /** The line of agent.yaml, from 1. */
  line: o(t.int(1)),
  problem: t.string(1024),
});
/** Names of agents whose definitions still have this one in `sub_agents`: each task that they hand to it is refused. Absent: there are none. */
const stillNamedBy = o(t.array(t.string(48), 16));
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
    /** Absent: the agent has the defaults. */
    definition: t.optional(AgentDefinition),
    /** The text of agent.yaml that is in force. */
    definitionText: t.optional(t.string(65536)),
    /** Files of the definition that were changed since it came into force: they have no effect until it is defined again. */
    changedFiles: t.optional(t.array(t.string(1024), 64)),
    /** agent.yaml in the agent's folder while no definition is in force: it has no effect until it is defined. */
    notInForce: t.optional(AgentFile),
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
  result: {
    agent: AgentEntry,
    /** What the agent needs before it answers, such as the key of its model's provider. */
    warnings: t.optional(t.array(t.string(1024), 64)),
  },
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
    stillNamedBy,
  },
  callers: ["client"],
  scope: "admin",
  audit: { target: "agentId" },
  errors: ["agent.unknown", "agent.kept", "agent.in_use", "config.invalid"],
});
const given = {
  /** The text of agent.yaml. */
  text: t.string(65536, { minLength: 1 }),
  /** Files that the definition names. One that is missing here is read from the agent's folder. */
  files: o(t.array(DefinitionFile, 16)),
};
method("agents.validate", {
  doc: "Checks an agent.yaml and lists everything that is wrong with it. Changes nothing.",
  params: given,
  result: {
    problems: t.array(DefinitionProblem, 256),
    definition: o(AgentDefinition),
    /** The paths of the files that the text names: what a client with a folder sends along. */
    files: o(t.array(t.string(1024), 16)),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["storage.failed"],
  idempotent: true,
});
method("agents.define", {
  doc: "Puts an agent.yaml in force, from the agent's next run on; creates the agent when there is none with its id. A definition with a problem changes nothing.",
  params: given,
  result: {
    definition: AgentDefinition,
    created: t.bool(),
    /** Names of agents whose definitions still have the earlier name of this one in `sub_agents`. */
    stillNamedBy,
  },
  callers: ["client"],
  scope: "admin",
  audit: "own",
  errors: ["agent.definition_invalid", "agent.limit", "config.invalid", "config.too_large", "storage.failed", "file.too_large"],
  idempotent: true,
});
method("agents.undefine", {
  doc: "Removes an agent's definition with its agent.yaml: from its next run on the agent has the defaults. Its files and conversations stay.",
  params: { agentId: AgentId },
  result: { ok: t.literal(true), removed: t.bool(), stillNamedBy },
  callers: ["client"],
  scope: "admin",
  audit: { target: "agentId" },
  errors: ["agent.unknown", "storage.failed"],
  idempotent: true,
});
