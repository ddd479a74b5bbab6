/** Counts failures by address, in memory: an address that guesses is slowed down, and a valid token never is. PURE. */
const MAX_ADDRESSES = 1024;
const WINDOW_MS = 60_000;

export class FailureWindow {
  readonly #most: number;
  readonly #seen = new Map<string, { start: number; count: number }>();

  /** `most` failures a minute are answered as such. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Counts a failure. True: it is over the limit. */
  failed(address: string, now: number): boolean {
    const known = this.#seen.get(address);
    if (known !== undefined && now >= known.start && now - known.start < WINDOW_MS) return ++known.count > this.#most;
    if (this.#seen.size >= MAX_ADDRESSES) {
      const oldest = this.#seen.keys().next();
      if (oldest.done !== true) this.#seen.delete(oldest.value);
    }
    this.#seen.delete(address);
    this.#seen.set(address, { start: now, count: 1 });
    return false;
  }
}
