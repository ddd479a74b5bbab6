/** Nodes: machines that run tools. */
import { enumOf, event, method, struct, t } from "./dsl.ts";
import { NodeDesktop, NodeSandbox } from "./connect.ts";
import { CallId, Capability, NodeId, SessionKey, ToolName } from "./ids.ts";

export const NodeWait = struct("NodeWait", "A tool call of a conversation that waits for a machine.", {
  sessionKey: SessionKey,
  tool: ToolName,
  since: t.time(),
  until: t.time(),
});
export const NodeEntry = struct("NodeEntry", "A machine that is or was connected.", {
  nodeId: NodeId,
  online: t.bool(),
  /** It was connected when the gateway stopped, and the gateway waits a few seconds for it. */
  returning: t.optional(t.literal(true)),
  hostCapabilities: t.array(Capability, 64),
  toolCapabilities: t.map(t.array(Capability, 64)),
  tools: t.array(t.string(128), 64),
  ledger: t.optional(t.bool()),
  firstSeenAt: t.optional(t.time()),
  lastSeenAt: t.optional(t.time()),
  lastConnectedAt: t.optional(t.time()),
  lastDisconnectedAt: t.optional(t.time()),
  clientPlatform: t.optional(t.string(64)),
  clientVersion: t.optional(t.string(64)),
  /** As the node reported it when it connected. */
  sandbox: t.optional(NodeSandbox),
  /** As the node reported it when it connected. */
  desktop: t.optional(NodeDesktop),
  /** As the node reported it when it connected: the folder in which commands and relative paths begin. */
  workspace: t.optional(t.string(1024)),
  /** As the node reported it when it connected: the names of the only folder whose files its tools for files use. */
  fileRoots: t.optional(t.array(t.string(1024), 2)),
  /** The first of the calls that wait for it. Absent: none. */
  waiting: t.optional(t.array(NodeWait, 32)),
});
method("nodes.list", {
  doc: "Lists the machines that are or were connected.",
  result: { nodes: t.array(NodeEntry, 1000), count: t.int() },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
method("node.forget", {
  doc: "Removes a machine from the registry.",
  params: { nodeId: NodeId, force: t.optional(t.bool()) },
  result: { ok: t.literal(true), nodeId: NodeId, removed: t.bool(), disconnected: t.bool() },
  callers: ["client"],
  scope: "admin",
  audit: { target: "nodeId" },
  errors: ["node.unknown", "node.online"],
  idempotent: true,
});
export const ExecEventKind = enumOf("ExecEventKind", "A change in the state of a background process.", [
  "started",
  "finished",
  "failed",
  "timed_out",
]);
method("node.exec.event", {
  doc: "A node reports that a background process started or ended. The end of a process wakes its session.",
  params: {
    eventId: t.string(128, { minLength: 1 }),
    sessionId: t.string(128),
    event: ExecEventKind,
    callId: t.optional(CallId),
    exitCode: t.optional(t.int(-2147483648, 2147483647)),
    signal: t.optional(t.string(32)),
    outputTail: t.optional(t.string(65536)),
    startedAt: t.optional(t.time()),
    endedAt: t.optional(t.time()),
  },
  result: { ok: t.literal(true), dropped: t.optional(t.bool()) },
  callers: ["node"],
  scope: "node",
  audit: "none",
  idempotent: true,
});
event("presence", {
  doc: "A machine connected or disconnected.",
  payload: { nodeId: NodeId, online: t.bool(), reason: t.optional(t.string(256)) },
  to: ["client"],
});
