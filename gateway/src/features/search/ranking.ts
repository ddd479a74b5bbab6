/**
 * The order of hits (gateway rules SE3, LM11). PURE. A text has two scores, one for its own words and one for the words of its place: an answer
 * often does not repeat the words of its question, but its neighbours have them. The two differ in size, so each is scaled to 0..1 before
 * they are added.
 */

/** A text. Its neighbours have the numbers beside `ord` in the same source. */
export type Place = { readonly id: number; readonly source: number; readonly ord: number };
/** A text that may be a hit. */
export type Candidate = Place & { readonly at: number };
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

/**
 * Candidates with scores, the best first. `words` has a map for each word of the query: the word's score in each text, by the text's id,
 * neighbours included; `nearness` has how near texts are to the question, from 0 to 1. Scores that agree to three decimals count as equal; then the later text comes first.
 */
export function ranked<C extends Candidate>(
  candidates: readonly C[],
  places: readonly Place[],
  words: readonly ReadonlyMap<number, number>[],
  nearness?: ReadonlyMap<number, number>,
): readonly (C & { readonly score: number })[] {
  const ids = new Map<number, Map<number, number>>();
  for (const { source, ord, id } of places) within(ids, source).set(ord, id);
  let mostOwn = Number.MIN_VALUE;
  let mostPlace = Number.MIN_VALUE;
  const valued = candidates.map((candidate) => {
    const ofSource = ids.get(candidate.source);
    const beside: number[] = [];
    for (let step = -BEFORE; step <= AFTER; step++) {
      const id = ofSource?.get(candidate.ord + step);
      if (id !== undefined) beside.push(id);
    }
    let own = 0;
    let place = 0;
    for (const values of words) {
      const mine = values.get(candidate.id) ?? 0;
      let best = mine;
      for (const id of beside) best = Math.max(best, NEIGHBOUR * (values.get(id) ?? 0));
      own += mine;
      place += best;
    }
    mostOwn = Math.max(mostOwn, own);
    mostPlace = Math.max(mostPlace, place);
    return { candidate, own, place };
  });
  const byWords = valued.map(({ candidate, own, place }) => ({
    ...candidate,
    score: PLACE_SHARE * (place / mostPlace) + (1 - PLACE_SHARE) * (own / mostOwn),
  }));
  return (nearness === undefined ? byWords : withMeaning(byWords, nearness))
    .map((text) => ({ ...text, score: rounded(text.score) }))
    .sort((left, right) => right.score - left.score || right.at - left.at || right.id - left.id);
}
/** Cosines of one model as nearness: the best one is 1. Cosines of different models say different things and are never compared. */
export function scaled(cosines: ReadonlyMap<number, number>): ReadonlyMap<number, number> {
  const nearest = Math.max(Number.MIN_VALUE, ...cosines.values());
  return new Map([...cosines].map(([id, cosine]) => [id, Math.max(0, cosine) / nearest]));
}
/** Adds how near each text is to the question, lets neighbours share, and scales the best score to 1. */
function withMeaning<C extends Candidate & { readonly score: number }>(
  texts: readonly C[],
  nearness: ReadonlyMap<number, number>,
): readonly C[] {
  const valued = texts.map((text) => ({
    ...text,
    score: text.score + MEANING_SHARE * (nearness.get(text.id) ?? 0),
  }));
  const at = new Map(valued.map(({ source, ord, score }) => [`${source} ${ord}`, score]));
  const shared = valued.map((text) => {
    const beside = (at.get(`${text.source} ${text.ord - 1}`) ?? 0) + (at.get(`${text.source} ${text.ord + 1}`) ?? 0);
    return { ...text, score: text.score + NEIGHBOUR_SHARE * beside };
  });
  const best = Math.max(Number.MIN_VALUE, ...shared.map(({ score }) => score));
  return shared.map((text) => ({ ...text, score: text.score / best }));
}
/** The map of a source; a new one for a source without. */
function within<V>(bySource: Map<number, Map<number, V>>, source: number): Map<number, V> {
  const known = bySource.get(source);
  if (known !== undefined) return known;
  const made = new Map<number, V>();
  bySource.set(source, made);
  return made;
}
const rounded = (score: number): number => Math.round(score * 1000) / 1000;

/** Hits without those that are shown around a better one. */
export function apart<C extends Pick<Place, "source" | "ord">>(hits: readonly C[]): readonly C[] {
  const kept: C[] = [];
  for (const hit of hits) {
    const isShown = kept.some(({ source, ord }) => source === hit.source && hit.ord >= ord - BEFORE && hit.ord <= ord + AFTER);
    if (!isShown) kept.push(hit);
  }
  return kept;
}
