/**
 * Hands tool calls to machines, for sessions and for clients alike (gateway rule G2), and watches the links that have calls out. Decides
 * nothing about the outcome of a call: calls/rules.ts does.
 */
import { asCallId } from "../../../../protocol/gen/types.ts";
import type { PayloadOf } from "../../../../protocol/gen/methods.ts";
import type { Connection, Connections } from "../../kernel/connections.ts";

export interface DispatchPorts {
  readonly connections: Connections;
  readonly now: () => number;
  /** A link must show life by then. */
  readonly armFor: (deadline: number | undefined) => void;
  /** Everything is stopped (rule ST8). */
  readonly isStopped: () => boolean;
}
/** The event that asks a machine to run a call. */
export type CallEvent =
  | { readonly event: "tool.invoke"; readonly payload: PayloadOf<"tool.invoke"> }
  | { readonly event: "logs.get"; readonly payload: PayloadOf<"logs.get"> }
  | { readonly event: "undo.request"; readonly payload: PayloadOf<"undo.request"> };

const MAX_CANCELS = 512;
/** A call whose end was never reported is remembered with its link for this much longer than the call may take. */
const REMEMBERED_MS = 3_600_000;

export class NodeDispatch {
  readonly #ports: DispatchPorts;

  constructor(ports: DispatchPorts) {
    this.#ports = ports;
  }

  /** True: the frame was handed to the machine's socket. False: the machine is not connected, and it did not get the call. */
  handOver(nodeId: string, callId: string, timeoutMs: number, frame: CallEvent): boolean {
    const { connections, isStopped } = this.#ports;
    if (frame.event === "tool.invoke" && isStopped()) return false;
    const node = connections.node(nodeId);
    if (node === undefined) return false;
    // Noted first: if the link breaks during the hand-over, the caller must hear of it.
    this.remember(nodeId, callId, timeoutMs);
    const sent = this.#send(node, frame);
    this.#ports.armFor(this.nextLivenessCheck());
    return sent;
  }
  /** All branches are the same: the compiler needs one event with its own payload. */
  #send(node: Connection, frame: CallEvent): boolean {
    const { connections } = this.#ports;
    switch (frame.event) {
      case "tool.invoke":
        return connections.event(node, frame.event, frame.payload);
      case "logs.get":
        return connections.event(node, frame.event, frame.payload);
      case "undo.request":
        return connections.event(node, frame.event, frame.payload);
    }
  }
  /** The machine has the call: until the call ends, its caller must hear when the link breaks. */
  remember(nodeId: string, callId: string, timeoutMs = 0): void {
    const node = this.#ports.connections.node(nodeId);
    if (node !== undefined) this.#ports.connections.callOut(node, callId, this.#ports.now() + timeoutMs + REMEMBERED_MS);
  }
  /** The call has ended. */
  ended(nodeId: string, callId: string): void {
    const node = this.#ports.connections.node(nodeId);
    if (node !== undefined) this.#ports.connections.callBack(node, callId);
  }
  cancel(nodeId: string, callIds: readonly string[], reason: string): void {
    const node = this.#ports.connections.node(nodeId);
    if (node === undefined) return;
    for (const callId of callIds.slice(0, MAX_CANCELS))
      this.#ports.connections.event(node, "tool.cancel", { callId: asCallId(callId), reason: reason.slice(0, 256) });
  }

  /** When the next link must show life: one with calls out sooner. Undefined: no link is of a peer that pings. */
  nextLivenessCheck(): number | undefined {
    const { connections } = this.#ports;
    const due = connections
      .nodes()
      .flatMap((node) => (connections.hasCalls(node) ? connections.silentAt(node) : connections.idleUntil(node)) ?? []);
    return due.length === 0 ? undefined : Math.min(...due);
  }
  /** Cuts off machines that show no life. */
  checkLiveness(now: number): void {
    const { connections } = this.#ports;
    for (const node of connections.nodes()) {
      connections.forgetCalls(node, now);
      if (connections.hasCalls(node)) connections.node(node.principal.id);
      else connections.dropIdle(node, now);
    }
  }
}
