/**
 * The words that a question asks for, in a form for the scan over the words of all texts. PURE. Each is one number (stems.ts), several that must
 * follow each other, or the texts that have it when it is the beginning of a word.
 */
/** A power of two, and many times as many as a question has words, so that nearly every word of a text meets an empty place. */
const PLACES = 1_024;
const MASK = PLACES - 1;
/** A word that is more often in a text does not say more. */
const MOST_COUNTED = 255;

export type AskedWord = readonly number[] | ReadonlySet<number>;
interface Phrase {
  readonly index: number;
  /** What follows its first number. */
  readonly rest: readonly number[];
}

export class AskedWords {
  /** How many there are, each once. */
  readonly size: number;
  /** The first number of a word, at the place of its last bits or behind it. 0: none. */
  readonly #firsts = new Int32Array(PLACES);
  /** At the same places: all that begin with it. */
  readonly #phrases: Phrase[][] = [];
  readonly #lists: readonly { readonly index: number; readonly ids: ReadonlySet<number> }[];

  constructor(words: readonly AskedWord[]) {
    const lists: { index: number; ids: ReadonlySet<number> }[] = [];
    let size = 0;
    for (const word of words) {
      if ("has" in word) lists.push({ index: size++, ids: word });
      else if (this.#isNew(word, size)) size++;
    }
    this.size = size;
    this.#lists = lists;
  }
  #isNew([first = 0, ...rest]: readonly number[], index: number): boolean {
    const place = placeOf(this.#firsts, first);
    this.#firsts[place] = first;
    this.#phrases[place] ??= [];
    const known = this.#phrases[place];
    if (first === 0 || known.some((one) => one.rest.length === rest.length && one.rest.every((word, at) => word === rest[at])))
      return false;
    known.push({ index, rest });
    return true;
  }
  /** Counts the words of a text in `counts`. False: it has none. */
  count(id: number, words: Int32Array, from: number, to: number, counts: Uint8Array): boolean {
    const firsts = this.#firsts;
    let isFound = false;
    for (let at = nextOf(firsts, words, from, to); at < to; at = nextOf(firsts, words, at + 1, to)) {
      for (const { index, rest } of this.#phrases[placeOf(firsts, words[at] as number)] as Phrase[]) {
        if (rest.length > 0 && !follows(rest, words, at + 1, to)) continue;
        if ((counts[index] as number) < MOST_COUNTED) counts[index] = (counts[index] as number) + 1;
        isFound = true;
      }
    }
    for (const { index, ids } of this.#lists)
      if (ids.has(id)) {
        counts[index] = 1;
        isFound = true;
      }
    return isFound;
  }
}
/** Where one of the first numbers is, from `at` on; `to`: nowhere. All that most words cost, so it is a loop of its own, which the engine makes fast. */
function nextOf(firsts: Int32Array, words: Int32Array, at: number, to: number): number {
  for (let next = at; next < to; next++) {
    const word = words[next] as number;
    if (firsts[word & MASK] !== 0 && firsts[placeOf(firsts, word)] !== 0) return next;
  }
  return to;
}
const follows = (rest: readonly number[], words: Int32Array, at: number, to: number): boolean =>
  at + rest.length <= to && rest.every((word, step) => words[at + step] === word);
/** Where the number is, or where it would be. */
function placeOf(firsts: Int32Array, word: number): number {
  let place = word & MASK;
  while (firsts[place] !== word && firsts[place] !== 0) place = (place + 1) & MASK;
  return place;
}
