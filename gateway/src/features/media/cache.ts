/**
 * Files that models were shown lately, as the text that they go out as. Bounded by bytes, least recently used first out. Keys are
 * written once, so nothing in here grows old. One for all sessions of an isolate; memory only.
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
  /** What is larger than the whole cache is not kept. */
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
/** Characters outside of Latin-1 make a text take two bytes each. */
const sizeOf = (key: string, text: string): number => key.length + (/[^\u0000-\u00ff]/.test(text) ? 2 * text.length : text.length);
