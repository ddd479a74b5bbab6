/** Entries up to a number and a sum of bytes. Those that were kept longest ago are dropped first; reading does not count. PURE. */
export class BoundedCache<Entry extends { readonly bytes: number }> {
  readonly #entries = new Map<string, Entry>();
  readonly #maxEntries: number;
  readonly #maxBytes: number;

  constructor(maxEntries: number, maxBytes: number) {
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
  }

  get(key: string): Entry | undefined {
    return this.#entries.get(key);
  }
  keep(key: string, entry: Entry): void {
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    let bytes = 0;
    for (const { bytes: own } of this.#entries.values()) bytes += own;
    for (const [oldest, { bytes: own }] of this.#entries) {
      if (this.#entries.size <= this.#maxEntries && bytes <= this.#maxBytes) break;
      this.#entries.delete(oldest);
      bytes -= own;
    }
  }
}
