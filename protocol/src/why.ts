/** The story of one run, from what is stored: the session's log and the audit. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { Usage } from "./chat.ts";
import { CallId, NodeId, RunId, SessionKey, ToolName } from "./ids.ts";
import { waitingFor } from "./session.ts";
import { ToolOutcome } from "./tool.ts";

export const StoryDecision = enumOf("StoryDecision", "Whether a call was made. `waits`: its question is open.", [
  "allowed",
  "denied",
  "waits",
]);
export const StoryCall = struct("StoryCall", "One tool call of a run.", {
  callId: CallId,
  tool: ToolName,
  nodeId: t.optional(NodeId),
  /** Absent: no decision was recorded. */
  decision: t.optional(StoryDecision),
  /** What decided: a rule of the configuration, `grant:ID`, `approval:CODE`, a mode. */
  rule: t.optional(t.string(1024)),
  /** What the owner was asked, or why the call was not made. */
  why: t.optional(t.string(4096)),
  /** The code of the question about the call. */
  code: t.optional(t.string(16)),
  /** Who answered it. */
  by: t.optional(t.string(512)),
  /** Absent: the call has not ended. */
  outcome: t.optional(ToolOutcome),
  reason: t.optional(t.string(128)),
  durationMs: t.optional(t.int()),
  /** When its result was stored. */
  endedAt: t.optional(t.time()),
  /** How the command of the call ended: `ok` means that it ran, not that it succeeded. */
  exitCode: t.optional(t.int(-2147483648, 2147483647)),
  /** The signal that ended the command. */
  signal: t.optional(t.string(32)),
  /** The conversation of the task that the call has handed to another agent. */
  handedTo: t.optional(SessionKey),
});
export const StorySent = struct("StorySent", "What one call of the model was sent, estimated when the call began.", {
  /** When the call began. */
  at: t.time(),
  provider: t.string(128),
  model: t.string(256),
  /** Tokens of the six context layers, in order: core, characteristics, shared, delegated, working memory, long-term memory. */
  layers: t.array(t.int(), 6),
  /** Tokens of the definitions of the tools, which are a part of layer 3. */
  tools: t.int(),
});
export const StoryFailed = struct("StoryFailed", "One call of the model that got no answer.", {
  /** When it had failed. */
  at: t.time(),
  /** A reason of the table of errors; `interrupted`: the call was lost with the program that made it. */
  reason: t.string(128),
  usage: t.optional(Usage),
  /** Absent: not known any more. */
  sent: t.optional(StorySent),
});
export const StoryStep = struct("StoryStep", "One answer of the model, and the calls in it.", {
  step: t.int(),
  /** When the answer had come. */
  at: t.time(),
  /** Since the call of the model could begin: the message, or the last result before it. */
  ms: t.int(),
  provider: t.string(128),
  model: t.string(256),
  usage: Usage,
  /** Absent: of a run of an earlier version. */
  sent: t.optional(StorySent),
  /** Calls of the step before the one that was answered. */
  failed: t.optional(t.array(StoryFailed, 16)),
  calls: t.array(StoryCall, 256),
});
export const StoryEnd = enumOf("StoryEnd", "How a run ended. `open`: it has not.", ["final", "error", "aborted", "open"]);

method("run.why", {
  doc: "Tells the story of one run of a conversation: what caused it, each answer of the model with tokens and cost, and each tool call with its decision, rule, question and outcome. Names the run by its id or by one of its calls; neither: the last run.",
  params: { sessionKey: t.optional(SessionKey), runId: t.optional(RunId), callId: t.optional(CallId) },
  result: {
    sessionKey: SessionKey,
    runId: RunId,
    /** What caused it, as in the audit. */
    origin: t.optional(t.string(256)),
    startedAt: t.time(),
    endedAt: t.optional(t.time()),
    end: StoryEnd,
    ...waitingFor,
    /** Why the run ended without an answer. */
    error: t.optional(t.string(4096)),
    usage: Usage,
    /** Calls of a last step that got no answer. */
    failed: t.optional(t.array(StoryFailed, 16)),
    steps: t.array(StoryStep, 1000),
    /** Steps at the beginning that did not fit the answer. */
    left: t.int(),
  },
  callers: ["client"],
  scope: "admin",
  audit: "none",
  errors: ["session.not_found", "session.bad_key", "run.not_found"],
  idempotent: true,
});
