/**
 * Caches recently shown files as the text for the model. Bounded by bytes, evicts the least recently used first. Keys are
 * written once, so entries never become stale. One cache for all sessions of an isolate; memory only.
 */
export class MediaCache {
  readonly #maxBytes: number;
  readonly #entries = new Map<string, string>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }
  get(key: string): string | undefined {
    const text = this.#entries.get(key);
    if (text === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, text);
    return text;
  }
  /** A text larger than the whole cache is not stored. */
  set(key: string, text: string): void {
    this.delete(key);
    const size = sizeOf(key, text);
    if (size > this.#maxBytes) return;
    this.#entries.set(key, text);
    this.#bytes += size;
    for (const oldest of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.delete(oldest);
    }
  }
  delete(key: string): void {
    const text = this.#entries.get(key);
    if (text === undefined) return;
    this.#entries.delete(key);
    this.#bytes -= sizeOf(key, text);
  }
  get bytes(): number {
    return this.#bytes;
  }
}
/** With a character outside Latin-1, a text needs two bytes per character. */
const sizeOf = (key: string, text: string): number => key.length + (/[^\u0000-\u00ff]/.test(text) ? 2 * text.length : text.length);
