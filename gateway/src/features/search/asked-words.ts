/** The words that a question asks for, in a form for the search among the words of all texts. PURE. */

/** A power of two, and many times as many as a question has words, so that nearly every word of a text meets an empty slot. */
const SLOTS = 1_024;
const MASK = SLOTS - 1;
/** Counts are bytes. More occurrences hardly change the score. */
export const MOST_COUNTED = 255;

/** `phrase`: numbers (stems.ts) that follow each other, mostly one. `beginning`: of a word, with the texts that have it. */
export type AskedWord =
  | { readonly kind: "phrase"; readonly numbers: readonly number[] }
  | { readonly kind: "beginning"; readonly texts: TextSet };

/** Ids of texts, one bit each: they are dense. */
export class TextSet {
  readonly #bits: Uint8Array;

  constructor(highestId: number) {
    this.#bits = new Uint8Array((highestId >>> 3) + 1);
  }
  add(id: number): void {
    const at = id >>> 3;
    this.#bits[at] = (this.#bits[at] ?? 0) | (1 << (id & 7));
  }
  has(id: number): boolean {
    return ((this.#bits[id >>> 3] ?? 0) & (1 << (id & 7))) !== 0;
  }
}
interface Phrase {
  readonly index: number;
  /** What follows its first number. */
  readonly rest: readonly number[];
}

export class AskedWords {
  /** How many there are. Words with one stem are one word. */
  readonly size: number;
  /** First numbers of phrases, in the slot of their last bits or behind it. 0: empty. */
  readonly #firsts = new Int32Array(SLOTS);
  /** In the same slots: all phrases that begin with the number. */
  readonly #phrases: Phrase[][] = [];
  readonly #beginnings: readonly { readonly index: number; readonly texts: TextSet }[];
  /** The numbers of the words, by their indexes. Undefined: not all of them are single words. */
  readonly numbers: readonly number[] | undefined;

  constructor(words: readonly AskedWord[]) {
    const beginnings: { index: number; texts: TextSet }[] = [];
    const numbers: number[] = [];
    let size = 0;
    for (const word of words) {
      if (word.kind === "beginning") beginnings.push({ index: size++, texts: word.texts });
      else if (this.#addPhrase(word.numbers, size)) {
        size++;
        if (word.numbers.length === 1) numbers.push(...word.numbers);
      }
    }
    this.size = size;
    this.numbers = numbers.length === size ? numbers : undefined;
    this.#beginnings = beginnings;
  }
  /** False: it is known, or has no number. */
  #addPhrase([first = 0, ...rest]: readonly number[], index: number): boolean {
    if (first === 0) return false;
    const slot = slotOf(this.#firsts, first);
    this.#firsts[slot] = first;
    this.#phrases[slot] ??= [];
    const known = this.#phrases[slot];
    if (known.some((one) => one.rest.length === rest.length && one.rest.every((number, at) => number === rest[at]))) return false;
    known.push({ index, rest });
    return true;
  }
  /** Adds the words of the text `words[from..to]` to `counts`. False: it has none. */
  countInto(counts: Uint8Array, id: number, words: Int32Array, from: number, to: number): boolean {
    const firsts = this.#firsts;
    let isFound = false;
    for (let at = nextOf(firsts, words, from, to); at < to; at = nextOf(firsts, words, at + 1, to)) {
      for (const { index, rest } of this.#phrases[slotOf(firsts, words[at] as number)] as Phrase[]) {
        if (rest.length > 0 && !follows(rest, words, at + 1, to)) continue;
        if ((counts[index] as number) < MOST_COUNTED) counts[index] = (counts[index] as number) + 1;
        isFound = true;
      }
    }
    for (const { index, texts } of this.#beginnings)
      if (texts.has(id)) {
        counts[index] = 1;
        isFound = true;
      }
    return isFound;
  }
}
/** Where a phrase may begin, from `at` on; `to`: nowhere. The hot loop: it is a function of its own, so that the engine keeps it in registers. */
function nextOf(firsts: Int32Array, words: Int32Array, at: number, to: number): number {
  for (let next = at; next < to; next++) {
    const word = words[next] as number;
    if (word !== 0 && firsts[word & MASK] !== 0 && firsts[slotOf(firsts, word)] !== 0) return next;
  }
  return to;
}
const follows = (rest: readonly number[], words: Int32Array, at: number, to: number): boolean =>
  at + rest.length <= to && rest.every((word, step) => words[at + step] === word);
/** Where the number is, or where it would be. */
function slotOf(firsts: Int32Array, word: number): number {
  let slot = word & MASK;
  while (firsts[slot] !== word && firsts[slot] !== 0) slot = (slot + 1) & MASK;
  return slot;
}
