/** Texts with words of a question, and how much each word says about each of them (bm25, with FTS5's numbers). PURE. */
import { AFTER, BEFORE, type Candidate, placeKey, type Place, type ValuesAt } from "./ranking.ts";
import { grown, TextColumns } from "./text-columns.ts";

const K1 = 1.2;
const B = 0.75;
/** The weight of a word that is in more than half of the texts. */
const LEAST_WEIGHT = 1e-6;
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
  #weights: Float64Array | undefined;

  constructor(words: number) {
    this.words = words;
    this.counts = new Uint8Array(FIRST_MATCHES * words);
  }
  /** Adds the numbers of all searched texts and of their words, for the average length. */
  among(texts: number, words: number): void {
    this.#allTexts += texts;
    this.#allWords += words;
  }
  /** From where on `counts` has room for the next text, with zeros. */
  next(): number {
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
    const scores = this.#owns();
    const { ats, ids } = texts;
    const order = (left: number, right: number): number =>
      (ats[right] as number) - (ats[left] as number) || (ids[right] as number) - (ids[left] as number);
    for (const step of inSteps(scores))
      for (const match of inOrder(step, order)) yield { ...texts.at(match), score: scores[match] as number };
  }
  /** How much each word says about these texts and the ones around them, by their places. */
  valuesAround(around: readonly Place[]): ValuesAt {
    const wanted = new PlaceSet();
    for (const { source, ord } of around) for (let step = -BEFORE; step <= AFTER; step++) wanted.add(source, ord + step);
    const { size, sources, ords } = this.#texts;
    const values = new Map<number, readonly number[]>();
    for (let match = 0; match < size; match++) {
      const [source, ord] = [sources[match] as number, ords[match] as number];
      if (wanted.has(source, ord)) values.set(placeKey(source, ord), this.#valuesOf(match));
    }
    return (source, ord) => values.get(placeKey(source, ord));
  }
  #owns(): Float64Array {
    const [words, counts, weights, { size, lengths }] = [this.words, this.counts, this.#weighed(), this.#texts];
    const scores = new Float64Array(size);
    for (let match = 0, at = 0; match < size; match++) {
      const least = this.#least(lengths[match] as number);
      let sum = 0;
      for (let word = 0; word < words; word++, at++) {
        const count = counts[at] as number;
        if (count !== 0) sum += value(weights[word] as number, count, least);
      }
      scores[match] = sum;
    }
    return scores;
  }
  #valuesOf(match: number): readonly number[] {
    const least = this.#least(this.#texts.lengths[match] as number);
    const [from, weights] = [match * this.words, this.#weighed()];
    const values: number[] = [];
    for (let word = 0; word < this.words; word++) values.push(value(weights[word] as number, this.counts[from + word] as number, least));
    return values;
  }
  /** The longer a text is, the less one of its words says. */
  #least(length: number): number {
    return K1 * (1 - B + (B * length * this.#allTexts) / this.#allWords);
  }
  /** What each word weighs: the fewer texts have it, the more. */
  #weighed(): Float64Array {
    if (this.#weights !== undefined) return this.#weights;
    const having = new Uint32Array(this.words);
    const counts = this.counts;
    for (let at = 0, end = this.#texts.size * this.words; at < end; )
      for (let word = 0; word < this.words; word++, at++) if (counts[at] !== 0) having[word] = (having[word] as number) + 1;
    this.#weights = Float64Array.from(having, (texts) => Math.max(LEAST_WEIGHT, Math.log((this.#allTexts - texts + 0.5) / (texts + 0.5))));
    return this.#weights;
  }
}
const value = (weight: number, count: number, least: number): number => (weight * count * (K1 + 1)) / (count + least);

/** Places of texts. Most others are refused by one look at a bit. */
class PlaceSet {
  readonly #keys = new Set<number>();
  readonly #bits = new Uint8Array(PLACE_BITS);

  add(source: number, ord: number): void {
    this.#keys.add(placeKey(source, ord));
    this.#bits[bitOf(source, ord)] = 1;
  }
  has(source: number, ord: number): boolean {
    return this.#bits[bitOf(source, ord)] === 1 && this.#keys.has(placeKey(source, ord));
  }
}
/** A power of two, and many times as many as the places around a page of hits. */
const PLACE_BITS = 65_536;
const bitOf = (source: number, ord: number): number => (Math.imul(source, 40_503) + ord) & (PLACE_BITS - 1);

/** The indexes of the scores by their steps, the highest first: counting puts them into order. */
function* inSteps(scores: Float64Array): IterableIterator<Uint32Array> {
  const steps = new Uint32Array(scores.length);
  let most = 0;
  for (let index = 0; index < steps.length; index++) {
    const step = Math.trunc((scores[index] as number) * STEPS);
    steps[index] = step;
    if (step > most) most = step;
  }
  const begins = new Uint32Array(most + 2);
  for (let index = 0; index < steps.length; index++)
    begins[(steps[index] as number) + 1] = (begins[(steps[index] as number) + 1] as number) + 1;
  for (let step = 0; step <= most; step++) begins[step + 1] = (begins[step + 1] as number) + (begins[step] as number);
  const [sorted, next] = [new Uint32Array(steps.length), begins.slice()];
  for (let index = 0; index < steps.length; index++) {
    const at = next[steps[index] as number] as number;
    sorted[at] = index;
    next[steps[index] as number] = at + 1;
  }
  for (let step = most; step >= 0; step--) yield sorted.subarray(begins[step], begins[step + 1]);
}
/** The items in this order. The first few of many take little more than one look at each. */
function* inOrder(items: Uint32Array, order: (left: number, right: number) => number): IterableIterator<number> {
  const sink = (from: number, end: number): void => {
    const sunk = items[from] as number;
    let at = from;
    for (let child = 2 * at + 1; child < end; child = 2 * at + 1) {
      if (child + 1 < end && order(items[child + 1] as number, items[child] as number) < 0) child++;
      if (order(sunk, items[child] as number) <= 0) break;
      items[at] = items[child] as number;
      at = child;
    }
    items[at] = sunk;
  };
  for (let at = (items.length >>> 1) - 1; at >= 0; at--) sink(at, items.length);
  for (let end = items.length; end > 0; ) {
    yield items[0] as number;
    items[0] = items[--end] as number;
    sink(0, end);
  }
}
