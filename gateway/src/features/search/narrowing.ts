/**
 * Which texts are looked at for a question whose words are in very many texts (gateway rule SE3). PURE. Scoring a text takes much longer than
 * finding it, and one with several words of the question comes before one with a single common word. So of many texts only those are scored that
 * have a rare word, or some of the common ones together.
 */
/** So many texts are scored as they are. */
const FEW_TEXTS = 1_000;
/** Of more texts only those are scored that have three of the common words, where there are enough of them. */
const MANY_TEXTS = 10_000;
/** Texts with a word are counted up to this number. */
export const MOST_COUNTED = 4_000;
/** Texts of all rare words together. A word in more texts is common. */
const RARE_TEXTS = 300;
/** Common words that are looked for together: the rarest. All of them rank. */
const MOST_COMMON = 8;

/**
 * An expression of FTS5 for texts with a rare word or with `together` of the common ones. `counts`: in how many texts each word is, at most
 * `MOST_COUNTED`. Undefined: there are too few texts or words to leave any out.
 */
export function narrowed(words: readonly string[], counts: readonly number[], together: number): string | undefined {
  const texts = counts.reduce((sum, count) => sum + count, 0);
  if (texts <= (together > 2 ? MANY_TEXTS : FEW_TEXTS)) return undefined;
  const byCount = words.map((word, index) => ({ word, count: counts[index] ?? 0 })).sort((left, right) => left.count - right.count);
  const rare: string[] = [];
  let ofRare = 0;
  for (const { word, count } of byCount) {
    ofRare += count;
    if (ofRare > RARE_TEXTS) break;
    rare.push(word);
  }
  const common = byCount.slice(rare.length, rare.length + MOST_COMMON).map(({ word }) => word);
  const some = someOf(common, together);
  if (some === undefined) return undefined;
  return [...rare, some].join(" OR ");
}
/** Whether `narrowed` gives the texts with all of the words and no others: then it can be asked itself, with the same scores. */
export const needsAll = (words: readonly string[], counts: readonly number[], together: number): boolean =>
  words.length === together && counts.every((count) => count > RARE_TEXTS);

/** Texts with so many of the words; undefined: there are fewer words. */
function someOf(words: readonly string[], together: number): string | undefined {
  if (words.length < together) return undefined;
  if (together === 1) return words.length === 1 ? words[0] : `(${words.join(" OR ")})`;
  const parts = words.flatMap((word, index) => {
    const others = someOf(words.slice(index + 1), together - 1);
    return others === undefined ? [] : [`(${word} AND ${others})`];
  });
  return parts.length === 1 ? parts[0] : `(${parts.join(" OR ")})`;
}
