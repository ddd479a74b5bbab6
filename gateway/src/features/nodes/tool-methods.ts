/** `tools.list` and `tool.*`: the tools, the calls that clients make, and the machines' reports about calls. */
import { ERRORS } from "../../../../protocol/gen/errors.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asCallId, asNodeId, type CallId, type ToolProgressEvent, type ToolResultParams } from "../../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../../protocol/runtime/json-object.ts";
import { missingText } from "../../calls/offered-arguments.ts";
import { hideIn } from "../../calls/secrets.ts";
import type { Connection } from "../../kernel/connections.ts";
import { type Handlers, type FrameRules, LATER } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { isClientCallName, ownerOf } from "../../kernel/routing/call-ids.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import type { ChangesPort } from "../../ports/changes.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import { decide, POLICY_ERROR, unanswered } from "../../policy/decide.ts";
import { Policies } from "../../policy/load.ts";
import type { NativeTools } from "../../ports/native-tools.ts";
import { type Failure, type Result, succeed } from "../../ports/result.ts";
import type { SessionDirectory } from "../../ports/sessions.ts";
import type { ToolEntry } from "../../ports/tool-entry.ts";
import { runningProcess } from "../../calls/processes.ts";
import { callTimes } from "../../tools/call-times.ts";
import { machineOf, NATIVE_PREFIX, ToolRegistry } from "../../tools/registry.ts";
import { nativeAnswer, toolAnswer } from "./call-answers.ts";
import type { ClientCall, Waiter } from "./call-store.ts";
import { type AskedCall, type ClientCalls, STOP_REASON, STOPPED } from "./client-calls.ts";
import type { ClientCommands } from "./client-command-store.ts";
import type { CallEvent, NodeDispatch } from "./dispatch.ts";
import type { NodeLinks } from "./links.ts";
import { LiveOutput } from "./live-output.ts";
import type { Nodes } from "./store.ts";
import type { SessionCalls } from "./session-calls.ts";

export interface ToolMethodPorts extends ChangesPort, Pick<KernelPorts, "config" | "connections" | "subscriptions"> {
  readonly nodes: Nodes;
  readonly links: NodeLinks;
  readonly calls: ClientCalls;
  readonly commands: Pick<ClientCommands, "started" | "reported">;
  readonly dispatch: Pick<NodeDispatch, "cancel">;
  readonly stopped: () => unknown;
  readonly sessionCalls: SessionCalls;
  /** A text without stored secrets and tokens. */
  readonly hide: (text: string) => string;
  /** A text without stored secrets. */
  readonly scrub: (text: string) => string;
  /** Where the beginning of a stored secret starts at the end of a text. */
  readonly unfinished: (text: string) => number;
  readonly sessions: SessionDirectory;
  readonly native: NativeTools;
  /** The gateway as native tools see it. */
  readonly port: GatewayPort;
}
/** A result that is too large even to be read, or not valid, ends its call all the same (F31): the node will not send another one. */
export const TOOL_FRAME_RULES: FrameRules = {
  "tool.result": {
    maxBytes: LIMITS.nodeResultBytes,
    instead(peek) {
      const callId = peek(["params", "callId"]);
      return callId === undefined ? undefined : tooLarge(callId);
    },
    insteadOfInvalid: (params, problem) => {
      const callId = isJsonObject(params) ? params["callId"] : undefined;
      if (typeof callId !== "string") return undefined;
      const error = `The machine sent a result that is not valid: ${problem} ${ERRORS["tool.outcome_unknown"].hint}`;
      return { callId: asCallId(callId), outcome: "unknown", reason: "tool.outcome_unknown", error } satisfies ToolResultParams;
    },
  },
};
const tooLarge = (callId: string): ToolResultParams => ({
  callId: asCallId(callId),
  outcome: "error",
  reason: "tool.too_large",
  error: `The result is too large, or its values are nested too deeply. ${ERRORS["tool.too_large"].hint}`,
});
/** What a report weighs without the bytes of its images, roughly. */
const textBytes = (value: unknown): number => {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 4;
  const isImage = Reflect.get(value, "type") === "image";
  return Object.entries(value).reduce((sum, [name, item]) => sum + name.length + 4 + (isImage && name === "data" ? 0 : textBytes(item)), 2);
};

/** What a machine reports about a call may show a secret that a command has read. */
const withoutSecrets = ({ result, error, ...report }: ToolResultParams, hide: (text: string) => string): ToolResultParams => ({
  ...report,
  ...(result === undefined ? {} : { result: hideIn(result, hide) }),
  ...(error === undefined ? {} : { error: hide(error) }),
});
/** As much as one event takes. */
const CHUNK_CHARS = 65_536;
/** Native tools end with the gateway's instance. One that only reads may simply be called again. */
const isNativeRead = ({ definition, target, policyClass }: ToolEntry): boolean =>
  target.kind === "native" && definition.idempotent === true && (policyClass === "read_private" || policyClass === "read_public");
type Started = Result<{ readonly callId: string }>;
type Arguments = Readonly<Record<string, unknown>>;

const BAD_NAME: Failure = fail(
  "protocol.invalid_params",
  "callId is a name of your own: 1 to 64 letters, digits, `_`, `.` or `-`, beginning with a letter or digit.",
);
const toolEvent =
  ({ tool }: ToolEntry, args: Arguments, timeoutMs: number, sessionKey?: string) =>
  (callId: string): CallEvent => ({
    event: "tool.invoke",
    payload: { callId: asCallId(callId), tool, args: { ...args }, timeoutMs, ...(sessionKey === undefined ? {} : { sessionKey }) },
  });

export function toolMethods(ports: ToolMethodPorts): Handlers {
  const { config, changes, commands, connections, dispatch, subscriptions, links, calls, sessionCalls, hide, sessions, native, port } =
    ports;
  /** What a client can call: native tools and the tools of connected and returning machines. */
  const callable = (): ToolRegistry => new ToolRegistry(native.entries, links.callable());

  /** By the exact full name. */
  const find = (name: string): Result<ToolEntry> => {
    const entry = callable().find(name);
    if (entry !== undefined) return succeed(entry);
    const node = machineOf(name, links.known());
    if (node !== undefined && !node.online) return fail("node.offline", `The machine ${node.nodeId} is not connected.`);
    if (node !== undefined) return fail("tool.unknown", `The machine ${node.nodeId} has no such tool.`);
    if (name.startsWith(NATIVE_PREFIX)) return fail("tool.unknown", "The gateway has no such tool.");
    return fail("tool.unknown", "There is no such tool.", "A tool is named machine__Tool or gsv__Tool. List the tools: `gsv tools list`.");
  };

  const policies = new Policies();
  /** The denial of a client's call. A client has no conversation, so the configured mode decides. */
  const denial = async (
    { definition: { name, inputSchema }, tool, target, policyClass }: ToolEntry,
    args: Arguments,
  ): Promise<Failure | undefined> => {
    const policy = await policies.of(config.effective().toolApproval);
    const sandbox = target.kind === "node" ? ports.nodes.sandboxOf(target.nodeId) : undefined;
    const decision = decide({ name, tool, target, policyClass, args, sandbox }, { policy, isOwners: true });
    if (decision.verdict === "allow") return undefined;
    // Else the question would be about a call that no machine makes.
    const missing = decision.verdict === "ask" ? missingText(name, inputSchema, args) : undefined;
    if (missing !== undefined) return fail("tool.bad_args", missing);
    const { rule, text } = decision.verdict === "ask" ? unanswered(decision) : decision;
    return fail(rule === POLICY_ERROR ? "policy.error" : "policy.denied", text);
  };

  const asked = (
    entry: ToolEntry,
    { principal }: Connection,
    args: Arguments,
    more: { readonly ownName: string | undefined; readonly waiter: Waiter; readonly wantedMs?: number | undefined },
  ): AskedCall => {
    const { definition, target, ledger } = entry;
    const { ownName, waiter, wantedMs } = more;
    return {
      ...(isNativeRead(entry) ? { readsOnly: true } : {}),
      kind: "tool",
      origin: { kind: "client", clientId: principal.id, tokenId: principal.tokenId },
      ownName,
      waiter,
      name: definition.name,
      target,
      ledger,
      idempotent: definition.idempotent === true,
      ...callTimes(entry, args, { wantedMs, configuredMs: config.effective().timeouts.toolMs }),
    };
  };

  /** In one commit with the call's own row. */
  const recorded = ({ target, tool }: ToolEntry, started: Started, at: number): Started => {
    if (started.ok && target.kind === "node") changes.called({ callId: started.value.callId, nodeId: target.nodeId, tool, at });
    return started;
  };

  /** A native tool runs for a client as in the main session of the default agent. */
  const runNative = (call: AskedCall, args: Arguments, now: number): Promise<Result<unknown>> => {
    const main = canonicalKey(`agent:${config.defaultAgentId()}:main`, config.mainKey());
    if (!main.ok) return Promise.resolve(fail("internal"));
    const { userTimezone } = config.effective();
    const identity = sessions.lookUp(main, "gw");
    return calls.run(call, async (record) => {
      const { callId } = record.call;
      return nativeAnswer(record, await native.run(call.name, args, { identity, callId, now, userTimezone, gateway: port }));
    });
  };

  const live = new LiveOutput(ports);
  /** Live output for those who follow the call. */
  const tell = (connection: Connection, news: Omit<ToolProgressEvent, "sessionKey">): void => {
    const { callId } = news;
    const owner = ownerOf(callId);
    if (owner?.kind === "gateway") {
      const conn = calls.waitingConnection(asNodeId(connection.principal.id), callId);
      const waiter = conn === undefined ? undefined : connections.byConn(conn);
      if (waiter !== undefined) connections.event(waiter, "tool.progress", news);
    }
    // A machine may report only about calls that were handed to it.
    if (owner?.kind === "session" && connection.calls.has(callId)) {
      const sessionKey = sessions.keyOf(owner.ref);
      if (sessionKey !== undefined) subscriptions.publish(sessionKey, [{ event: "tool.progress", payload: { ...news, sessionKey } }]);
    }
  };
  const tellOutput = (connection: Connection, callId: CallId, text: string): void => {
    const nodeId = asNodeId(connection.principal.id);
    for (let from = 0; from < text.length; from += CHUNK_CHARS)
      tell(connection, { callId, nodeId, phase: "output", chunk: text.slice(from, from + CHUNK_CHARS) });
  };

  return {
    "tools.list": ({ connection: { principal } }) => {
      const { entries } = new ToolRegistry(native.entries, links.tools());
      const isOwn = ({ target }: ToolEntry): boolean => target.kind === "node" && target.nodeId === principal.id;
      const shown = principal.mode === "node" ? entries.filter(isOwn) : entries;
      return succeed({ tools: shown.map(({ definition }) => definition) });
    },

    "tool.invoke": async ({ connection, requestId, now }, { tool, args = {}, callId, timeoutMs }) => {
      if (callId !== undefined && !isClientCallName(callId)) return BAD_NAME;
      const found = find(tool);
      if (!found.ok) return found;
      const entry = found.value;
      const denied = await denial(entry, args);
      if (denied !== undefined) return denied;
      // A stop refuses reads of public pages, but no tool that only reads inside GSV.
      if (entry.policyClass === "read_public" && ports.stopped() !== undefined) return STOPPED;
      const waiter: Waiter = { kind: "client", conn: connection.conn, request: requestId };
      const call = asked(entry, connection, args, { ownName: callId, waiter, wantedMs: timeoutMs });
      if (entry.target.kind === "native") return (await runNative(call, args, now)) as Result<{ result?: unknown }>;
      await links.arrival(entry.target.nodeId);
      const started = recorded(entry, calls.start(call, toolEvent(entry, args, call.timeoutMs)), now);
      return started.ok ? LATER : started;
    },

    /** The call is handed over, and its result is not passed on. Kept for older clients. */
    "tool.request": async ({ connection, now }, { tool, args, callId, sessionKey }) => {
      if (!isClientCallName(callId)) return BAD_NAME;
      const key = canonicalKey(sessionKey, config.mainKey(), config.defaultAgentId());
      if (!key.ok) return fail("session.bad_key", `This is not the key of a conversation: ${key.problem}.`);
      const found = find(tool);
      if (!found.ok) return found;
      const entry = found.value;
      if (entry.target.kind === "native")
        return fail("tool.unknown", "Only a machine's tool can be requested.", "Call the gateway's own tools with tool.invoke.");
      const denied = await denial(entry, args);
      if (denied !== undefined) return denied;
      const call = asked(entry, connection, args, { ownName: callId, waiter: { kind: "none" } });
      await links.arrival(entry.target.nodeId);
      const started = recorded(entry, calls.start(call, toolEvent(entry, args, call.timeoutMs, key.key)), now);
      return started.ok ? succeed({ status: "sent" }) : started;
    },

    "tool.result": async ({ connection, now }, reported) => {
      const { principal } = connection;
      tellOutput(connection, reported.callId, live.end(reported.callId));
      const params = withoutSecrets(textBytes(reported) > LIMITS.frameBytes ? tooLarge(reported.callId) : reported, hide);
      const owner = ownerOf(params.callId);
      const processId = params.outcome === "ok" ? runningProcess(params.result) : undefined;
      if (owner?.kind === "gateway" && commands.reported(principal.id, params.callId, processId))
        dispatch.cancel(principal.id, [params.callId], STOP_REASON);
      const answer = (record: ClientCall): Result<unknown> => {
        if (processId !== undefined) commands.started(principal.id, params.callId, processId, now);
        return toolAnswer(record, params);
      };
      const isKnown =
        owner?.kind === "session"
          ? await sessionCalls.result(principal.id, owner.ref, params)
          : calls.report(principal.id, params.callId, "tool", answer);
      return succeed(isKnown ? { ok: true } : { ok: true, dropped: true });
    },

    "tool.progress": ({ connection }, { callId, phase, chunk }) => {
      const nodeId = asNodeId(connection.principal.id);
      if (chunk === undefined) tell(connection, { callId, nodeId, phase });
      else tellOutput(connection, callId, live.next(callId, chunk));
      return succeed({ ok: true });
    },
  };
}
