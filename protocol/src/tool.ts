/** Tools of machines and of the gateway, and the messages of a tool call. */
import { enumOf, event, method, struct, t } from "./dsl.ts";
import { CallId, NodeId, ToolName } from "./ids.ts";

export const ToolDefinition = struct("ToolDefinition", "A tool. `inputSchema` is JSON Schema.", {
  name: t.string(128, { minLength: 1, pattern: "^[A-Za-z][A-Za-z0-9_.-]*$" }),
  description: t.string(8192),
  inputSchema: t.object(),
  /** True: a call may be repeated when its outcome is not known. */
  idempotent: t.optional(t.bool()),
  /** Overrides `timeouts.toolMs`. */
  timeoutMs: t.optional(t.int(0, 86400000)),
});

method("tools.list", {
  doc: "Lists every tool that a run could use now, by the names that the model sees. A node gets only its own tools; nodes of the reference implementation use this as a ping.",
  result: { tools: t.array(ToolDefinition, 4096) },
  callers: ["client", "node"],
  scope: "read",
  audit: "none",
  idempotent: true,
});

method("tool.invoke", {
  doc: "Runs one tool for the caller and returns its result.",
  params: { tool: ToolName, args: t.optional(t.object()), callId: t.optional(CallId), timeoutMs: t.optional(t.int(0, 86400000)) },
  result: { result: t.optional(t.json()), callId: t.optional(CallId) },
  callers: ["client"],
  scope: "operate",
  audit: { target: "tool" },
  errors: ["tool.unknown", "tool.bad_args", "tool.failed", "tool.timeout", "tool.cancelled", "tool.outcome_unknown", "node.offline"],
  deferred: true,
});

method("tool.request", {
  doc: "Requests a tool call for a session. Kept for clients of the reference implementation; sessions never use it.",
  params: { callId: CallId, tool: ToolName, args: t.object(), sessionKey: t.string(512) },
  result: { status: t.literal("sent") },
  callers: ["client"],
  scope: "operate",
  audit: { target: "tool" },
  errors: ["tool.unknown", "node.offline", "session.bad_key"],
});

event("tool.invoke", {
  doc: "The gateway asks a node to run a call. The gateway sends it again with the same callId when the delivery is unknown; a node with a ledger never runs it twice.",
  payload: {
    callId: CallId,
    tool: t.string(128),
    args: t.object(),
    sessionKey: t.optional(t.string(512)),
    timeoutMs: t.optional(t.int(0, 86400000)),
  },
  to: ["node"],
});

event("tool.cancel", {
  doc: "The gateway cancels a call: the node ends its process group (TERM, then KILL).",
  payload: { callId: CallId, reason: t.string(256) },
  to: ["node"],
});

export const ToolOutcome = enumOf("ToolOutcome", "How a call ended. `unknown`: the call was started, and its outcome is unknown.", [
  "ok",
  "error",
  "cancelled",
  "timeout",
  "unknown",
]);

method("tool.result", {
  doc: "A node reports how a call ended. The answer means that the result is durable in the gateway; until then the node keeps it and retries.",
  params: {
    callId: CallId,
    result: t.optional(t.json()),
    error: t.optional(t.text()),
    reason: t.optional(t.string(64)),
    outcome: t.optional(ToolOutcome),
    durationMs: t.optional(t.int()),
  },
  result: { ok: t.literal(true), dropped: t.optional(t.bool()) },
  callers: ["node"],
  scope: "node",
  audit: "none",
  idempotent: true,
});

export const ToolPhase = enumOf("ToolPhase", "Progress of a call that has not ended.", ["accepted", "started", "output"]);

method("tool.progress", {
  doc: "A node reports that it accepted or started a call, or new output of the call. Clients of the session see it; it is never stored.",
  params: { callId: CallId, phase: ToolPhase, chunk: t.optional(t.string(65536)), pid: t.optional(t.int(0, 4294967295)) },
  result: { ok: t.literal(true) },
  callers: ["node"],
  scope: "node",
  audit: "none",
  idempotent: true,
});

event("tool.progress", {
  doc: "Progress of a call in a session that the client follows.",
  payload: {
    callId: CallId,
    sessionKey: t.optional(t.string(512)),
    nodeId: t.optional(NodeId),
    phase: ToolPhase,
    chunk: t.optional(t.string(65536)),
  },
  to: ["client"],
});
