/** Calls of sessions that wait for machines (rules OM1, OM5): the index, and the answer whether a machine is back. Decides nothing about a call. */
import { asNodeId, asSessionKey, asToolName, type NodeEntry } from "../../../../protocol/gen/types.ts";
import type { WaitAnswer, WaitReport } from "../../ports/waits.ts";
import type { WaitStore } from "./wait-store.ts";

export interface NodeWaitPorts {
  readonly store: WaitStore;
  readonly now: () => number;
  readonly isOnline: (nodeId: string) => boolean;
  readonly exists: (nodeId: string) => boolean;
  /** The ref of the session that has this name now. */
  readonly refOf: (sessionKey: string) => string | undefined;
  /** Resolves when it is known whether a machine that is about to come back did. */
  readonly arrival: (nodeId: string) => Promise<void>;
}

export class NodeWaits {
  readonly #ports: NodeWaitPorts;

  constructor(ports: NodeWaitPorts) {
    this.#ports = ports;
  }

  /** Stored before the machines are looked at: one that connects in between finds the session in the index. */
  async report(report: WaitReport): Promise<WaitAnswer> {
    const { store, now, arrival, isOnline, exists, refOf } = this.#ports;
    // A late report of a session that was deleted meanwhile would hold up those of the next one of its name.
    const ref = refOf(report.sessionKey);
    if (ref === undefined || report.calls.some(({ callId }) => !callId.startsWith(`${ref}/`))) return { ready: [] };
    const isKept = store.report(report, now());
    await Promise.all([...new Set(report.calls.map(({ nodeId }) => nodeId))].map(arrival));
    const ready = report.calls.flatMap(({ callId, nodeId }) => (isOnline(nodeId) || !exists(nodeId) ? [callId] : []));
    return { ready, ...(isKept ? {} : { full: true as const }) };
  }
  /** The machines with the calls that wait for them. */
  shown(nodes: readonly NodeEntry[]): NodeEntry[] {
    const calls = [...this.#ports.store.waits()].flatMap(([sessionKey, waits]) =>
      waits.map(({ nodeId, tool, since, expiresAt: until }) => ({
        nodeId: asNodeId(nodeId),
        wait: { sessionKey: asSessionKey(sessionKey), tool: asToolName(tool.slice(0, 192)), since, until },
      })),
    );
    return nodes.map((node) => {
      const waiting = calls.flatMap(({ nodeId, wait }) => (nodeId === node.nodeId ? [wait] : [])).slice(0, MOST_SHOWN);
      return waiting.length === 0 ? node : { ...node, waiting };
    });
  }
}
const MOST_SHOWN = 32;
