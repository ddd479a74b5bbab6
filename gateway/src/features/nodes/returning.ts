/**
 * Machines that were connected when the gateway's last life ended without a word: they are about to come back, so for a moment they are
 * not treated as gone (promises P12). PURE: who is meant and when it is over comes from outside.
 */
export class Returning {
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
  /** Resolves when it is known whether the machine came back; at once for every other. */
  arrival(nodeId: string): Promise<void> {
    return this.#waiting.get(nodeId)?.arrived ?? Promise.resolve();
  }
  /** It came back, or it is given up. True: it had been waited for. */
  settle(nodeId: string): boolean {
    const waiting = this.#waiting.get(nodeId);
    this.#waiting.delete(nodeId);
    waiting?.resolve();
    return waiting !== undefined;
  }
}
