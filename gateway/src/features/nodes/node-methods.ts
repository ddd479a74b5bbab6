/** `nodes.list`, `node.*`, `logs.*`: machines, their background processes, their logs. */
import type { Result } from "../../ports/result.ts";
import { LOGS_TIMEOUT_MS } from "./client-calls.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import { ownerOf } from "../../kernel/routing/call-ids.ts";
import { LATER } from "../../kernel/feature.ts";
import type { NodeHandler, NodeHandlers, NodeServices } from "./handlers.ts";

const list: NodeHandler<"nodes.list"> = (services) => {
  const nodes = [...services.nodes.list((nodeId) => services.connections.isOnline(nodeId))];
  return succeed({ nodes, count: nodes.length });
};

const forget: NodeHandler<"node.forget"> = (services, _caller, { nodeId, force }) => {
  const node = services.connections.byIdentity({ mode: "node", id: nodeId });
  if (node === undefined && !services.nodes.exists(nodeId)) return fail("node.unknown");
  if (node !== undefined && force !== true) return fail("node.online");
  if (node !== undefined && services.connections.close(node.socket, 1000, "the node was forgotten") !== undefined)
    services.nodeLinks.went(node, "the node was forgotten");
  return succeed({ ok: true, nodeId, removed: services.nodes.forget(nodeId), disconnected: node !== undefined });
};

const execEvent: NodeHandler<"node.exec.event"> = async (services, { connection, now }, params) => {
  const owner = params.callId === undefined ? undefined : ownerOf(params.callId);
  const key = owner?.kind === "session" ? services.sessions.keyOf(owner.ref) : undefined;
  // A process that a client started itself has no conversation to wake.
  if (key === undefined) return succeed({ ok: true, dropped: true });
  // It may start a run: the conversation is active, for whoever looks for active ones.
  services.sessions.touch(key, now);
  const taken = await services.ask(key, (session) => session.execEvent(connection.principal.id, params));
  return succeed(taken === "unknown" ? { ok: true, dropped: true } : { ok: true });
};

/** The machine whose log is asked for: the one named, else the only one that is connected. */
export function logNode(services: Pick<NodeServices, "connections" | "nodes">, nodeId: string | undefined): Result<string> {
  if (nodeId !== undefined) {
    if (services.connections.isOnline(nodeId)) return succeed(nodeId);
    return services.nodes.exists(nodeId) ? fail("node.offline", `The machine ${nodeId} is not connected.`) : fail("node.unknown");
  }
  const [only, ...others] = services.connections.nodes();
  if (only === undefined) return fail("node.offline", "No machine is connected.", "Start a node: `gsv node`.");
  return others.length === 0
    ? succeed(only.principal.id)
    : fail("node.unknown", "Several machines are connected.", "Name one of them with `nodeId`.");
}

const logsGet: NodeHandler<"logs.get"> = (services, { connection, requestId }, { nodeId, lines }) => {
  const node = logNode(services, nodeId);
  if (!node.ok) return node;
  const started = services.calls.start({
    kind: "logs",
    conn: connection.conn,
    request: requestId,
    token: connection.principal.tokenId,
    node: node.value,
    tool: "logs",
    args: lines === undefined ? {} : { lines },
    name: undefined,
    repeatable: true,
    timeoutMs: LOGS_TIMEOUT_MS,
  });
  return started.ok ? LATER : started;
};

const logsResult: NodeHandler<"logs.result"> = (services, { connection }, params) =>
  succeed(services.calls.logsResult(connection.principal.id, params) ? { ok: true } : { ok: true, dropped: true });

export const nodeMethods = {
  "nodes.list": list,
  "node.forget": forget,
  "node.exec.event": execEvent,
  "logs.get": logsGet,
  "logs.result": logsResult,
} as const satisfies NodeHandlers;
