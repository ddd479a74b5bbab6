/**
 * The words that a question asks for, in a form for the scan over the words of all texts. PURE. A word is one number (stems.ts), or the texts that
 * have it when it is several words or the beginning of one.
 */
/** A power of two, and many times as many as a question has words, so that nearly every word of a text meets an empty place. */
const PLACES = 1_024;
const MASK = PLACES - 1;
/** A word that is more often in a text does not say more. */
const MOST_COUNTED = 255;

export class AskedWords {
  /** How many there are, each once. */
  readonly size: number;
  /** The number that is asked for, at the place of its last bits or behind it. 0: none. */
  readonly #numbers = new Int32Array(PLACES);
  readonly #indexes = new Uint8Array(PLACES);
  readonly #lists: readonly { readonly index: number; readonly ids: ReadonlySet<number> }[];

  /** At most 255 words. */
  constructor(words: readonly (number | ReadonlySet<number>)[]) {
    const lists: { index: number; ids: ReadonlySet<number> }[] = [];
    let size = 0;
    for (const word of words) {
      if (typeof word === "object") lists.push({ index: size++, ids: word });
      else {
        const place = this.#placeOf(word);
        if (this.#numbers[place] === word) continue;
        this.#numbers[place] = word;
        this.#indexes[place] = size++;
      }
    }
    this.size = size;
    this.#lists = lists;
  }
  /** Counts the words of a text in `counts`. False: it has none. */
  count(id: number, words: Int32Array, from: number, to: number, counts: Uint8Array): boolean {
    const numbers = this.#numbers;
    let isFound = false;
    for (let at = from; at < to; at++) {
      const word = words[at] as number;
      let place = word & MASK;
      for (; numbers[place] !== word && numbers[place] !== 0; place = (place + 1) & MASK);
      if (numbers[place] === 0) continue;
      const index = this.#indexes[place] as number;
      if ((counts[index] as number) < MOST_COUNTED) counts[index] = (counts[index] as number) + 1;
      isFound = true;
    }
    for (const { index, ids } of this.#lists)
      if (ids.has(id)) {
        counts[index] = 1;
        isFound = true;
      }
    return isFound;
  }
  /** Where the number is, or where it would be. */
  #placeOf(word: number): number {
    let place = word & MASK;
    while (this.#numbers[place] !== word && this.#numbers[place] !== 0) place = (place + 1) & MASK;
    return place;
  }
}
