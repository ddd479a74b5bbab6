/** Texts with words of a question, and how much each word says about each of them (bm25, with FTS5's numbers). PURE. */
import { AFTER, BEFORE, type Candidate, textKey, type IndexedText, type ValuesAt } from "./ranking.ts";
import { bestFirst } from "./best-first.ts";
import { grown, TextColumns } from "./text-columns.ts";

const K1 = 1.2;
const B = 0.75;
/** The weight of a word that is in more than half of the texts. */
const MIN_IDF = 1e-6;
/** Own scores that agree to two decimals count as equal; then the later text comes first. */
const STEPS = 100;
const FIRST_MATCHES = 4_096;

export type Scored = Candidate & { readonly score: number };

export class WordMatches {
  /** How many words are asked for. */
  readonly words: number;
  readonly #texts = new TextColumns(FIRST_MATCHES);
  /** How often each word is in each match. */
  counts: Uint8Array;
  #allTexts = 0;
  #allWords = 0;
  #idfs: Float64Array | undefined;

  constructor(words: number) {
    this.words = words;
    this.counts = new Uint8Array(FIRST_MATCHES * words);
  }
  /** Adds the numbers of all searched texts and of their words, for the average length. */
  addTotals(texts: number, words: number): void {
    this.#allTexts += texts;
    this.#allWords += words;
  }
  /** From where on `counts` has room for the next text, with zeros. */
  nextCounts(): number {
    const first = this.#texts.size * this.words;
    if (first + this.words > this.counts.length) this.counts = grown(this.counts, this.counts.length * 2);
    return first;
  }
  /** The text in this row has one of the words: the counts of the next text are its. */
  add(texts: TextColumns, row: number): void {
    this.#texts.copy(texts, row);
  }

  /** Matches by their own words, the best first. */
  *best(): IterableIterator<Scored> {
    const texts = this.#texts;
    const scores = this.#scores();
    const { ats, ids } = texts;
    const later = (left: number, right: number): number =>
      (ats[right] as number) - (ats[left] as number) || (ids[right] as number) - (ids[left] as number);
    for (const match of bestFirst(scores, STEPS, later)) yield { ...texts.at(match), score: scores[match] as number };
  }
  /** How much each word says about these texts and the ones around them, by source and number. */
  termScoresAround(around: readonly IndexedText[]): ValuesAt {
    const wanted = new TextSet();
    for (const { source, ord } of around) for (let step = -BEFORE; step <= AFTER; step++) wanted.add(source, ord + step);
    const { size, sources, ords } = this.#texts;
    const values = new Map<number, readonly number[]>();
    for (let match = 0; match < size; match++) {
      const [source, ord] = [sources[match] as number, ords[match] as number];
      if (wanted.has(source, ord)) values.set(textKey(source, ord), this.#termScores(match));
    }
    return (source, ord) => values.get(textKey(source, ord));
  }
  #scores(): Float64Array {
    const [words, counts, idfs, { size, lengths }] = [this.words, this.counts, this.#allIdfs(), this.#texts];
    const scores = new Float64Array(size);
    for (let match = 0, at = 0; match < size; match++) {
      const lengthNorm = this.#lengthNorm(lengths[match] as number);
      let sum = 0;
      for (let word = 0; word < words; word++, at++) {
        const count = counts[at] as number;
        if (count !== 0) sum += bm25(idfs[word] as number, count, lengthNorm);
      }
      scores[match] = sum;
    }
    return scores;
  }
  #termScores(match: number): readonly number[] {
    const lengthNorm = this.#lengthNorm(this.#texts.lengths[match] as number);
    const [from, idfs] = [match * this.words, this.#allIdfs()];
    const values: number[] = [];
    for (let word = 0; word < this.words; word++) values.push(bm25(idfs[word] as number, this.counts[from + word] as number, lengthNorm));
    return values;
  }
  /** The longer a text is, the less one of its words says. */
  #lengthNorm(length: number): number {
    return K1 * (1 - B + (B * length * this.#allTexts) / this.#allWords);
  }
  /** Inverse document frequencies: the fewer texts have a word, the more it says. */
  #allIdfs(): Float64Array {
    if (this.#idfs !== undefined) return this.#idfs;
    const having = new Uint32Array(this.words);
    const counts = this.counts;
    for (let at = 0, end = this.#texts.size * this.words; at < end; )
      for (let word = 0; word < this.words; word++, at++) if (counts[at] !== 0) having[word] = (having[word] as number) + 1;
    this.#idfs = Float64Array.from(having, (texts) => Math.max(MIN_IDF, Math.log((this.#allTexts - texts + 0.5) / (texts + 0.5))));
    return this.#idfs;
  }
}
const bm25 = (idf: number, frequency: number, lengthNorm: number): number => (idf * frequency * (K1 + 1)) / (frequency + lengthNorm);

/** Texts of the index, by source and number. Most others are refused by one look at a bit. */
class TextSet {
  readonly #keys = new Set<number>();
  readonly #bits = new Uint8Array(TEXT_BITS);

  add(source: number, ord: number): void {
    this.#keys.add(textKey(source, ord));
    this.#bits[bitOf(source, ord)] = 1;
  }
  has(source: number, ord: number): boolean {
    return this.#bits[bitOf(source, ord)] === 1 && this.#keys.has(textKey(source, ord));
  }
}
/** A power of two, and many times as many as the texts around a page of hits. */
const TEXT_BITS = 65_536;
const bitOf = (source: number, ord: number): number => (Math.imul(source, 40_503) + ord) & (TEXT_BITS - 1);
