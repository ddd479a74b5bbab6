/**
 * The words of an index's texts in one piece of memory, for an exact search: FTS5 takes about a hundred times as long to score a text. PURE.
 * A mirror of the table `words`, which can be dropped at any time.
 */
import { type AskedWords, MOST_COUNTED } from "./asked-words.ts";
import type { Candidate } from "./ranking.ts";
import type { WordMatches } from "./word-matches.ts";
import { WordRows } from "./word-rows.ts";

export interface WordedText {
  /** Higher than that of every text that is in the table. */
  readonly id: number;
  readonly source: number;
  readonly ord: number;
  readonly at: number;
  /** The numbers of its words in their order. 0 separates words that do not follow each other. */
  readonly words: Int32Array;
}
export interface WordTableLimits {
  readonly mostWords?: number;
  /** Words up to which rows are noted by their words. */
  readonly mostIndexed?: number;
  /** Questions that are answered by scans before they are. */
  readonly scans?: number;
}
/** The source of a text that was removed: those of others begin at 1. */
const GONE = 0;
const FIRST_TEXTS = 1_024;
const FIRST_WORDS = 32_768;
/** Words of a table whose rows are found by their words: those of about 20,000 messages. The words of a larger one are scanned. */
const MOST_INDEXED = 400_000;
/** Scans before the rows are noted by their words: that takes as long as so many scans, which few questions are not worth. */
const SCANS = 20;
/** A place of a word takes as long as so many words of a scan. */
const PLACES_TO_SCAN = 3;
/** Growth factor of a full array. */
const GROWTH = 1.5;

export class WordTable {
  readonly #mostWords: number;
  readonly #mostIndexed: number;
  #size = 0;
  #removed = 0;
  /** Of the texts that are not removed. */
  #allLengths = 0;
  /** Until the rows are noted by their words. */
  #scansLeft: number;
  #rows: WordRows | undefined;
  #ids = new Float64Array(FIRST_TEXTS);
  #sources = new Float64Array(FIRST_TEXTS);
  #ords = new Float64Array(FIRST_TEXTS);
  #ats = new Float64Array(FIRST_TEXTS);
  /** Where the words of each text end. Those of the next one begin there. */
  #ends = new Uint32Array(FIRST_TEXTS);
  /** How many words each text has. */
  #lengths = new Uint32Array(FIRST_TEXTS);
  #words = new Int32Array(FIRST_WORDS);

  constructor({ mostWords = Number.MAX_SAFE_INTEGER, mostIndexed = MOST_INDEXED, scans = SCANS }: WordTableLimits = {}) {
    this.#mostWords = mostWords;
    this.#mostIndexed = mostIndexed;
    this.#scansLeft = scans;
  }
  /** False: there is no room for it, or its id is not the highest. */
  put({ id, source, ord, at, words }: WordedText): boolean {
    // SQLite gives the ids of removed last texts again.
    while (this.#size > 0 && this.#sources[this.#size - 1] === GONE) {
      this.#size--;
      this.#removed--;
    }
    const from = this.#end(this.#size);
    const to = from + words.length;
    if (to > this.#mostWords || (this.#size > 0 && id <= (this.#ids[this.#size - 1] as number))) return false;
    this.#reserve(to);
    const row = this.#size++;
    this.#ids[row] = id;
    this.#sources[row] = source;
    this.#ords[row] = ord;
    this.#ats[row] = at;
    this.#words.set(words, from);
    this.#ends[row] = to;
    const length = words.length - (words.includes(0) ? 1 : 0);
    this.#lengths[row] = length;
    this.#allLengths += length;
    if (to > this.#mostIndexed) this.#rows = undefined;
    else this.#rows?.add(row, words);
    return true;
  }
  /** Its words are overwritten. */
  remove(id: number): void {
    const row = this.#rowOf(id);
    if (row === undefined) return;
    this.#sources[row] = GONE;
    this.#allLengths -= this.#lengths[row] as number;
    const words = this.#words.subarray(this.#end(row), this.#end(row + 1));
    this.#rows?.remove(row, words);
    words.fill(0);
    this.#removed++;
  }
  /** Most rows are removed texts: it is worth reading the others again. */
  get isSparse(): boolean {
    return this.#removed > FIRST_TEXTS && this.#removed > this.#size / 2;
  }
  /** Adds every text with one of the words to `matches`. */
  find(asked: AskedWords, matches: WordMatches): void {
    const rows = asked.numbers === undefined ? undefined : this.#indexed();
    if (asked.numbers !== undefined && rows !== undefined && this.#isRare(asked.numbers, rows)) this.#look(asked.numbers, rows, matches);
    else this.#scan(asked, matches);
    matches.among(this.#size - this.#removed, this.#allLengths);
  }
  #scan(asked: AskedWords, matches: WordMatches): void {
    const counts = new Uint8Array(asked.size);
    for (let row = 0, from = 0; row < this.#size; row++) {
      const to = this.#ends[row] as number;
      if (this.#sources[row] !== GONE && asked.countInto(counts, this.#ids[row] as number, this.#words, from, to)) {
        matches.add(this.#at(row), this.#lengths[row] as number, counts);
        counts.fill(0);
      }
      from = to;
    }
  }
  /** Words that most texts have are found sooner by a scan. The counts must not take more memory than the words. */
  #isRare(numbers: readonly number[], rows: WordRows): boolean {
    const places = numbers.reduce((sum, number) => sum + rows.of(number).length, 0);
    const words = this.#end(this.#size);
    return places * PLACES_TO_SCAN <= words && this.#size * numbers.length <= words * Int32Array.BYTES_PER_ELEMENT;
  }
  #look(numbers: readonly number[], rows: WordRows, matches: WordMatches): void {
    const counts = new Uint8Array(this.#size * numbers.length);
    const isFound = new Uint8Array(this.#size);
    const found: number[] = [];
    for (const [index, number] of numbers.entries())
      for (const row of rows.of(number)) {
        const at = row * numbers.length + index;
        const count = counts[at] as number;
        if (count < MOST_COUNTED) counts[at] = count + 1;
        if (isFound[row] !== 0) continue;
        isFound[row] = 1;
        found.push(row);
      }
    for (const row of found) matches.add(this.#at(row), this.#lengths[row] as number, counts, row * numbers.length);
  }
  #at(row: number): Candidate {
    return {
      id: this.#ids[row] as number,
      source: this.#sources[row] as number,
      ord: this.#ords[row] as number,
      at: this.#ats[row] as number,
    };
  }
  /** Undefined: the table is too large for it, or too few questions came. */
  #indexed(): WordRows | undefined {
    if (this.#rows === undefined && this.#end(this.#size) <= this.#mostIndexed && this.#scansLeft-- <= 0) {
      const rows = new WordRows();
      for (let row = 0; row < this.#size; row++) rows.add(row, this.#words.subarray(this.#end(row), this.#end(row + 1)));
      this.#rows = rows;
    }
    return this.#rows;
  }
  #end(rows: number): number {
    return rows === 0 ? 0 : (this.#ends[rows - 1] as number);
  }
  #rowOf(id: number): number | undefined {
    let [low, high] = [0, this.#size - 1];
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#ids[middle] as number) <= id) low = middle;
      else high = middle - 1;
    }
    return this.#size > 0 && this.#ids[low] === id && this.#sources[low] !== GONE ? low : undefined;
  }
  #reserve(words: number): void {
    if (words > this.#words.length) this.#words = grown(this.#words, Math.min(this.#mostWords, Math.ceil(words * GROWTH)));
    if (this.#size < this.#ids.length) return;
    const most = Math.ceil(this.#ids.length * GROWTH);
    this.#ids = grown(this.#ids, most);
    this.#sources = grown(this.#sources, most);
    this.#ords = grown(this.#ords, most);
    this.#ats = grown(this.#ats, most);
    this.#ends = grown(this.#ends, most);
    this.#lengths = grown(this.#lengths, most);
  }
}
function grown<Values extends Float64Array | Uint32Array | Int32Array>(values: Values, size: number): Values {
  const more = new (values.constructor as new (size: number) => Values)(size);
  more.set(values);
  return more;
}
