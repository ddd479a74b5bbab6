/**
 * The order of hits (gateway rules SE3, LM11). PURE. A text has two scores, one for its own words and one for the words of its place: an answer
 * often does not repeat the words of its question, but its neighbours have them. The two differ in size, so each is scaled to 0..1 before
 * they are added.
 */

/** A text. Its neighbours have the numbers beside `ord` in the same source. */
export type IndexedText = { readonly id: number; readonly source: number; readonly ord: number };
/** More than the texts of a source. */
export const ORDS = 2 ** 22;
/** A source and the number of a text in it as one number: SQLite takes pairs apart several times slower. */
export const textKey = (source: number, ord: number): number => source * ORDS + ord;
/** A text that may be a hit. */
export type Candidate = IndexedText & { readonly at: number };
/** How many texts before and after a hit count as its place, and are shown with it. */
export const BEFORE = 2;
export const AFTER = 1;
const PLACE_SHARE = 0.6;
/** What the nearness of a text adds to the scores of words. */
const MEANING_SHARE = 0.3;
/** What a text gives of its score to the texts right beside it. */
const NEIGHBOUR_SHARE = 0.15;
/** The weight of a word in a neighbour; a word in the text itself has 1. */
const NEIGHBOUR = 0.7;

/** How much each word of the query says about a text; undefined: it has none of them. */
export type ValuesAt = (source: number, ord: number) => ArrayLike<number> | undefined;

/**
 * Candidates with scores, the best first. `nearness` has how near texts are to the question, from 0 to 1. Scores that agree to three decimals
 * count as equal; then the later text comes first.
 */
export function ranked<C extends Candidate>(
  candidates: readonly C[],
  valuesAt: ValuesAt,
  words: number,
  nearness?: ReadonlyMap<number, number>,
): readonly (C & { readonly score: number })[] {
  let mostOwn = Number.MIN_VALUE;
  let mostPlace = Number.MIN_VALUE;
  const [owns, places] = [new Float64Array(candidates.length), new Float64Array(candidates.length)];
  for (const [index, { source, ord }] of candidates.entries()) {
    const mine = valuesAt(source, ord);
    const beside: ArrayLike<number>[] = [];
    for (let step = -BEFORE; step <= AFTER; step++) {
      const values = step === 0 ? undefined : valuesAt(source, ord + step);
      if (values !== undefined) beside.push(values);
    }
    let own = 0;
    let place = 0;
    for (let word = 0; word < words; word++) {
      const value = mine?.[word] ?? 0;
      let best = value;
      for (const values of beside) best = Math.max(best, NEIGHBOUR * (values[word] ?? 0));
      own += value;
      place += best;
    }
    mostOwn = Math.max(mostOwn, own);
    mostPlace = Math.max(mostPlace, place);
    owns[index] = own;
    places[index] = place;
  }
  const byWords = places.map((place, index) => PLACE_SHARE * (place / mostPlace) + (1 - PLACE_SHARE) * ((owns[index] as number) / mostOwn));
  const scores = nearness === undefined ? byWords : withMeaning(candidates, byWords, nearness);
  return candidates
    .map((candidate, index) => ({ ...candidate, score: rounded(scores[index] as number) }))
    .sort((left, right) => right.score - left.score || right.at - left.at || right.id - left.id);
}
/** Cosines of one model as nearness: the best one is 1. Cosines of different models say different things and are never compared. */
export function scaled(cosines: ReadonlyMap<number, number>): ReadonlyMap<number, number> {
  let nearest = Number.MIN_VALUE;
  for (const cosine of cosines.values()) nearest = Math.max(nearest, cosine);
  const nearness = new Map<number, number>();
  for (const [id, cosine] of cosines) nearness.set(id, Math.max(0, cosine) / nearest);
  return nearness;
}
/** Adds how near each text is to the question, lets neighbours share, and scales the best score to 1. */
function withMeaning(texts: readonly IndexedText[], byWords: Float64Array, nearness: ReadonlyMap<number, number>): Float64Array {
  const valued = byWords.map((score, index) => score + MEANING_SHARE * (nearness.get((texts[index] as IndexedText).id) ?? 0));
  const at = new Map<number, number>();
  for (const [index, { source, ord }] of texts.entries()) at.set(textKey(source, ord), valued[index] as number);
  const shared = valued.map((score, index) => {
    const { source, ord } = texts[index] as IndexedText;
    const beside = (ord === 0 ? 0 : (at.get(textKey(source, ord - 1)) ?? 0)) + (at.get(textKey(source, ord + 1)) ?? 0);
    return score + NEIGHBOUR_SHARE * beside;
  });
  const best = shared.reduce((most, score) => Math.max(most, score), Number.MIN_VALUE);
  return shared.map((score) => score / best);
}
const rounded = (score: number): number => Math.round(score * 1000) / 1000;

/**
 * The texts in their order, with scores from 0 to `most` that do not rise: the first one has `most`. How large a score is says little by
 * itself: a word that is in most of a few texts weighs almost nothing, and its only match is still the best one.
 */
export function relative<C extends { readonly score: number }>(texts: readonly C[], most: number): readonly C[] {
  const first = texts[0]?.score ?? 0;
  if (first <= 0) return texts;
  let last = most;
  return texts.map((text) => {
    last = Math.min(last, (most * text.score) / first);
    return { ...text, score: last };
  });
}

/** The first `most` hits without those that are shown around a better one. */
export function apart<C extends Pick<IndexedText, "source" | "ord">>(hits: readonly C[], most: number): readonly C[] {
  const kept: C[] = [];
  for (const hit of hits) {
    if (kept.length === most) break;
    const isShown = kept.some(({ source, ord }) => source === hit.source && hit.ord >= ord - BEFORE && hit.ord <= ord + AFTER);
    if (!isShown) kept.push(hit);
  }
  return kept;
}
