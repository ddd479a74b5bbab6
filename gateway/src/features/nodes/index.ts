/** Machines (nodes): which are known and connected, their tools, and calls that clients make to them. A session's own calls are the session's. */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import type { DispatchOutcome, ToolDispatch } from "../../ports/dispatch.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import type { NativeTools } from "../../ports/native-tools.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { Result } from "../../ports/result.ts";
import type { NamedSession, SessionsPort } from "../../ports/sessions.ts";
import { isOpenedFor, machinesFor } from "../../tools/guest-tools.ts";
import { machineToolName, type ToolAccess } from "../../tools/registry.ts";
import { ClientCalls } from "./client-calls.ts";
import { bindHandlers, type NodeServices } from "./handlers.ts";
import { NodeLinks } from "./links.ts";
import { NODE_HISTORY } from "./migrations.ts";
import { logNode, nodeMethods } from "./node-methods.ts";
import { PendingCalls } from "./pending-call-store.ts";
import { nodeProblem, Nodes } from "./store.ts";
import { toolMethods } from "./tool-methods.ts";
import { NODE_TOOLS } from "./tools.ts";

export interface NodePorts
  extends SessionsPort,
    Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "connections" | "database" | "ids" | "now"> {
  readonly native: NativeTools;
  /** The gateway as native tools see it. */
  readonly port: GatewayPort;
  readonly after: (ms: number, work: () => void) => void;
}
/** What sessions may call. */
export interface NodesRpc {
  dispatch(call: ToolDispatch): Promise<DispatchOutcome>;
  cancel(nodeId: string, callIds: readonly string[], reason: string): void;
  logs(nodeId: string | undefined, lines: number | undefined): Promise<Result<unknown>>;
}

/** Machines that were connected when the gateway stopped have this long to come back before they count as gone. */
const RETURN_MS = 4000;
const RESTART_SETTLED_MS = 100;

export const nodesFeature: FeatureDefinition<NodePorts, NodesPort & { readonly nodesRpc: NodesRpc }> = {
  name: "nodes",
  history: NODE_HISTORY,
  tools: NODE_TOOLS,
  create(ports) {
    const { arm, background, config, connections, database, ids, now, sessions, ask } = ports;
    const nodes = new Nodes(database);
    const calls = new ClientCalls({ pending: new PendingCalls(database), connections, now, arm, freshName: ids.name });
    const nodeLinks = new NodeLinks({ connections, nodes, sessions, calls: () => calls, ask, now, background, arm });
    const services: NodeServices = { ...ports, nodes, nodeLinks, calls };
    /** What a session may use of machines. Invalid session keys get no tools. */
    const access = (named: NamedSession | undefined): ToolAccess =>
      named === undefined
        ? { isOwners: false, isOpened: () => false }
        : { isOwners: sessions.isOwners(named), isOpened: isOpenedFor(named.address, config.effective().channels) };
    const known = () => nodes.list((nodeId) => nodeLinks.isExpected(nodeId));
    if (nodeLinks.returning().length > 0) {
      // A link that breaks while the object sleeps wakes it too, and explains itself in the event that follows.
      ports.after(RESTART_SETTLED_MS, () => nodeLinks.tellRestart());
      ports.after(RETURN_MS, () => nodeLinks.giveUpReturning());
    }
    return {
      offers: {
        nodes: { list: known },
        nodesRpc: {
          /** Checked again here, whatever the run was shown and however long ago: the present configuration decides. */
          async dispatch(call) {
            const named = canonicalKey(call.sessionKey, config.mainKey(), config.defaultAgentId());
            const { isOwners, isOpened } = access(named.ok ? named : undefined);
            const tool = machineToolName(call.nodeId, call.tool);
            if (isOwners || isOpened(tool)) return nodeLinks.dispatch(call);
            await ports.audit.append({ actor: `session:${call.sessionKey}`, action: "tool.dispatch", target: tool, decision: "denied" });
            return "refused";
          },
          cancel: (nodeId, callIds, reason) => nodeLinks.cancel(nodeId, callIds, reason),
          async logs(nodeId, lines) {
            const node = logNode(services, nodeId);
            return node.ok ? calls.logs(node.value, lines, "session") : node;
          },
        },
      },
      methods: { ...bindHandlers(services, nodeMethods), ...bindHandlers(services, toolMethods) },
      alarms: [
        { name: "client_calls", next: () => calls.nextDeadline(), run: (at) => calls.expire(at) },
        { name: "node_liveness", next: () => nodeLinks.nextLivenessCheck(), run: (at) => nodeLinks.checkLiveness(at) },
      ],
      runContext({ named }) {
        return machinesFor(access(named), { tools: nodeLinks.tools(), nodes: known() });
      },
      // A node that connects, leaves or returns has another connection; nothing else changes what it offers.
      contextVersion() {
        const online = connections.nodes().map((node) => node.conn);
        return `${nodes.version()}/${online.sort().join(",")}/${nodeLinks.returning().join(",")}`;
      },
      connectProblem: ({ mode, id }, { tools, nodeRuntime }) => (mode === "node" ? nodeProblem(id, tools ?? [], nodeRuntime) : undefined),
      connected(connection, { client, tools, nodeRuntime, ledger }, replaced) {
        const { mode, id } = connection.principal;
        if (mode !== "node") return;
        const waiting = new Set([...nodes.waiting(id), ...(replaced === undefined ? [] : nodeLinks.refsOf(replaced))]);
        nodes.connected(client, tools ?? [], nodeRuntime, ledger !== undefined, now());
        nodeLinks.came(connection, ledger?.calls, [...waiting]);
      },
      gone(connection, reason) {
        if (connection.principal.mode === "node") nodeLinks.went(connection, reason);
      },
    };
  },
};
