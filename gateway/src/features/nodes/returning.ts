/**
 * Machines that were connected when the gateway stopped without closing their links. They are expected to reconnect, so for a short
 * time they do not count as gone (promise P12). The caller says which machines, and when the time is over. PURE.
 */
export class ReturningNodes {
  readonly #waiting = new Map<string, { readonly arrived: Promise<void>; readonly resolve: () => void }>();

  constructor(nodeIds: readonly string[]) {
    for (const nodeId of nodeIds) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.set(nodeId, { arrived: promise, resolve });
    }
  }

  has(nodeId: string): boolean {
    return this.#waiting.has(nodeId);
  }
  ids(): readonly string[] {
    return [...this.#waiting.keys()].sort();
  }
  /** Resolves when it is known whether the machine came back; at once for any other machine. */
  arrival(nodeId: string): Promise<void> {
    return this.#waiting.get(nodeId)?.arrived ?? Promise.resolve();
  }
  /** The machine came back, or is given up. */
  settle(nodeId: string): void {
    this.#waiting.get(nodeId)?.resolve();
    this.#waiting.delete(nodeId);
  }
}
