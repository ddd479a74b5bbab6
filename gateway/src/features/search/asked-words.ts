/** The words that a question asks for, in a form for the search among the words of all texts. PURE. */

/** A power of two, and many times as many as a question has words, so that nearly every word of a text meets an empty slot. */
const SLOTS = 1_024;
const MASK = SLOTS - 1;
/** Counts are bytes. More occurrences hardly change the score. */
export const MOST_COUNTED = 255;

/** `phrase`: numbers (stems.ts) that follow each other, mostly one. `prefix`: of a word, with the texts that have it. */
export type AskedWord =
  | { readonly kind: "phrase"; readonly numbers: readonly number[] }
  | { readonly kind: "prefix"; readonly texts: TextSet };

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
/** A phrase begins with each of these numbers. */
export class FirstNumbers {
  readonly #numbers: number[] = [];
  /** The numbers, each in the slot of its last bits or behind it. 0: empty. */
  readonly #slots = new Int32Array(SLOTS);

  /** Each once. */
  get numbers(): readonly number[] {
    return this.#numbers;
  }
  /** Its slot. The number is not 0. */
  add(number: number): number {
    const slot = slotOf(this.#slots, number);
    if (this.#slots[slot] === 0) this.#numbers.push(number);
    this.#slots[slot] = number;
    return slot;
  }
  has(number: number): boolean {
    return number !== 0 && this.#slots[number & MASK] !== 0 && this.#slots[slotOf(this.#slots, number)] !== 0;
  }
  slotOf(number: number): number {
    return slotOf(this.#slots, number);
  }
}
interface Phrase {
  readonly index: number;
  /** The numbers after its first one. */
  readonly rest: readonly number[];
}

export class AskedWords {
  /** How many there are. Words with one stem are one word. */
  readonly size: number;
  readonly firsts = new FirstNumbers();
  /** By the slot of their first number. */
  readonly #phrases: Phrase[][] = [];
  readonly #prefixes: readonly { readonly index: number; readonly texts: TextSet }[];

  constructor(words: readonly AskedWord[]) {
    const prefixes: { index: number; texts: TextSet }[] = [];
    let size = 0;
    for (const word of words) {
      if (word.kind === "prefix") prefixes.push({ index: size++, texts: word.texts });
      else if (this.#addPhrase(word.numbers, size)) size++;
    }
    this.size = size;
    this.#prefixes = prefixes;
  }
  /** False: it is known, or has no number. */
  #addPhrase([first = 0, ...rest]: readonly number[], index: number): boolean {
    if (first === 0) return false;
    const slot = this.firsts.add(first);
    this.#phrases[slot] ??= [];
    const known = this.#phrases[slot];
    if (known.some((one) => one.rest.length === rest.length && one.rest.every((number, at) => number === rest[at]))) return false;
    known.push({ index, rest });
    return true;
  }
  /** Adds the phrases that begin at this place of a text to its counts, which begin at `first`. The text ends before `to`. False: there is none. */
  countAt(counts: Uint8Array, first: number, words: Int32Array, at: number, to: number): boolean {
    let isFound = false;
    for (const { index, rest } of this.#phrases[this.firsts.slotOf(words[at] as number)] as Phrase[]) {
      if (rest.length > 0 && !follows(rest, words, at + 1, to)) continue;
      const count = counts[first + index] as number;
      if (count < MOST_COUNTED) counts[first + index] = count + 1;
      isFound = true;
    }
    return isFound;
  }
  /** Adds the prefixes that this text has to its counts, which begin at `first`. */
  countPrefixes(counts: Uint8Array, first: number, id: number): void {
    for (const { index, texts } of this.#prefixes) if (texts.has(id)) counts[first + index] = 1;
  }
  /** The first of these ids, from `at` on and before `end`, of a text with one of the prefixes; `end`: there is none. */
  nextWithPrefix(ids: Float64Array, at: number, end: number): number {
    if (this.#prefixes.length === 0) return end;
    let next = at;
    while (next < end && !this.#prefixes.some(({ texts }) => texts.has(ids[next] as number))) next++;
    return next;
  }
}
const follows = (rest: readonly number[], words: Int32Array, at: number, to: number): boolean =>
  at + rest.length <= to && rest.every((word, step) => words[at + step] === word);
/** Where the number is, or where it would be. */
function slotOf(firsts: Int32Array, word: number): number {
  let slot = word & MASK;
  while (firsts[slot] !== word && firsts[slot] !== 0) slot = (slot + 1) & MASK;
  return slot;
}
