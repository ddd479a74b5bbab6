/** Counts failures by address, in memory, to slow down an address that guesses tokens. A valid token is never slowed down. PURE. */
export const MAX_ADDRESSES = 1024;
const WINDOW_MS = 60_000;

export class FailureWindow {
  readonly #most: number;
  readonly #seen = new Map<string, { start: number; count: number }>();

  /** More than `most` failures a minute are over the limit. */
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
