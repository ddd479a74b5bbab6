/**
 * The words of an index's texts in one piece of memory, for an exact search: FTS5 takes much longer to score texts. PURE.
 * A mirror of the table `words`, which can be dropped at any time.
 */
import type { AskedWords, FirstNumbers } from "./asked-words.ts";
import { grown, TextColumns } from "./text-columns.ts";
import type { WordMatches } from "./word-matches.ts";
import { MOST_LOOKED_AT, wordMemory, type WordMemory } from "./word-memory.ts";

export interface WordedText {
  /** Higher than that of every text that is in the table. */
  readonly id: number;
  readonly source: number;
  readonly ord: number;
  readonly at: number;
  /** The numbers of its words in their order. 0 separates words that do not follow each other. */
  readonly words: Int32Array;
}
/** The source of a text that was removed: those of others begin at 1. */
const GONE = 0;
/** Removed texts that are not worth reading the others again. */
const FEW_REMOVED = 1_024;
const FIRST_WORDS = 32_768;
/** Growth factor of a full array. */
const GROWTH = 1.5;

export class WordTable {
  readonly #mostWords: number;
  readonly #texts = new TextColumns();
  #removed = 0;
  /** The sum of the lengths of the texts that are not removed. */
  #allLengths = 0;
  /** Where the words of each text end. Those of the next one begin there. */
  #ends = new Uint32Array(FEW_REMOVED);
  readonly #memory: WordMemory;

  /** `module`: word-places.wasm. Undefined: words are looked for in JavaScript. */
  constructor(mostWords = Number.MAX_SAFE_INTEGER, module?: WebAssembly.Module) {
    this.#mostWords = mostWords;
    this.#memory = wordMemory(FIRST_WORDS, module);
  }
  /** False: there is no room for it, or its id is not the highest. */
  put({ words, ...text }: WordedText): boolean {
    const texts = this.#texts;
    // SQLite gives the ids of removed last texts again.
    while (texts.size > 0 && texts.sources[texts.size - 1] === GONE) {
      texts.size--;
      this.#removed--;
    }
    const from = this.#end(texts.size);
    const to = from + words.length;
    if (to > this.#mostWords || (texts.size > 0 && text.id <= (texts.ids[texts.size - 1] as number))) return false;
    if (to > this.#memory.words.length) this.#memory.grow(Math.min(this.#mostWords, Math.ceil(to * GROWTH)));
    const length = words.length - (words.includes(0) ? 1 : 0);
    const row = texts.add(text, length);
    this.#memory.words.set(words, from);
    if (row === this.#ends.length) this.#ends = grown(this.#ends, Math.ceil(row * GROWTH));
    this.#ends[row] = to;
    this.#allLengths += length;
    return true;
  }
  /** Its words are overwritten. */
  remove(id: number): void {
    const row = this.#rowOf(id);
    if (row === undefined) return;
    this.#texts.sources[row] = GONE;
    this.#allLengths -= this.#texts.lengths[row] as number;
    this.#memory.words.fill(0, this.#end(row), this.#end(row + 1));
    this.#removed++;
  }
  /** Most rows are removed texts: it is worth reading the others again. */
  get isSparse(): boolean {
    return this.#removed > FEW_REMOVED && this.#removed > this.#texts.size / 2;
  }
  /** Adds every text with one of the words to `matches`. */
  find(asked: AskedWords, matches: WordMatches): void {
    const { size } = this.#texts;
    const [ends, { words }] = [this.#ends, this.#memory];
    const next = placesOf(asked.firsts, this.#memory, this.#end(size));
    let place = next();
    /** Counts the phrases of a text, and goes on to the places behind it. */
    const countPhrases = (row: number): boolean => {
      const [first, to] = [matches.nextCounts(), ends[row] as number];
      let isFound = false;
      for (; place < to; place = next()) if (asked.countAt(matches.counts, first, words, place, to)) isFound = true;
      return isFound;
    };
    let [row, prefixed] = [0, this.#nextPrefixed(asked, 0)];
    for (;;) {
      while (row < size && (ends[row] as number) <= place) row++;
      const text = Math.min(row, prefixed);
      if (text === size) break;
      let isFound = text === row && countPhrases(text);
      if (text === prefixed) {
        const first = matches.nextCounts();
        asked.countPrefixes(matches.counts, first, this.#texts.ids[text] as number);
        isFound = true;
        prefixed = this.#nextPrefixed(asked, text + 1);
      }
      if (isFound) matches.add(this.#texts, text);
    }
    matches.addTotals(size - this.#removed, this.#allLengths);
  }
  /** The row of the first text, from this row on, with a prefix that is asked for; the number of rows: there is none. */
  #nextPrefixed(asked: AskedWords, from: number): number {
    const { ids, size, sources } = this.#texts;
    let row = asked.nextWithPrefix(ids, from, size);
    while (row < size && sources[row] === GONE) row = asked.nextWithPrefix(ids, row + 1, size);
    return row;
  }
  #end(rows: number): number {
    return rows === 0 ? 0 : (this.#ends[rows - 1] as number);
  }
  #rowOf(id: number): number | undefined {
    const { size, ids, sources } = this.#texts;
    let [low, high] = [0, size - 1];
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((ids[middle] as number) <= id) low = middle;
      else high = middle - 1;
    }
    return size > 0 && ids[low] === id && sources[low] !== GONE ? low : undefined;
  }
}
/** Gives one place after the other of the words before `end`, where a phrase may begin; `end`: there are no more. */
function placesOf(asked: FirstNumbers, memory: WordMemory, end: number): () => number {
  let [looked, next, places] = [0, 0, new Uint32Array()];
  return () => {
    while (next === places.length) {
      if (looked === end) return end;
      const to = Math.min(end, looked + MOST_LOOKED_AT);
      [places, next] = [memory.places(asked, looked, to), 0];
      looked = to;
    }
    return places[next++] as number;
  };
}
