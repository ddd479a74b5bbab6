/** Machines (nodes): which are known and connected, their tools, and the calls that clients make. A session keeps the records of its own calls. */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { buildKey, canonicalKey } from "../../kernel/routing/session-keys.ts";
import type { ChangesPort } from "../../ports/changes.ts";
import type { DispatchOutcome, ToolDispatch } from "../../ports/dispatch.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import type { NativeTools } from "../../ports/native-tools.ts";
import type { NodeLooksPort, NodesPort, NodeUndoPort } from "../../ports/nodes.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { Result } from "../../ports/result.ts";
import type { NamedSession, SessionsPort, StopListenerPort, StopPort } from "../../ports/sessions.ts";
import type { WaitAnswer, WaitReport } from "../../ports/waits.ts";
import { isOpenedFor, machinesFor } from "../../tools/guest-tools.ts";
import { hideTokens } from "../../calls/secrets.ts";
import { runningProcess } from "../../calls/processes.ts";
import type { ToolAccess } from "../../tools/registry.ts";
import { ClientCalls, STOP_REASON } from "./client-calls.ts";
import { ClientCommands } from "./client-command-store.ts";
import { CallStore } from "./call-store.ts";
import { NodeDispatch } from "./dispatch.ts";
import { NodeLinks } from "./links.ts";
import { logMethods, NodeLogs } from "./logs.ts";
import { NODE_HISTORY, NODE_MIGRATIONS } from "./migrations.ts";
import { nodeMethods } from "./node-methods.ts";
import { Nodes, offerProblem } from "./store.ts";
import { ProcessStore } from "./process-store.ts";
import { nextSilence, tellSilence } from "./silence.ts";
import { SessionCalls } from "./session-calls.ts";
import { TOOL_FRAME_RULES, toolMethods } from "./tool-methods.ts";
import { NODE_TOOLS } from "./tools.ts";
import { NodeUndos, undoMethods } from "./undo.ts";
import { WaitStore } from "./wait-store.ts";
import { NodeWaits } from "./waits.ts";

export interface NodePorts
  extends SessionsPort,
    StopPort,
    StopListenerPort,
    ChangesPort,
    NotifyPort,
    Pick<
      KernelPorts,
      | "arm"
      | "armFor"
      | "audit"
      | "background"
      | "config"
      | "connections"
      | "contextVersion"
      | "database"
      | "ids"
      | "now"
      | "scrub"
      | "subscriptions"
      | "unfinished"
    > {
  readonly native: NativeTools;
  /** The gateway as native tools see it. */
  readonly port: GatewayPort;
  readonly after: (ms: number, work: () => void) => void;
}
/** What sessions may call. */
export interface NodesRpc {
  dispatch(call: ToolDispatch): Promise<DispatchOutcome>;
  awaitNodes(report: WaitReport): Promise<WaitAnswer>;
  cancel(nodeId: string, callIds: readonly string[], reason: string): void;
  logs(nodeId: string | undefined, lines: number | undefined): Promise<Result<unknown>>;
}

/** Machines that were connected when the gateway stopped have this long to come back before they count as gone. */
const RETURN_MS = 6000;
const RESTART_SETTLED_MS = 100;
/** A node without a ledger may begin to listen for calls only after hello-ok: until then calls wait for it. */
const LISTENING_MS = 300;

export const nodesFeature: FeatureDefinition<NodePorts, NodesPort & NodeUndoPort & NodeLooksPort & { readonly nodesRpc: NodesRpc }> = {
  name: "nodes",
  history: NODE_HISTORY,
  migrations: NODE_MIGRATIONS,
  tools: NODE_TOOLS,
  create(ports) {
    const { arm, armFor, background, config, connections, database, ids, now, sessions, ask } = ports;
    const nodes = new Nodes(database);
    const hide = (text: string): string => hideTokens(ports.scrub(text));
    const silence = { nodes, notify: ports.notify, timeZone: () => config.effective().userTimezone };
    const processes = new ProcessStore(database);
    const isStopped = (): boolean => ports.stopped() !== undefined;
    const dispatch = new NodeDispatch({ connections, now, armFor, isStopped });
    const commands = new ClientCommands(database);
    const store = new CallStore(database);
    const calls = new ClientCalls({ store, dispatch, connections, now, arm, armFor, freshName: ids.name, commands, isStopped });
    ports.onStop(() => calls.stopAll());
    const waitStore = new WaitStore(database);
    const links = new NodeLinks({ connections, nodes, sessions, calls, dispatch, ask, now, background, waits: waitStore });
    const waits = new NodeWaits({
      store: waitStore,
      now,
      isOnline: (nodeId) => connections.isOnline(nodeId),
      exists: (nodeId) => nodes.exists(nodeId),
      refOf: (sessionKey) => sessions.find(sessionKey)?.ref,
      arrival: (nodeId) => links.arrival(nodeId),
    });
    /** What a session may use of machines. Invalid session keys get no tools. */
    const access = (named: NamedSession | undefined): ToolAccess =>
      named === undefined
        ? { isOwners: false, isOpened: () => false }
        : { isOwners: sessions.isOwners(named), isOpened: isOpenedFor(named.address, config.effective().channels) };
    const named = (sessionKey: string): NamedSession | undefined => {
      const found = canonicalKey(sessionKey, config.mainKey(), config.defaultAgentId());
      return found.ok ? found : undefined;
    };
    const sessionCalls = new SessionCalls({
      dispatch,
      changes: ports.changes,
      now,
      sessions,
      ask,
      audit: ports.audit,
      background: ports.background,
      contextVersion: ports.contextVersion,
      sha256: ports.ids.sha256,
      access: (sessionKey) => access(named(sessionKey)),
      sandboxOf: (nodeId) => nodes.sandboxOf(nodeId),
      reported: (nodeId, ref, { result }) => {
        const processId = nodes.offer(nodeId)?.ledger === false ? runningProcess(result) : undefined;
        if (processId !== undefined) processes.started(nodeId, processId, ref, now());
      },
      arrival: (nodeId) => links.arrival(nodeId),
    });
    /** The definition that a run of the agent would get now. */
    const definitionOf = async (agentId: string) => {
      const main = buildKey({ form: "main", agentId }, config.mainKey());
      const context = main.ok ? await ports.port.runContext(main.key, undefined) : null;
      return context?.defined?.definition;
    };
    const logs = new NodeLogs({ calls, connections, nodes, arrival: (nodeId) => links.arrival(nodeId) });
    const undos = new NodeUndos({ calls, arrival: (nodeId) => links.arrival(nodeId) });
    if (links.returning().length > 0) {
      // The first event after a restart may be the end of a link: it comes before this and settles its machine.
      ports.after(RESTART_SETTLED_MS, () => links.tellRestart());
      ports.after(RETURN_MS, () => links.giveUpReturning());
    }
    return {
      offers: {
        nodes: { list: () => links.known(), tools: () => links.tools() },
        nodeUndo: { ask: (nodeId, request) => undos.ask(nodeId, request) },
        nodeLooks: {
          look: async (look) =>
            (await import("./command-look.lazy.ts")).lookByCommand(
              { ...ports, sha256: ids.sha256, nodes, links, calls, definitionOf },
              look,
            ),
        },
        nodesRpc: {
          dispatch: (call) => sessionCalls.dispatch(call),
          awaitNodes: (report) => waits.report(report),
          cancel: (nodeId, callIds, reason) => dispatch.cancel(nodeId, callIds, reason),
          logs: (nodeId, lines) => logs.read(nodeId, lines),
        },
      },
      methods: {
        ...nodeMethods({ connections, nodes, processes, commands, hide, links, sessions, ask, waits }),
        ...logMethods(logs, hide),
        ...undoMethods(calls),
        ...toolMethods({ ...ports, nodes, links, calls, commands, dispatch, sessionCalls, hide }),
      },
      frameRules: TOOL_FRAME_RULES,
      alarms: [
        { name: "client_calls", next: () => calls.nextDeadline(), run: (at) => calls.expire(at) },
        { name: "node_silence", next: () => nextSilence(silence), run: (at) => tellSilence(silence, at) },
        { name: "node_liveness", next: () => dispatch.nextLivenessCheck(), run: (at) => dispatch.checkLiveness(at) },
      ],
      runContext({ named }) {
        // A run that a restart interrupted keeps its tools; the prompt says which machines are not back.
        return machinesFor(access(named), { tools: links.callable(), nodes: links.known() });
      },
      // A node that connects, leaves or returns has another connection. One that is away is offered for some days.
      contextVersion() {
        const online = connections.nodes().map((node) => node.conn);
        return `${nodes.version()}/${online.sort().join(",")}/${links.returning().join(",")}/${links.away().join(",")}`;
      },
      sessionGone({ key }) {
        waitStore.forget(key);
      },
      connectProblem({ mode, id }, { tools, nodeRuntime }) {
        if (mode !== "node") return undefined;
        const message = offerProblem(tools ?? [], nodeRuntime);
        return nodes.nameProblem(id) ?? (message === undefined ? undefined : { message });
      },
      connected(connection, { client, tools, nodeRuntime, ledger }, replaced) {
        const { mode, id } = connection.principal;
        if (mode !== "node") return;
        if (replaced !== undefined) links.replaced(replaced);
        const waiting = new Set([...nodes.waiting(id), ...(replaced === undefined ? [] : links.refsOf(replaced))]);
        nodes.connected(client, tools ?? [], nodeRuntime, ledger !== undefined, now());
        links.came(connection, ledger?.calls, [...waiting]);
        dispatch.cancel(id, commands.toCancel(id, ledger?.calls), STOP_REASON);
        if (ledger === undefined) ports.after(LISTENING_MS, links.listensLater(id));
      },
      gone(connection, { kind, text }) {
        if (connection.principal.mode !== "node") return;
        links.went(connection, text);
        if (kind === "silent" && !connections.isOnline(connection.principal.id)) nodes.silent(connection.principal.id, now());
      },
    };
  },
};
