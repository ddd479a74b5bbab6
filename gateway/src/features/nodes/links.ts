/**
 * Machines that connect and disconnect (gateway rules G3, G6): tells the sessions with calls there, the client calls, and clients with
 * the `presence` event. Decides nothing about a call: sessions and client-calls.ts ask calls/rules.ts.
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { asNodeId, type LedgerCall, type NodeEntry } from "../../../../protocol/gen/types.ts";
import type { Connection, Connections } from "../../kernel/connections.ts";
import { ownerOf } from "../../kernel/routing/call-ids.ts";
import type { NodeChange } from "../../ports/session.ts";
import type { AskSession, SessionDirectory } from "../../ports/sessions.ts";
import type { ToolEntry } from "../../ports/tool-entry.ts";
import { awayEntries, machineEntries, ToolRegistry } from "../../tools/registry.ts";
import type { ClientCalls } from "./client-calls.ts";
import type { NodeDispatch } from "./dispatch.ts";
import { MAX_WAITING, type Nodes } from "./store.ts";
import { ReturningNodes } from "./returning.ts";
import type { WaitStore } from "./wait-store.ts";

export interface NodeLinkPorts {
  readonly connections: Connections;
  readonly nodes: Nodes;
  readonly sessions: SessionDirectory;
  readonly calls: Pick<ClientCalls, "linkReplaced" | "nodeConnected" | "nodeDisconnected">;
  readonly dispatch: Pick<NodeDispatch, "remember">;
  /** Calls of sessions that wait for machines. */
  readonly waits: Pick<WaitStore, "sessionsFor">;
  readonly ask: AskSession;
  readonly now: () => number;
  readonly background: (what: string, work: Promise<unknown>) => void;
}

const ACTIVE_MS = 86_400_000;
const MAX_ACTIVE = 64;

export class NodeLinks {
  readonly #ports: NodeLinkPorts;
  readonly #listening = new Map<string, Promise<void>>();
  readonly #returning: ReturningNodes;
  /** Machines without a ledger whose sessions were told of the restart. */
  readonly #told = new Set<string>();

  constructor(ports: NodeLinkPorts) {
    this.#ports = ports;
    this.#returning = new ReturningNodes(ports.nodes.neverLeft().filter((nodeId) => !ports.connections.isOnline(nodeId)));
  }

  // ------------------------------------------------------------ after a restart

  /** Machines that were connected when the last instance of the gateway ended, and are not back yet. */
  returning(): readonly string[] {
    return this.#returning.ids();
  }
  /** All known machines, as they are now. */
  known(): readonly NodeEntry[] {
    const { connections, nodes } = this.#ports;
    return nodes.list(
      (nodeId) => connections.isOnline(nodeId),
      (nodeId) => this.#returning.has(nodeId),
    );
  }
  /** Resolves when it is known whether a machine that is about to come back did, and that it listens. */
  async arrival(nodeId: string): Promise<void> {
    await this.#returning.arrival(nodeId);
    await this.#listening.get(nodeId);
  }
  /** The machine has just connected, and calls wait until the result is called (F30). */
  listensLater(nodeId: string): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#listening.set(nodeId, promise);
    return () => {
      if (this.#listening.get(nodeId) === promise) this.#listening.delete(nodeId);
      resolve();
    };
  }
  /**
   * A machine without a ledger cannot account for calls of before the restart. Only the sessions know whether there are any, so active
   * sessions are told that the link broke. A machine with a ledger reports for itself.
   */
  tellRestart(): void {
    for (const nodeId of this.#returning.ids()) this.#tellBroken(nodeId);
  }
  #tellBroken(nodeId: string): void {
    if (this.#told.has(nodeId) || this.#ports.nodes.offer(nodeId)?.ledger !== false) return;
    this.#told.add(nodeId);
    this.#ports.calls.nodeDisconnected(nodeId);
    this.#tellActive({ nodeId, online: false, reason: "the gateway was started again" }, new Set());
  }
  /** The time for machines to come back is over. */
  giveUpReturning(): void {
    for (const nodeId of this.#returning.ids()) this.#left(nodeId, [], "did not come back after the gateway was started again");
  }

  /** The machine is connected. `waiting`: refs of sessions with calls on its earlier connection. */
  came(node: Connection, ledger: readonly LedgerCall[] | undefined, waiting: readonly string[]): void {
    const nodeId = node.principal.id;
    if (this.#returning.has(nodeId) && ledger === undefined) {
      // Even if the machine came back quickly, its link broke, and the outcome of its calls is unknown.
      this.#tellBroken(nodeId);
      this.#tellActive({ nodeId, online: true }, new Set(waiting));
    }
    this.#returning.settle(nodeId);
    const refs = new Set([...waiting, ...this.#waitingRefs(nodeId)]);
    for (const { callId } of ledger ?? []) {
      const owner = ownerOf(callId);
      if (owner?.kind === "session" && refs.size < MAX_WAITING) refs.add(owner.ref);
    }
    for (const ref of refs) {
      const calls = (ledger ?? []).filter(({ callId }) => callId.startsWith(`${ref}/`));
      this.#tellCame(node, ref, calls, {
        nodeId,
        online: true,
        ...(ledger === undefined ? {} : { calls: calls.map(({ callId, state }) => ({ callId, state })) }),
      });
    }
    this.#ports.calls.nodeConnected(nodeId, ledger);
    this.#ports.connections.broadcast("presence", { nodeId: asNodeId(nodeId), online: true });
  }

  /** Refs of the sessions with calls that wait for the machine. */
  #waitingRefs(nodeId: string): readonly string[] {
    return this.#ports.waits.sessionsFor(nodeId).flatMap((key) => this.#ports.sessions.find(key)?.ref ?? []);
  }
  /** The machine is known no more: what waits for it ends. */
  forgotten(nodeId: string): void {
    for (const key of this.#ports.waits.sessionsFor(nodeId)) this.#tellKey(key, { nodeId, online: true, calls: [] });
  }

  /** A newer link is about to take the place of this one. What no ledger holds counts as on a link that broke (T4, G3). */
  replaced(node: Connection): void {
    const nodeId = node.principal.id;
    this.#ports.calls.linkReplaced(nodeId);
    if (this.#ports.nodes.offer(nodeId)?.ledger === false)
      this.#tellSessions(node, { nodeId, online: false, reason: "the machine connected again" });
  }

  /** The link of a machine is gone. */
  went(node: Connection, reason: string): void {
    const nodeId = node.principal.id;
    // A newer connection has taken its place, and `came` has told everyone.
    if (this.#ports.connections.isOnline(nodeId)) return;
    this.#left(nodeId, this.#tellSessions(node, { nodeId, online: false, reason }), reason);
  }
  /** Tells the sessions with calls out on a connection. Answers their refs. */
  #tellSessions(node: Connection, change: NodeChange): readonly string[] {
    const refs = this.refsOf(node);
    for (const ref of refs) this.#tell(ref, change);
    if (node.manyUntil > this.#ports.now()) this.#tellActive(change, new Set(refs));
    return refs;
  }

  #left(nodeId: string, waiting: readonly string[], reason: string): void {
    this.#returning.settle(nodeId);
    this.#ports.nodes.disconnected(nodeId, waiting, this.#ports.now());
    this.#ports.calls.nodeDisconnected(nodeId);
    this.#ports.connections.broadcast("presence", { nodeId: asNodeId(nodeId), online: false, reason: reason.slice(0, 256) });
  }

  /** Refs of the sessions with calls out on this connection. */
  refsOf(node: Connection): readonly string[] {
    const refs = new Set<string>();
    for (const callId of node.calls.keys()) {
      const owner = ownerOf(callId);
      if (owner?.kind === "session") refs.add(owner.ref);
    }
    return [...refs];
  }

  // ------------------------------------------------------------ tools

  /** Tools of connected machines, sorted by name, each name once. */
  tools(): readonly ToolEntry[] {
    return this.#toolsOf(this.#ports.connections.nodes().map((node) => node.principal.id));
  }
  /** With the tools of returning machines, for which a call waits a moment, and of machines that are away, for which it waits when it may (OM1). */
  callable(): readonly ToolEntry[] {
    const offers = this.away().flatMap((nodeId) => this.#ports.nodes.offer(nodeId) ?? []);
    return new ToolRegistry(this.#toolsOf(this.#here()), awayEntries(offers)).entries;
  }
  /** Machines that are not connected and whose tools are offered, the last seen ones first. */
  away(): readonly string[] {
    const { nodes, now } = this.#ports;
    const here = this.#here();
    const seen = nodes.seenSince(now() - LIMITS.nodeOfferMs).filter((nodeId) => !here.includes(nodeId));
    return seen.slice(0, LIMITS.nodesOffered);
  }
  #here(): readonly string[] {
    return [...this.#ports.connections.nodes().map((node) => node.principal.id), ...this.#returning.ids()];
  }
  #toolsOf(nodeIds: readonly string[]): readonly ToolEntry[] {
    return new ToolRegistry(machineEntries(nodeIds.flatMap((nodeId) => this.#ports.nodes.offer(nodeId) ?? []))).entries;
  }

  // ------------------------------------------------------------ telling

  #tell(ref: string, change: NodeChange): void {
    const key = this.#ports.sessions.keyOf(ref);
    if (key !== undefined) this.#tellKey(key, change);
  }
  /** Only the session knows whether a call that the machine claims is the machine's: its link is watched for no other call (G1). */
  #tellCame(node: Connection, ref: string, calls: readonly LedgerCall[], change: NodeChange): void {
    const key = this.#ports.sessions.keyOf(ref);
    if (key === undefined) return;
    const running = calls.filter(({ state }) => state !== "finished" && state !== "lost");
    const { connections, dispatch } = this.#ports;
    const told = this.#ports
      .ask(key, (session) => session.nodeChanged(change))
      .then((open) => {
        const there = connections.byIdentity(node.principal);
        if (there === node) for (const { callId } of running) if (open.includes(callId)) dispatch.remember(change.nodeId, callId);
        // The link broke before it was known to carry calls of this session.
        if (there === undefined && open.length > 0) this.#tellKey(key, { nodeId: change.nodeId, online: false });
      });
    this.#ports.background("node_changed", told);
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
