/**
 * The rows of a word table that have a word: a question meets a small part of the words of an index. PURE. It takes as much memory as the
 * words themselves, or twice, so a large table is scanned.
 */
const NONE: readonly number[] = [];

export class WordRows {
  readonly #rows = new Map<number, number[]>();

  /** A row is noted for each place of a word. 0 is no word. */
  add(row: number, words: Int32Array, from: number, to: number): void {
    for (let at = from; at < to; at++) {
      const word = words[at] as number;
      if (word === 0) continue;
      const rows = this.#rows.get(word);
      if (rows === undefined) this.#rows.set(word, [row]);
      else rows.push(row);
    }
  }
  /** Once for each place of the word, in the order of the rows. */
  of(word: number): readonly number[] {
    return this.#rows.get(word) ?? NONE;
  }
}
