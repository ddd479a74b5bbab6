/**
 * Runs whose thoughts a client has asked for (rule CT13). PURE. In memory only: after an eviction nothing is streamed until a client asks
 * again. Nothing of the thoughts themselves is kept here.
 */
/** Runs that may wait at once; the oldest ones are forgotten. */
const MOST_RUNS = 64;

export class WantedThoughts {
  readonly #runs = new Set<string>();

  add(runId: string): void {
    this.#runs.delete(runId);
    this.#runs.add(runId);
    if (this.#runs.size <= MOST_RUNS) return;
    for (const oldest of this.#runs) {
      this.#runs.delete(oldest);
      return;
    }
  }
  has(runId: string): boolean {
    return this.#runs.has(runId);
  }
}
