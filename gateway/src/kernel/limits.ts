/** Counts failures by address, in memory, to slow down an address that guesses tokens. A valid token is never slowed down. PURE. */

/** The addresses that count as one: a customer usually has a whole IPv6 /64, and one IPv4 address. */
export function addressGroup(address: string): string {
  const text = address.trim().toLowerCase();
  const mapped = /^::ffff:(\d{1,3}(?:\.\d{1,3}){3})$/.exec(text)?.[1];
  if (mapped !== undefined || !text.includes(":")) return mapped ?? text;
  const [head = "", tail] = text.split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  const parts = [...left, ...Array.from({ length: zeros }, () => "0"), ...right];
  return `${parts
    .slice(0, 4)
    .map((part) => part.replace(/^0+(?=.)/, ""))
    .join(":")}::/64`;
}

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
