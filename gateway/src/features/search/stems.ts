/**
 * The words of a text, as stems and as numbers, for ranking and marks: lower case, without accents, and English ones as their Porter stems (M. F. Porter, "An
 * algorithm for suffix stripping", 1980, as SQLite's FTS5 has it). PURE. When this changes, the index must be rebuilt: raise `SCHEMA` (index-store.ts).
 */
/** Shorter and longer words stay as they are. */
const SHORTEST = 3;
const LONGEST = 63;
/** Words whose numbers are kept, because texts repeat them. */
const MOST_KEPT = 20_000;
/** V8 keeps the whole text in memory for a longer part of it. */
const LONGEST_KEPT = 12;
const kept = new Map<string, number>();
/** As FTS5 has them: a sign that stands on a letter belongs to the word only in scripts that have accents. */
const WORDS = /[\p{L}\p{N}\p{Co}](?:[\p{L}\p{N}\p{Co}]|[\u0300-\u036f])*/gu;
const ACCENTS = /[\u0300-\u036f]/g;

/** The number of each word of a text, in their order. */
export function wordNumbers(text: string): number[] {
  return (text.match(WORDS) ?? []).map(numberOf);
}
export interface Word {
  /** In lower case and without accents. */
  readonly plain: string;
  readonly stem: string;
  /** Where it is in the text. */
  readonly begin: number;
  readonly end: number;
}
export const wordsIn = (text: string): readonly Word[] =>
  [...text.matchAll(WORDS)].map(({ 0: word, index }) => {
    const plain = plainOf(word);
    return { plain, stem: stem(plain), begin: index, end: index + word.length };
  });
const plainOf = (word: string): string => word.toLowerCase().normalize("NFD").replace(ACCENTS, "");
function numberOf(word: string): number {
  const known = kept.get(word);
  if (known !== undefined) return known;
  const made = hashed(stem(plainOf(word)));
  if (word.length > LONGEST_KEPT) return made;
  if (kept.size >= MOST_KEPT) kept.clear();
  kept.set(word, made);
  return made;
}
/** FNV-1a over UTF-16, 32 bits and not 0. Two words with one number are found as the same word: among 100,000 words there is about one such pair. */
function hashed(text: string): number {
  let hash = 0x811c9dc5 | 0;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash === 0 ? 1 : hash;
}

const isVowel = (letter: string | undefined): boolean => letter !== undefined && "aeiou".includes(letter);
/** Whether each letter counts as a vowel: `y` does after a consonant. */
function vowels(text: string): boolean[] {
  const found: boolean[] = [];
  for (const letter of text) found.push(isVowel(letter) || (letter === "y" && found.at(-1) === false));
  return found;
}
/** How often consonants follow vowels. */
const measure = (text: string): number => vowels(text).filter((is, index, all) => !is && all[index - 1] === true).length;
/** It ends with a consonant, a vowel and a consonant other than `w`, `x` and `y`. */
function isShort(text: string): boolean {
  const [before, middle, last] = vowels(text).slice(-3);
  return before === false && middle === true && last === false && !/[wxy]$/.test(text);
}
type Endings = readonly (readonly [ending: string, replacement: string])[];
const SECOND: Endings = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["izer", "ize"],
  ["logi", "log"],
  ["bli", "ble"],
  ["alli", "al"],
  ["entli", "ent"],
  ["eli", "e"],
  ["ousli", "ous"],
  ["ization", "ize"],
  ["ation", "ate"],
  ["ator", "ate"],
  ["alism", "al"],
  ["iveness", "ive"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["aliti", "al"],
  ["iviti", "ive"],
  ["biliti", "ble"],
];
const THIRD: Endings = [
  ["icate", "ic"],
  ["ative", ""],
  ["alize", "al"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ful", ""],
  ["ness", ""],
];
const FOURTH: Endings = "al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize"
  .split(" ")
  .map((ending) => [ending, ""] as const);

/** Replaces the first of these endings when what is before it is long enough. */
function replaced(text: string, endings: Endings, least: number): string {
  for (const [ending, replacement] of endings) {
    if (!text.endsWith(ending) || text.length === ending.length) continue;
    const rest = text.slice(0, -ending.length);
    if (ending === "ion" && !/[st]$/.test(rest)) return text;
    return measure(rest) >= least ? rest + replacement : text;
  }
  return text;
}
function withoutPlural(text: string): string {
  if (/.(?:ss|i)es$/.test(text)) return text.slice(0, -2);
  return /[^s]s$/.test(text) ? text.slice(0, -1) : text;
}
function withoutTense(text: string): string {
  if (text.endsWith("eed") && text.length > 3) return measure(text.slice(0, -3)) > 0 ? text.slice(0, -1) : text;
  const ending = /(?:ed|ing)$/.exec(text)?.[0];
  if (ending === undefined) return text;
  const rest = text.slice(0, -ending.length);
  if (!vowels(rest).includes(true)) return text;
  if (/(?:at|bl|iz)$/.test(rest)) return `${rest}e`;
  if (/([^aeioulsz])\1$/.test(rest)) return rest.slice(0, -1);
  return measure(rest) === 1 && isShort(rest) ? `${rest}e` : rest;
}
function withoutLastE(text: string): string {
  if (!text.endsWith("e")) return text;
  const rest = text.slice(0, -1);
  const size = measure(rest);
  return size > 1 || (size === 1 && !isShort(rest)) ? rest : text;
}
/** The Porter stem of a word in lower case. */
export function stem(word: string): string {
  if (word.length < SHORTEST || word.length > LONGEST) return word;
  let text = withoutTense(withoutPlural(word));
  if (text.endsWith("y") && vowels(text.slice(0, -1)).includes(true)) text = `${text.slice(0, -1)}i`;
  text = replaced(replaced(replaced(text, SECOND, 1), THIRD, 1), FOURTH, 2);
  text = withoutLastE(text);
  return text.endsWith("ll") && measure(text.slice(0, -1)) > 1 ? text.slice(0, -1) : text;
}
