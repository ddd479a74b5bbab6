/** Sessions: state, settings, history and live events. */
import { enumOf, event, method, struct, t } from "./dsl.ts";
import { AgentId, CallId, NodeId, RunId, SessionKey, ThinkLevel, ToolName } from "./ids.ts";
import { ChatMessage, ModelRef, Usage } from "./chat.ts";
import { PolicyMode } from "./policy.ts";
import { ToolOutcome } from "./tool.ts";

export const SessionSettings = struct("SessionSettings", "Settings of one session. They override the configuration.", {
  model: t.optional(ModelRef),
  thinkingLevel: t.optional(ThinkLevel),
  systemPrompt: t.optional(t.string(65536)),
  maxTokens: t.optional(t.int(1, 10000000)),
  /** Which tool calls run and which ask. Absent: as configured. */
  mode: t.optional(PolicyMode),
  /** When the mode ends. Absent: it stays. */
  modeUntil: t.optional(t.time()),
});
export const ModelPatch = struct("ModelPatch", "Fields of a model's name.", {
  provider: t.optional(t.string(64, { minLength: 1 })),
  id: t.optional(t.string(256, { minLength: 1 })),
});
export const SessionSettingsPatch = struct("SessionSettingsPatch", "Settings to change.", {
  /** `id` alone keeps the provider. `provider` alone keeps the id if that provider has such a model, else takes its default model. */
  model: t.optional(ModelPatch),
  thinkingLevel: t.optional(ThinkLevel),
  systemPrompt: t.optional(t.string(65536)),
  maxTokens: t.optional(t.int(1, 10000000)),
  /** Only in the owner's sessions. */
  mode: t.optional(PolicyMode),
  /** How long the mode holds. Absent: until it is changed; for `full` an hour. */
  modeMs: t.optional(t.int(60000, 86400000)),
});
export const ResetMode = enumOf("ResetMode", "When a session is reset automatically.", ["manual", "daily", "idle"]);
export const ResetPolicy = struct("ResetPolicy", "When a session is reset automatically.", {
  mode: ResetMode,
  atHour: t.optional(t.int(0, 23)),
  idleMinutes: t.optional(t.int(1, 525600)),
});
export const TokenUsage = struct("TokenUsage", "Tokens so far.", {
  input: t.int(),
  output: t.int(),
  total: t.int(),
  costUsd: t.optional(t.number(0)),
});
export const RunState = enumOf("RunState", "The current activity of a session.", ["idle", "thinking", "acting", "archiving"]);
export const MachineWait = struct("MachineWait", "A tool call that waits for its machine, which is not connected.", {
  nodeId: NodeId,
  tool: ToolName,
  since: t.time(),
  /** Then it ends without having run. */
  until: t.time(),
});
/** What a run waits for. */
export const waitingFor = {
  /** Codes of the questions that wait for the owner's word. Absent: none waits. */
  questions: t.optional(t.array(t.string(16), 32)),
  /** Absent: no call waits for its machine. */
  machines: t.optional(t.array(MachineWait, 32)),
};
export const SessionEntry = struct("SessionEntry", "A session in the list.", {
  sessionKey: SessionKey,
  createdAt: t.time(),
  lastActiveAt: t.time(),
  label: t.optional(t.string(256)),
  /** The conversation's own mode, while it holds. Absent: as configured. */
  mode: t.optional(PolicyMode),
  modeUntil: t.optional(t.time()),
});
const key = { sessionKey: SessionKey };
const read = {
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["session.bad_key", "session.not_found"],
  idempotent: true,
} as const;

method("sessions.list", {
  doc: "Lists sessions, the last active first. `agentId`: only the sessions of this agent, which `count` counts, too.",
  params: { offset: t.optional(t.int()), limit: t.optional(t.int(1, 200)), agentId: t.optional(AgentId) },
  result: { sessions: t.array(SessionEntry, 200), count: t.int() },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["agent.unknown"],
  idempotent: true,
});
method("session.get", {
  doc: "Returns one session.",
  params: key,
  result: {
    sessionId: t.string(64),
    sessionKey: SessionKey,
    createdAt: t.time(),
    updatedAt: t.time(),
    messageCount: t.int(),
    tokens: TokenUsage,
    settings: SessionSettings,
    resetPolicy: t.optional(ResetPolicy),
    lastResetAt: t.optional(t.time()),
    previousSessionIds: t.array(t.string(64), 10000),
    label: t.optional(t.string(256)),
    state: t.optional(RunState),
    ...waitingFor,
    lastSeq: t.optional(t.int()),
    /** Tokens of the conversation in the model's context window. Absent: unknown. */
    contextTokens: t.optional(t.int()),
    contextWindow: t.optional(t.int()),
    /** The model of the next run. Absent: unknown. */
    model: t.optional(ModelRef),
    /** Compactions of the current conversation. After one, the conversation begins with a summary. */
    compactions: t.optional(t.int()),
  },
  ...read,
});
method("session.stats", {
  doc: "Returns counters of one session.",
  params: key,
  result: {
    sessionKey: SessionKey,
    sessionId: t.string(64),
    messageCount: t.int(),
    tokens: TokenUsage,
    createdAt: t.time(),
    updatedAt: t.time(),
    uptime: t.int(),
    isProcessing: t.bool(),
    queueSize: t.int(),
    state: t.optional(RunState),
    /** The conversation's own mode, while it holds. Absent: as configured. */
    mode: t.optional(PolicyMode),
    modeUntil: t.optional(t.time()),
    ...waitingFor,
    runId: t.optional(RunId),
    steps: t.optional(t.int()),
    runsCompleted: t.optional(t.int()),
  },
  ...read,
});
method("session.patch", {
  doc: "Changes settings, label or reset policy. Absent fields stay unchanged; `clear` names settings to remove.",
  params: {
    ...key,
    settings: t.optional(SessionSettingsPatch),
    label: t.optional(t.string(256)),
    resetPolicy: t.optional(
      struct("ResetPolicyPatch", "Fields of a reset policy.", {
        mode: t.optional(ResetMode),
        atHour: t.optional(t.int(0, 23)),
        idleMinutes: t.optional(t.int(1, 525600)),
      }),
    ),
    clear: t.optional(t.array(t.string(64), 16)),
  },
  result: {
    ok: t.bool(),
    /** What the settings need before they work, such as the key of the model's provider. */
    warnings: t.optional(t.array(t.string(1024), 64)),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "sessionKey" },
  errors: ["session.bad_key", "session.not_found", "protocol.invalid_params", "model.unknown"],
  idempotent: true,
});
method("session.reset", {
  doc: "Archives the conversation and starts a new one. Nothing is removed before the archive is durable.",
  params: key,
  result: {
    ok: t.bool(),
    sessionKey: SessionKey,
    oldSessionId: t.string(64),
    newSessionId: t.string(64),
    archivedMessages: t.int(),
    archivedTo: t.optional(t.string(1024)),
    tokensCleared: TokenUsage,
    mediaDeleted: t.optional(t.int()),
    /** The daily file with the extracted memories. */
    memoriesTo: t.optional(t.string(1024)),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "sessionKey" },
  errors: ["session.bad_key", "session.not_found", "session.busy", "session.archive_failed"],
  deferred: true,
});
method("session.delete", {
  doc: "Deletes a session: its messages and settings, archived transcripts, long tool results, files and search entries. The audit log and what was spent stay. A deletion that has begun is finished after a restart; until then messages to the session are refused.",
  params: {
    ...key,
    /** Stop a run and drop messages that wait; without it a session with either is refused. */
    stop: t.optional(t.bool()),
  },
  result: {
    ok: t.literal(true),
    sessionKey: SessionKey,
    /** False: it goes on in the background. */
    done: t.bool(),
    archives: t.optional(t.int()),
    files: t.optional(t.int()),
  },
  callers: ["client"],
  scope: "admin",
  audit: { target: "sessionKey" },
  errors: ["session.bad_key", "session.not_found", "session.running", "session.busy"],
  deferred: true,
  idempotent: true,
});
method("session.compact", {
  doc: "Shortens the context. Without `keepMessages` older messages are archived and replaced by a summary. With it all messages except the last ones (0: all messages) are archived and removed.",
  params: { ...key, keepMessages: t.optional(t.int(0, 100000)) },
  result: {
    ok: t.bool(),
    trimmedMessages: t.int(),
    keptMessages: t.int(),
    archivedTo: t.optional(t.string(1024)),
    summarized: t.optional(t.bool()),
    /** The daily file with the extracted memories. */
    memoriesTo: t.optional(t.string(1024)),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "sessionKey" },
  errors: ["session.bad_key", "session.not_found", "session.busy", "session.archive_failed"],
  deferred: true,
});
method("session.history", {
  doc: "Lists the earlier incarnations of a session.",
  params: key,
  result: { sessionKey: SessionKey, currentSessionId: t.string(64), previousSessionIds: t.array(t.string(64), 10000) },
  ...read,
});
method("session.preview", {
  doc: 'Returns the last messages, the oldest first, in the format of the model library: at most `limit`, else as many as fit into an answer. With `notes` also what happened beside them, each as `{role: "note", kind: "note" | "late" | "error" | "aborted", content, timestamp, isAnswer?}`.',
  params: {
    ...key,
    limit: t.optional(t.int(1, 200)),
    /** Also notes: reminders, answers of jobs, late results, and why a run gave no answer. */
    notes: t.optional(t.bool()),
  },
  result: { sessionKey: SessionKey, sessionId: t.string(64), messageCount: t.int(), messages: t.array(t.json(), 200) },
  ...read,
});
method("session.messages", {
  doc: "Returns messages of the current conversation from `offset` on, the oldest first, in the format of the model library, as many as fit into an answer. With `notes` also notes, as `session.preview` has them; `offset` and `total` then count them, too.",
  params: { ...key, offset: t.optional(t.int()), limit: t.optional(t.int(1, 10000)), notes: t.optional(t.bool()) },
  result: {
    sessionKey: SessionKey,
    sessionId: t.string(64),
    messages: t.array(t.json()),
    offset: t.int(),
    /** Absent at the end. */
    nextOffset: t.optional(t.int()),
    total: t.int(),
  },
  ...read,
});
method("session.result", {
  doc: "Returns what a tool call of the current conversation gave, as a person reads it: of a command what it printed.",
  params: { ...key, callId: CallId },
  result: {
    sessionKey: SessionKey,
    callId: CallId,
    name: t.string(192),
    outcome: t.optional(ToolOutcome),
    text: t.text(),
    /** The middle of a long result is left out; this file of the agent's workspace has it as the tool gave it. */
    path: t.optional(t.string(1024)),
  },
  ...read,
  errors: ["session.bad_key", "session.not_found", "run.not_found"],
});
const PromptSection = struct("PromptSection", "A part of the system prompt.", {
  id: t.string(64),
  title: t.string(256),
  /** Context layer: 1 core, 2 characteristics, 3 shared, 4 delegated, 5 working memory, 6 long-term memory. */
  layer: t.int(1, 6),
  text: t.text(),
  sizeBytes: t.int(),
  /** An estimate. */
  tokens: t.int(),
});
const PromptTool = struct("PromptTool", "A tool in the prompt.", { name: t.string(192), tokens: t.int() });
method("session.prompt", {
  doc: "Returns the current prompt: the system prompt by section, the tools and the size of the conversation. Calls no model.",
  params: key,
  result: {
    sessionKey: SessionKey,
    agentId: AgentId,
    model: ModelRef,
    sections: t.array(PromptSection, 64),
    tools: t.array(PromptTool, 10000),
    systemTokens: t.int(),
    toolTokens: t.int(),
    messageCount: t.int(),
    messageTokens: t.int(),
    totalTokens: t.int(),
    contextWindow: t.int(),
    /** Hash of the system prompt. */
    sha256: t.string(64),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["session.bad_key", "agent.unknown", "model.unknown", "storage.failed"],
  idempotent: true,
});
method("session.subscribe", {
  doc: "Subscribes to a session. With `afterSeq` the answer has the log events since then, without gaps or duplicates.",
  params: {
    ...key,
    afterSeq: t.optional(t.int()),
    /** Stream what the model thinks in the current run to this connection, as `thinking` events. Absent: it gets none from here on. */
    thinking: t.optional(t.bool()),
  },
  result: {
    sessionKey: SessionKey,
    seq: t.int(),
    events: t.array(t.json(), 10000),
    state: t.optional(RunState),
    runId: t.optional(RunId),
    step: t.optional(t.int()),
    attempt: t.optional(t.int()),
    /** Text so far of the current model call. */
    text: t.optional(t.text()),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["session.bad_key", "agent.unknown", "session.snapshot_required"],
  idempotent: true,
});
method("session.unsubscribe", {
  doc: "Ends the subscription to a session.",
  params: key,
  result: { ok: t.literal(true) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});

event("session", {
  doc: "News of a session that is not part of a run: it was reset or compacted, a late tool result arrived, a machine disconnected.",
  payload: {
    sessionKey: SessionKey,
    kind: enumOf("SessionEventKind", "What happened to the session.", ["reset", "compacted", "note", "settings"]),
    text: t.optional(t.text()),
    sessionSeq: t.optional(t.int()),
    message: t.optional(ChatMessage),
    usage: t.optional(Usage),
  },
  to: ["client"],
});
