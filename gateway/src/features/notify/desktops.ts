/**
 * Notifications on desktops of connected machines (rules NT7, NT8): asks a node once and waits for its answer. What waits is in memory
 * only: the caller notes before that a desktop was asked.
 */
import type { Connections } from "../../kernel/connections.ts";
import type { NodesPort } from "../../ports/nodes.ts";

export interface DesktopPorts {
  readonly connections: Pick<Connections, "event" | "node">;
  readonly nodes: NodesPort["nodes"];
  readonly after: (ms: number, work: () => void) => void;
}
const ANSWER_MS = 15_000;
const MAX_PROBLEM = 300;

export class Desktops {
  readonly #ports: DesktopPorts;
  readonly #waiting = new Map<string, { readonly nodeId: string; readonly end: (problem: string | undefined) => void }>();

  constructor(ports: DesktopPorts) {
    this.#ports = ports;
  }

  /** Connected machines that can show something, the last connected first; or why the named one, or none, can. */
  able(nodeId: string | undefined): { readonly nodeIds: readonly string[]; readonly problem: string } {
    const known = this.#ports.nodes.list().filter((node) => nodeId === undefined || node.nodeId === nodeId);
    const online = known.filter((node) => node.online);
    const able = online
      .filter((node) => node.desktop?.program !== undefined)
      .toSorted((left, right) => (right.lastConnectedAt ?? 0) - (left.lastConnectedAt ?? 0));
    const [one] = online;
    const problem =
      nodeId === undefined
        ? "No connected machine can show notifications."
        : one === undefined
          ? `The machine ${nodeId} is not connected.`
          : (one.desktop?.missing ?? `The machine ${nodeId} does not show notifications: update its gsv.`);
    return { nodeIds: able.map((node) => node.nodeId), problem };
  }
  /** Resolves with the problem; undefined: it was shown. */
  show(nodeId: string, showId: string, title: string, text: string): Promise<string | undefined> {
    const { connections, after } = this.#ports;
    const node = connections.node(nodeId);
    if (node === undefined) return Promise.resolve("The machine is not connected.");
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const end = (problem: string | undefined): void => {
      if (this.#waiting.delete(showId)) resolve(problem);
    };
    this.#waiting.set(showId, { nodeId, end });
    if (!connections.event(node, "notify.show", { showId, title, text })) end("The link to the machine is broken.");
    else after(ANSWER_MS, () => end("The machine did not say whether it was shown."));
    return promise;
  }
  /** False: nothing waits for this answer. */
  answered(nodeId: string, showId: string, problem: string | undefined): boolean {
    const waiting = this.#waiting.get(showId);
    if (waiting?.nodeId !== nodeId) return false;
    waiting.end(problem === undefined ? undefined : problem.slice(0, MAX_PROBLEM) || "The machine could not show it.");
    return true;
  }
  gone(nodeId: string): void {
    for (const waiting of [...this.#waiting.values()]) if (waiting.nodeId === nodeId) waiting.end("The machine disconnected.");
  }
}
