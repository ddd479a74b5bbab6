/**
 * Machines coming and going, and calls on their way to them (gateway rules G2, G3). Tells the conversations that have calls out there,
 * and everyone who looks on. Decides nothing about a call: that is the session's, or `client-calls.ts`.
 */
import { asCallId, asNodeId, type LedgerCall, type ToolResultParams } from "../../../../protocol/gen/types.ts";
import type { DispatchOutcome, ToolDispatch } from "../../ports/dispatch.ts";
import type { ToolEntry } from "../../ports/tool-entry.ts";
import type { NodeChange } from "../../ports/session.ts";
import type { ClientCalls } from "./client-calls.ts";
import type { Connection, Connections } from "../../kernel/connections.ts";
import { MAX_WAITING, type Nodes } from "./store.ts";
import type { AskSession, SessionDirectory } from "../../ports/sessions.ts";
import { ownerOf } from "../../kernel/routing/call-ids.ts";
import { machineEntries, ToolRegistry } from "../../tools/registry.ts";
import { Returning } from "./returning.ts";

export interface NodeLinkPorts {
  readonly connections: Connections;
  readonly nodes: Nodes;
  readonly sessions: SessionDirectory;
  readonly calls: () => ClientCalls;
  readonly ask: AskSession;
  readonly now: () => number;
  readonly background: (what: string, work: Promise<unknown>) => void;
  /** A deadline may have come nearer. */
  readonly arm: () => void;
}

const ACTIVE_MS = 86_400_000;
const MAX_ACTIVE = 64;
const MAX_CANCELS = 512;
/** A call whose end was never reported is looked after for this much longer than it may take. */
const REMEMBERED_MS = 3_600_000;

export class NodeLinks {
  readonly #ports: NodeLinkPorts;
  readonly #returning: Returning;
  /** Machines of which the restart was told. */
  readonly #told = new Set<string>();

  constructor(ports: NodeLinkPorts) {
    this.#ports = ports;
    this.#returning = new Returning(ports.nodes.neverLeft().filter((nodeId) => !ports.connections.isOnline(nodeId)));
  }

  // ------------------------------------------------------------ after a restart

  /** Machines that were connected when the last life of the gateway ended, and are not back yet. */
  returning(): readonly string[] {
    return this.#returning.ids();
  }
  /** Connected, or about to be. */
  isExpected(nodeId: string): boolean {
    return this.#ports.connections.isOnline(nodeId) || this.#returning.has(nodeId);
  }
  /** Resolves when it is known whether a machine that is about to come back did. */
  arrival(nodeId: string): Promise<void> {
    return this.#returning.arrival(nodeId);
  }
  /**
   * What was sent to a machine without a ledger before the restart is of unknown outcome from now on, and only the session knows
   * whether there was anything: those that were active are told. A machine with a ledger tells itself.
   */
  tellRestart(): void {
    for (const nodeId of this.#returning.ids()) this.#tellBroken(nodeId);
  }
  #tellBroken(nodeId: string): void {
    if (this.#told.has(nodeId) || this.#ports.nodes.offer(nodeId)?.ledger !== false) return;
    this.#told.add(nodeId);
    this.#tellActive({ nodeId, online: false, reason: "the gateway was started again" }, new Set());
  }
  /** They have had their time. */
  giveUpReturning(): void {
    for (const nodeId of this.#returning.ids()) this.#left(nodeId, [], "did not come back after the gateway was started again");
  }

  /** The node has said hello. `replaced`: conversations with calls on the connection that this one took the place of. */
  came(node: Connection, ledger: readonly LedgerCall[] | undefined, waiting: readonly string[]): void {
    const nodeId = node.principal.id;
    if (this.#returning.has(nodeId) && ledger === undefined) {
      // However quick it was: the link did break, and what had been sent is of unknown outcome.
      this.#tellBroken(nodeId);
      this.#tellActive({ nodeId, online: true }, new Set(waiting));
    }
    this.#returning.settle(nodeId);
    const refs = new Set(waiting);
    for (const { callId } of ledger ?? []) {
      const owner = ownerOf(callId);
      if (owner?.kind === "session" && refs.size < MAX_WAITING) refs.add(owner.ref);
    }
    for (const ref of refs) {
      const calls = (ledger ?? []).filter(({ callId }) => callId.startsWith(`${ref}/`));
      // What the node still runs will end here: until then this conversation must hear of the link.
      for (const call of calls)
        if (call.state !== "finished" && call.state !== "lost")
          this.#ports.connections.callOut(node, call.callId, this.#ports.now() + REMEMBERED_MS);
      this.#tell(ref, {
        nodeId,
        online: true,
        ...(ledger === undefined ? {} : { calls: calls.map(({ callId, state }) => ({ callId, state })) }),
      });
    }
    this.#ports.calls().nodeCame(nodeId, ledger);
    this.#ports.connections.broadcast("presence", { nodeId: asNodeId(nodeId), online: true });
  }

  /** The node's link is gone, and no newer one has taken its place. */
  went(node: Connection, reason: string): void {
    const nodeId = node.principal.id;
    // Another connection has taken its place meanwhile, and said what there is to say.
    if (this.#ports.connections.isOnline(nodeId)) return;
    const refs = this.refsOf(node);
    for (const ref of refs) this.#tell(ref, { nodeId, online: false, reason });
    if (node.manyUntil > this.#ports.now()) this.#tellActive({ nodeId, online: false, reason }, new Set(refs));
    this.#left(nodeId, refs, reason);
  }

  #left(nodeId: string, waiting: readonly string[], reason: string): void {
    this.#returning.settle(nodeId);
    this.#ports.nodes.disconnected(nodeId, waiting, this.#ports.now());
    this.#ports.calls().nodeWent(nodeId);
    this.#ports.connections.broadcast("presence", { nodeId: asNodeId(nodeId), online: false, reason: reason.slice(0, 256) });
  }

  /** Conversations with calls out on this connection. */
  refsOf(node: Connection): readonly string[] {
    const refs = new Set<string>();
    for (const callId of node.calls.keys()) {
      const owner = ownerOf(callId);
      if (owner?.kind === "session") refs.add(owner.ref);
    }
    return [...refs];
  }

  async dispatch({ callId, sessionKey, nodeId, tool, args, timeoutMs }: ToolDispatch): Promise<DispatchOutcome> {
    if (this.#returning.has(nodeId)) await this.#returning.arrival(nodeId);
    const node = this.#ports.connections.node(nodeId);
    if (node === undefined) return "offline";
    // Noted first: if the link breaks while the frame is handed over, the conversation must hear of it.
    this.#ports.connections.callOut(node, callId, this.#ports.now() + timeoutMs + REMEMBERED_MS);
    const sent = this.#ports.connections.event(node, "tool.invoke", {
      callId: asCallId(callId),
      tool,
      args: { ...args },
      sessionKey,
      timeoutMs,
    });
    this.#ports.arm();
    return sent ? "sent" : "offline";
  }

  cancel(nodeId: string, callIds: readonly string[], reason: string): void {
    const node = this.#ports.connections.node(nodeId);
    if (node === undefined) return;
    for (const callId of callIds.slice(0, MAX_CANCELS))
      this.#ports.connections.event(node, "tool.cancel", { callId: asCallId(callId), reason: reason.slice(0, 256) });
  }

  /** A node reports how a session's call ended. True: some session knows it; false: nobody does, the node may forget it. */
  async result(node: Connection, ref: string, result: ToolResultParams): Promise<boolean> {
    const key = this.#ports.sessions.keyOf(ref);
    if (key === undefined) return false;
    const taken = await this.#ports.ask(key, (session) => session.toolResult(node.principal.id, result));
    // Only now is it the session's: a call that failed on the way stays the node's, who sends it again (W6).
    this.#ports.connections.callBack(node, result.callId);
    return taken !== "unknown";
  }

  // ------------------------------------------------------------ tools

  /** Tools of connected and returning machines, sorted by name, each name once. */
  tools(): readonly ToolEntry[] {
    const nodeIds = [...this.#ports.connections.nodes().map((node) => node.principal.id), ...this.#returning.ids()];
    return new ToolRegistry(machineEntries(nodeIds.flatMap((nodeId) => this.#ports.nodes.offer(nodeId) ?? []))).entries;
  }

  /** When the next link with calls out must show life; undefined when none has to. */
  nextLivenessCheck(): number | undefined {
    const { connections } = this.#ports;
    const due = connections.nodes().flatMap((node) => (connections.hasCalls(node) ? (connections.silentAt(node) ?? []) : []));
    return due.length === 0 ? undefined : Math.min(...due);
  }
  /** Cuts off nodes that have calls out and show no life. */
  checkLiveness(now: number): void {
    const { connections } = this.#ports;
    for (const node of connections.nodes()) {
      connections.forgetCalls(node, now);
      if (connections.hasCalls(node)) connections.node(node.principal.id);
    }
  }

  // ------------------------------------------------------------ telling

  #tell(ref: string, change: NodeChange): void {
    const key = this.#ports.sessions.keyOf(ref);
    if (key !== undefined) this.#tellKey(key, change);
  }
  #tellKey(key: string, change: NodeChange): void {
    this.#ports.background(
      "node_changed",
      this.#ports.ask(key, (session) => session.nodeChanged(change)),
    );
  }
  #tellActive(change: NodeChange, told: ReadonlySet<string>): void {
    for (const key of this.#ports.sessions.activeSince(this.#ports.now() - ACTIVE_MS, MAX_ACTIVE)) {
      const ref = this.#ports.sessions.find(key)?.ref;
      if (ref !== undefined && !told.has(ref)) this.#tellKey(key, change);
    }
  }
}
