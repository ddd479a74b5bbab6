/**
 * The rows of a word table that have a word: a question meets a small part of the words of an index. PURE. It takes twice to three times as
 * much memory as the words themselves.
 */
const NONE: readonly number[] = [];

export class WordRows {
  readonly #rows = new Map<number, number[]>();

  /** `row` is the highest so far. It is noted for each place of a word. 0 is no word. */
  add(row: number, words: Int32Array): void {
    for (const word of words) {
      if (word === 0) continue;
      const rows = this.#rows.get(word);
      if (rows === undefined) this.#rows.set(word, [row]);
      else rows.push(row);
    }
  }
  /** `words` are those of the row. Nothing of it is left. */
  remove(row: number, words: Int32Array): void {
    for (const word of new Set(words)) {
      const rows = this.#rows.get(word);
      if (rows === undefined) continue;
      const from = firstAtLeast(rows, row);
      rows.splice(from, firstAtLeast(rows, row + 1) - from);
      if (rows.length === 0) this.#rows.delete(word);
    }
  }
  /** Once for each place of the word, in the order of the rows. */
  of(word: number): readonly number[] {
    return this.#rows.get(word) ?? NONE;
  }
}
function firstAtLeast(sorted: readonly number[], least: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as number) < least) low = middle + 1;
    else high = middle;
  }
  return low;
}
