/** `nodes.list`, `node.forget`, `node.exec.event`: known machines, and the ends of their background processes. */
import { succeed } from "../../ports/result.ts";
import type { Connections } from "../../kernel/connections.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { fail } from "../../kernel/outcome.ts";
import { ownerOf } from "../../kernel/routing/call-ids.ts";
import type { SessionsPort } from "../../ports/sessions.ts";
import type { ClientCommands } from "./client-command-store.ts";
import type { NodeLinks } from "./links.ts";
import type { ProcessStore } from "./process-store.ts";
import type { Nodes } from "./store.ts";
import type { NodeWaits } from "./waits.ts";

export interface NodeMethodPorts extends SessionsPort {
  readonly connections: Connections;
  readonly nodes: Nodes;
  readonly processes: ProcessStore;
  readonly commands: Pick<ClientCommands, "ended">;
  /** A text without stored secrets and tokens. */
  readonly hide: (text: string) => string;
  readonly links: NodeLinks;
  readonly waits: NodeWaits;
}

export const nodeMethods = ({ connections, nodes, processes, commands, hide, links, sessions, ask, waits }: NodeMethodPorts): Handlers => ({
  "nodes.list": () => {
    const list = waits.shown(links.known());
    return succeed({ nodes: list, count: list.length });
  },
  "node.forget": (_caller, { nodeId, force }) => {
    const node = connections.byIdentity({ mode: "node", id: nodeId });
    if (node === undefined && !nodes.exists(nodeId)) return fail("node.unknown");
    if (node !== undefined && force !== true) return fail("node.online");
    const reason = "the node was forgotten";
    if (node !== undefined && connections.close(node.socket, 1000, reason) !== undefined) links.went(node, reason);
    const removed = nodes.forget(nodeId);
    links.forgotten(nodeId);
    return succeed({ ok: true, nodeId, removed, disconnected: node !== undefined });
  },
  "node.exec.event": async ({ connection, now }, params) => {
    const nodeId = connection.principal.id;
    if (params.event !== "started") commands.ended(nodeId, params.sessionId);
    const owner = params.callId === undefined ? undefined : ownerOf(params.callId);
    const named = owner?.kind === "session" ? owner.ref : undefined;
    const ref = params.callId === undefined ? processes.refOf(nodeId, params.sessionId) : named;
    const key = ref === undefined ? undefined : sessions.keyOf(ref);
    // A process that a client started has no session to wake.
    if (key === undefined) return succeed({ ok: true, dropped: true });
    const { outputTail, ...told } = params;
    const event = outputTail === undefined ? told : { ...told, outputTail: hide(outputTail) };
    const taken = await ask(key, (session) => session.execEvent(nodeId, event));
    if (taken === "early") return fail("session.busy", "The call that started this process has no result yet.", "Send the result first.");
    if (taken === "unknown") return succeed({ ok: true, dropped: true });
    // The event may have started a run, so the session counts as active.
    sessions.touch(key, now);
    if (params.event !== "started") processes.ended(nodeId, params.sessionId);
    return succeed({ ok: true });
  },
});
