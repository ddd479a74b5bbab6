/** Texts with words of a question, and how much each word says about each of them (bm25, with FTS5's numbers). PURE. */
import { AFTER, BEFORE, type Candidate, placeKey, type Place, type ValuesAt } from "./ranking.ts";

const K1 = 1.2;
const B = 0.75;
/** The weight of a word that is in more than half of the texts. */
const LEAST_WEIGHT = 1e-6;
/** Own scores that agree to two decimals count as equal; then the later text comes first. */
const STEPS = 100;
const FIRST_MATCHES = 1_024;

export type Scored = Candidate & { readonly score: number };

export class WordMatches {
  /** How many words are asked for. */
  readonly words: number;
  #size = 0;
  readonly #ids: number[] = [];
  readonly #sources: number[] = [];
  readonly #ords: number[] = [];
  readonly #ats: number[] = [];
  readonly #lengths: number[] = [];
  /** How often each word is in each match. */
  #counts: Uint8Array;
  #allTexts = 0;
  #allWords = 0;
  #weights: Float64Array | undefined;

  constructor(words: number) {
    this.words = words;
    this.#counts = new Uint8Array(FIRST_MATCHES * words);
  }
  /** Adds the numbers of all searched texts and of their words, for the average length. */
  among(texts: number, words: number): void {
    this.#allTexts += texts;
    this.#allWords += words;
  }
  /** A text with one of the words. `length`: of the text, in words; `counts`, from `first` on: how often each word is in it. */
  add({ id, source, ord, at }: Candidate, length: number, counts: Uint8Array, first = 0): void {
    this.#ids.push(id);
    this.#sources.push(source);
    this.#ords.push(ord);
    this.#ats.push(at);
    this.#lengths.push(length);
    const from = this.#size++ * this.words;
    if (from + this.words > this.#counts.length) {
      const more = new Uint8Array(this.#counts.length * 2);
      more.set(this.#counts);
      this.#counts = more;
    }
    for (let word = 0; word < this.words; word++) this.#counts[from + word] = counts[first + word] as number;
  }

  /** Matches by their own words, the best first. */
  *best(): IterableIterator<Scored> {
    const scores = this.#owns();
    const steps = new Int32Array(this.#size);
    let most = 0;
    for (let match = 0; match < this.#size; match++) {
      const step = Math.trunc((scores[match] as number) * STEPS);
      steps[match] = step;
      if (step > most) most = step;
    }
    // Counting puts the steps into order. A step is sorted when its first text is taken.
    const begins = new Uint32Array(most + 2);
    for (let match = 0; match < this.#size; match++)
      begins[(steps[match] as number) + 1] = (begins[(steps[match] as number) + 1] as number) + 1;
    for (let step = 0; step <= most; step++) begins[step + 1] = (begins[step + 1] as number) + (begins[step] as number);
    const next = begins.slice();
    const inOrder = new Uint32Array(this.#size);
    for (let match = 0; match < this.#size; match++) {
      const at = next[steps[match] as number] as number;
      inOrder[at] = match;
      next[steps[match] as number] = at + 1;
    }
    const [ats, ids] = [this.#ats, this.#ids];
    const later = (left: number, right: number): number =>
      (ats[right] as number) - (ats[left] as number) || (ids[right] as number) - (ids[left] as number);
    for (let step = most; step >= 0; step--)
      for (const match of inOrder.subarray(begins[step], begins[step + 1]).sort(later))
        yield {
          id: ids[match] as number,
          source: this.#sources[match] as number,
          ord: this.#ords[match] as number,
          at: ats[match] as number,
          score: scores[match] as number,
        };
  }
  /** How much each word says about these texts and the ones around them, by their places. */
  valuesAround(texts: readonly Place[]): ValuesAt {
    const wanted = new Set<number>();
    for (const { source, ord } of texts) for (let step = -BEFORE; step <= AFTER; step++) wanted.add(placeKey(source, ord + step));
    const values = new Map<number, Float64Array>();
    for (let match = 0; match < this.#size; match++) {
      const number = placeKey(this.#sources[match] as number, this.#ords[match] as number);
      if (!wanted.has(number)) continue;
      const ofWords = new Float64Array(this.words);
      for (let word = 0; word < this.words; word++) ofWords[word] = this.#value(match, word);
      values.set(number, ofWords);
    }
    return (source, ord) => values.get(placeKey(source, ord));
  }
  #owns(): Float64Array {
    const scores = new Float64Array(this.#size);
    for (let match = 0; match < this.#size; match++) {
      let sum = 0;
      for (let word = 0; word < this.words; word++) sum += this.#value(match, word);
      scores[match] = sum;
    }
    return scores;
  }
  #value(match: number, word: number): number {
    const count = this.#counts[match * this.words + word] as number;
    if (count === 0) return 0;
    this.#weights ??= this.#weighed();
    const length = ((this.#lengths[match] as number) * this.#allTexts) / this.#allWords;
    return ((this.#weights[word] as number) * count * (K1 + 1)) / (count + K1 * (1 - B + B * length));
  }
  /** What a word weighs: the fewer texts have it, the more. */
  #weighed(): Float64Array {
    return Float64Array.from({ length: this.words }, (_, word) => {
      let having = 0;
      for (let at = word; at < this.#size * this.words; at += this.words) if (this.#counts[at] !== 0) having++;
      return Math.max(LEAST_WEIGHT, Math.log((this.#allTexts - having + 0.5) / (having + 0.5)));
    });
  }
}
