/** `tools.list` and `tool.*`: what can be called, calls that clients make themselves, and what machines report of calls. */
import { asCallId, asNodeId, type ToolDefinition } from "../../../../protocol/gen/types.ts";
import type { Result } from "../../ports/result.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import { clientCallId, isClientCallName, ownerOf } from "../../kernel/routing/call-ids.ts";
import { callTimes } from "../../kernel/routing/call-times.ts";
import { NATIVE, qualifiedName } from "../../kernel/routing/tool-names.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import { type Caller, LATER } from "../../kernel/feature.ts";
import type { NodeHandler, NodeHandlers, NodeServices } from "./handlers.ts";

const list: NodeHandler<"tools.list"> = (services, { connection: { principal } }) => {
  if (principal.mode === "node") {
    const own = services.nodeLinks.bindings().filter((binding) => binding.nodeId === principal.id);
    return succeed({ tools: own.map((binding) => binding.definition) });
  }
  const tools = [...services.native.definitions, ...services.nodeLinks.bindings().map((binding) => binding.definition)];
  return succeed({ tools: tools.sort((left, right) => (left.name < right.name ? -1 : left.name > right.name ? 1 : 0)) });
};

interface Target {
  readonly node: string;
  readonly definition: ToolDefinition;
}

function nativeDefinition(services: NodeServices, tool: string): ToolDefinition | undefined {
  return services.native.definitions.find((definition) => definition.name === qualifiedName(NATIVE, tool));
}

/** A connected machine's tool by its full name. */
function onNode(services: NodeServices, name: string): Result<Target> | "native" {
  // Not all of the gateway's own tools carry its prefix.
  if (services.native.definitions.some((definition) => definition.name === name)) return "native";
  const address = services.nodeLinks.find(name, (owner, tool) => owner === NATIVE && nativeDefinition(services, tool) !== undefined);
  if (address === undefined)
    return fail("tool.unknown", "There is no such tool.", "A tool is named machine__Tool or gsv__Tool. List the tools: `gsv tools list`.");
  if (address.owner === NATIVE)
    return nativeDefinition(services, address.tool) === undefined ? fail("tool.unknown", "The gateway has no such tool.") : "native";
  if (!services.nodeLinks.isExpected(address.owner)) return fail("node.offline", `The machine ${address.owner} is not connected.`);
  const definition = services.nodes.offer(address.owner)?.tools.find((tool) => tool.name === address.tool);
  return definition === undefined
    ? fail("tool.unknown", `The machine ${address.owner} has no such tool.`)
    : succeed({ node: address.owner, definition });
}

const invoke: NodeHandler<"tool.invoke"> = async (services, caller, params) => {
  if (params.callId !== undefined && !isClientCallName(params.callId))
    return fail(
      "protocol.invalid_params",
      "callId is a name of your own: 1 to 64 letters, digits, `_`, `.` or `-`, beginning with a letter or digit.",
    );
  const target = onNode(services, params.tool);
  const args = params.args ?? {};
  if (target === "native") return runNative(services, caller, params.tool, args, params.callId);
  if (!target.ok) return target;
  const { node, definition } = target.value;
  await services.nodeLinks.arrival(node);
  const { timeoutMs } = callTimes(definition, args, params.timeoutMs, services.config.effective().timeouts.toolMs);
  const { connection, requestId } = caller;
  const started = services.calls.start({
    kind: "tool",
    conn: connection.conn,
    request: requestId,
    token: connection.principal.tokenId,
    node,
    tool: definition.name,
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
  const target = onNode(services, params.tool);
  if (target === "native")
    return fail("tool.unknown", "Only a machine's tool can be requested.", "Call the gateway's own tools with tool.invoke.");
  if (!target.ok) return target;
  const { node, definition } = target.value;
  const { timeoutMs } = callTimes(definition, params.args, undefined, services.config.effective().timeouts.toolMs);
  const started = services.calls.start({
    kind: "request",
    conn: connection.conn,
    request: requestId,
    token: connection.principal.tokenId,
    node,
    tool: definition.name,
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
