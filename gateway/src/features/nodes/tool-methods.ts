/** `tools.list` and `tool.*`: what can be called, calls that clients make themselves, and what machines report of calls. */
import { asCallId, asNodeId } from "../../../../protocol/gen/types.ts";
import type { Result } from "../../ports/result.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import { clientCallId, isClientCallName, ownerOf } from "../../kernel/routing/call-ids.ts";
import type { ToolEntry } from "../../ports/tool-entry.ts";
import { callTimes } from "../../tools/call-times.ts";
import { machineOf, NATIVE_PREFIX, ToolRegistry } from "../../tools/registry.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import { type Caller, LATER } from "../../kernel/feature.ts";
import type { NodeHandler, NodeHandlers, NodeServices } from "./handlers.ts";

/** What a client can call now: native tools and the tools of connected machines. */
const registryOf = ({ native, nodeLinks }: NodeServices): ToolRegistry => new ToolRegistry(native.entries, nodeLinks.tools());

const list: NodeHandler<"tools.list"> = (services, { connection: { principal } }) => {
  const { entries } = registryOf(services);
  const shown =
    principal.mode === "node" ? entries.filter(({ target }) => target.kind === "node" && target.nodeId === principal.id) : entries;
  return succeed({ tools: shown.map(({ definition }) => definition) });
};

/** By the exact full name. */
function find(services: NodeServices, name: string): Result<ToolEntry> {
  const entry = registryOf(services).find(name);
  if (entry !== undefined) return succeed(entry);
  const nodes = services.nodes.list((nodeId) => services.nodeLinks.isExpected(nodeId));
  const node = machineOf(name, nodes);
  if (node !== undefined && !node.online) return fail("node.offline", `The machine ${node.nodeId} is not connected.`);
  if (node !== undefined) return fail("tool.unknown", `The machine ${node.nodeId} has no such tool.`);
  if (name.startsWith(NATIVE_PREFIX)) return fail("tool.unknown", "The gateway has no such tool.");
  return fail("tool.unknown", "There is no such tool.", "A tool is named machine__Tool or gsv__Tool. List the tools: `gsv tools list`.");
}

const invoke: NodeHandler<"tool.invoke"> = async (services, caller, params) => {
  if (params.callId !== undefined && !isClientCallName(params.callId))
    return fail(
      "protocol.invalid_params",
      "callId is a name of your own: 1 to 64 letters, digits, `_`, `.` or `-`, beginning with a letter or digit.",
    );
  const found = find(services, params.tool);
  if (!found.ok) return found;
  const entry = found.value;
  const { target, definition } = entry;
  const args = params.args ?? {};
  if (target.kind === "native") return runNative(services, caller, params.tool, args, params.callId);
  await services.nodeLinks.arrival(target.nodeId);
  const { timeoutMs } = callTimes(entry, args, { wantedMs: params.timeoutMs, configuredMs: services.config.effective().timeouts.toolMs });
  const { connection, requestId } = caller;
  const started = services.calls.start({
    kind: "tool",
    conn: connection.conn,
    request: requestId,
    token: connection.principal.tokenId,
    node: target.nodeId,
    tool: entry.tool,
    args,
    name: params.callId,
    repeatable: definition.idempotent === true,
    timeoutMs,
  });
  return started.ok ? LATER : started;
};

/** The gateway's own tools run for a client as they do in the default agent's main conversation. */
async function runNative(
  services: NodeServices,
  { connection, now }: Caller,
  tool: string,
  args: Readonly<Record<string, unknown>>,
  name: string | undefined,
): Promise<Result<{ result?: unknown; callId: ReturnType<typeof asCallId> }>> {
  const callId = clientCallId(connection.principal.tokenId, name, services.ids.name(16));
  const agentId = services.config.defaultAgentId();
  const main = canonicalKey(`agent:${agentId}:main`, services.config.mainKey());
  if (!main.ok) return fail("internal");
  const identity = services.sessions.lookUp(main, "gw");
  const ran = await services.native.run(tool, args, {
    identity,
    callId,
    now,
    userTimezone: services.config.effective().userTimezone,
    gateway: services.port,
  });
  return ran.ok ? succeed({ ...(ran.result === undefined ? {} : { result: ran.result }), callId: asCallId(name ?? callId) }) : ran;
}

/** Legacy: the call is sent and nobody waits for its end. */
const request: NodeHandler<"tool.request"> = (services, { connection, requestId }, params) => {
  if (!isClientCallName(params.callId))
    return fail(
      "protocol.invalid_params",
      "callId is a name of your own: 1 to 64 letters, digits, `_`, `.` or `-`, beginning with a letter or digit.",
    );
  const key = canonicalKey(params.sessionKey, services.config.mainKey(), services.config.defaultAgentId());
  if (!key.ok) return fail("session.bad_key", `This is not a session key: ${key.problem}.`);
  const found = find(services, params.tool);
  if (!found.ok) return found;
  const entry = found.value;
  const { target, definition } = entry;
  if (target.kind === "native")
    return fail("tool.unknown", "Only a machine's tool can be requested.", "Call the gateway's own tools with tool.invoke.");
  const { timeoutMs } = callTimes(entry, params.args, { configuredMs: services.config.effective().timeouts.toolMs });
  const started = services.calls.start({
    kind: "request",
    conn: connection.conn,
    request: requestId,
    token: connection.principal.tokenId,
    node: target.nodeId,
    tool: entry.tool,
    args: params.args,
    name: params.callId,
    repeatable: definition.idempotent === true,
    timeoutMs,
    sessionKey: key.key,
  });
  return started.ok ? succeed({ status: "sent" }) : started;
};

const result: NodeHandler<"tool.result"> = async (services, { connection }, params) => {
  const owner = ownerOf(params.callId);
  if (owner === undefined) return succeed({ ok: true, dropped: true });
  const known =
    owner.kind === "gateway"
      ? services.calls.result(connection.principal.id, params)
      : await services.nodeLinks.result(connection, owner.ref, params);
  return succeed(known ? { ok: true } : { ok: true, dropped: true });
};

const progress: NodeHandler<"tool.progress"> = (services, { connection }, params) => {
  const { callId, phase, chunk } = params;
  const nodeId = asNodeId(connection.principal.id);
  const news = { callId, nodeId, phase, ...(chunk === undefined ? {} : { chunk }) };
  const owner = ownerOf(callId);
  if (owner?.kind === "gateway") {
    const conn = services.calls.waiter(nodeId, callId);
    const waiter = conn === undefined ? undefined : services.connections.byConn(conn);
    if (waiter !== undefined) services.connections.event(waiter, "tool.progress", news);
  }
  // Only of a call that was sent to this very machine: a node can't speak of another's.
  if (owner?.kind === "session" && connection.calls.has(callId)) {
    const sessionKey = services.sessions.keyOf(owner.ref);
    if (sessionKey !== undefined) services.connections.publish(sessionKey, [{ event: "tool.progress", payload: { ...news, sessionKey } }]);
  }
  return succeed({ ok: true });
};

export const toolMethods = {
  "tools.list": list,
  "tool.invoke": invoke,
  "tool.request": request,
  "tool.result": result,
  "tool.progress": progress,
} as const satisfies NodeHandlers;
