/** The order of search hits: scores of words, of neighbours and of meaning, and hits that stand together. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { apart, type Candidate, type IndexedText, ranked as rankedBy, relative } from "./ranking.ts";

const text = (id: number, ord = id, source = 1, at = 0): Candidate => ({ id, source, ord, at });
/**
 * Ranks `texts`. `words`: for each word of the query, its score in each text that has it, by the id of the text. `others`: texts of the
 * index that are no candidates.
 */
const ranked = (texts: readonly Candidate[], others: readonly IndexedText[], words: readonly ReadonlyMap<number, number>[]) =>
  rankedBy(
    texts,
    (source, ord) => {
      const id = [...others, ...texts].find((one) => one.source === source && one.ord === ord)?.id;
      return id === undefined ? undefined : words.map((values) => values.get(id) ?? 0);
    },
    words.length,
  );
const ids = (hits: readonly { readonly id: number }[]): number[] => hits.map(({ id }) => id);

describe("[SE3] [F67] the order of hits", () => {
  test("more words, and rarer ones, come first; scores are from 0 to 1", () => {
    const words = [
      new Map([
        [1, 2],
        [2, 2],
      ]),
      new Map([
        [2, 5],
        [3, 5],
      ]),
    ];
    const hits = ranked([text(1, 10), text(2, 20), text(3, 30)], [], words);
    assert.deepEqual(ids(hits), [2, 3, 1]);
    assert.equal(hits[0]?.score, 1);
    assert.ok(hits.every(({ score }) => score >= 0 && score <= 1));
  });
  test("a word that a neighbour has counts, but less than one of its own, and only in the same source", () => {
    const words = [
      new Map([
        [1, 3],
        [4, 3],
      ]),
      new Map([
        [2, 3],
        [9, 3],
      ]),
    ];
    const [answer, alone, own] = [text(1), text(4, 40), text(9, 41, 2)];
    assert.deepEqual(ids(ranked([alone, answer, own], [answer, text(2), alone, own], words)).at(0), 1);
  });
  test("the same word in a neighbour adds nothing: equal texts stay in the order of time", () => {
    const texts = [text(1, 1, 1, 100), text(2, 2, 1, 200), text(3, 3, 1, 300)];
    assert.deepEqual(
      ids(
        ranked(texts, texts, [
          new Map([
            [1, 2],
            [2, 2],
            [3, 2],
          ]),
        ]),
      ),
      [3, 2, 1],
    );
  });
  test("the two texts before and the one after count as neighbours, no others", () => {
    const others = [1, 2, 3, 4, 5, 6, 7].map((id) => text(id));
    const scoreBeside = (neighbour: number): number =>
      ranked([text(4), text(40)], [...others, text(40)], [new Map([[40, 1]]), new Map([[neighbour, 1]])]).find(({ id }) => id === 4)
        ?.score ?? -1;
    assert.deepEqual(
      [1, 2, 3, 5, 6].map((neighbour) => scoreBeside(neighbour) > 0),
      [false, true, true, true, false],
    );
  });
  test("equal scores at the same time: the later text first", () => {
    assert.deepEqual(ids(ranked([text(1, 1, 1, 5), text(3, 3, 1, 5), text(2, 2, 1, 5)], [], [])), [3, 2, 1]);
  });
  test("without words and without candidates nothing breaks", () => {
    assert.deepEqual(ranked([], [], []), []);
    assert.deepEqual(ids(ranked([text(1, 1, 1, 5), text(2, 2, 1, 9)], [], [])), [2, 1]);
  });
  test("[LM9] the first score is 1, also when it is tiny or large, and no later score is higher", () => {
    const scoresOf = (scores: readonly number[], most = 1) =>
      relative(
        scores.map((score) => ({ score })),
        most,
      ).map(({ score }) => score);
    assert.deepEqual(scoresOf([1e-6, 2e-6, 5e-7]), [1, 1, 0.5]);
    assert.deepEqual(scoresOf([8, 4]), [1, 0.5]);
    assert.deepEqual(scoresOf([8, 4], 0.25), [0.25, 0.125]);
    assert.deepEqual([scoresOf([]), scoresOf([0, 0])], [[], [0, 0]]);
  });
  test("hits that are shown beside a better one are left out", () => {
    const hits = [text(5), text(4), text(3), text(6), text(2), text(7), text(5, 5, 2)];
    assert.deepEqual(
      apart(hits, 10).map(({ source, ord }) => `${source}/${ord}`),
      ["1/5", "1/2", "1/7", "2/5"],
    );
  });
});
