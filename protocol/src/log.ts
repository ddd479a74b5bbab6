/** Logs of nodes. */
import { event, method, t } from "./dsl.ts";
import { CallId, NodeId } from "./ids.ts";

method("logs.get", {
  doc: "Returns the last lines of a node's log. Without nodeId: of the only connected node.",
  params: { nodeId: t.optional(NodeId), lines: t.optional(t.int(1, 5000)) },
  result: { nodeId: NodeId, lines: t.array(t.string(65536), 5000), count: t.int(), truncated: t.bool() },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["node.offline", "node.unknown", "tool.timeout"],
  deferred: true,
  idempotent: true,
});
event("logs.get", {
  doc: "The gateway asks a node for its log.",
  payload: { callId: CallId, lines: t.optional(t.int(1, 5000)) },
  to: ["node"],
});
method("logs.result", {
  doc: "A node sends its log lines.",
  params: {
    callId: CallId,
    lines: t.optional(t.array(t.string(65536), 5000)),
    truncated: t.optional(t.bool()),
    error: t.optional(t.text()),
  },
  result: { ok: t.literal(true), dropped: t.optional(t.bool()) },
  callers: ["node"],
  scope: "node",
  audit: "none",
  idempotent: true,
});
