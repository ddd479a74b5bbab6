/** Puts marks around the words of a question in a text, as FTS5's `highlight` does: `highlight` searches for each text again, which takes longer than the search itself. PURE. */
import { isPrefix } from "./query.ts";
import { type Word, wordsIn } from "./stems.ts";
import { MARK_BEGIN, MARK_END } from "./text.ts";

/** `words`: expressions of FTS5 (query.ts). Their quotation marks are no words. */
export function withMarks(words: readonly string[]): (text: string) => string {
  const phrases = words.map((word) => ({ words: wordsIn(word), isPrefix: isPrefix(word) })).filter(({ words: some }) => some.length > 0);
  return (text) => marked(text, phrases);
}
interface Phrase {
  readonly words: readonly Word[];
  /** As it is written: the last word may be the beginning of one. */
  readonly isPrefix: boolean;
}
function marked(text: string, phrases: readonly Phrase[]): string {
  const words = wordsIn(text);
  let made = "";
  let at = 0;
  for (let index = 0; index < words.length; ) {
    // Phrases that begin inside of another one make it longer.
    let last = -1;
    for (let from = index; from === index || from <= last; from++)
      for (const phrase of phrases) if (isAt(words, from, phrase)) last = Math.max(last, from + phrase.words.length - 1);
    const [first, end] = [words[index], words[last]];
    if (first === undefined || end === undefined) {
      index++;
      continue;
    }
    made += `${text.slice(at, first.begin)}${MARK_BEGIN}${text.slice(first.begin, end.end)}${MARK_END}`;
    at = end.end;
    index = last + 1;
  }
  return made + text.slice(at);
}
const isAt = (words: readonly Word[], from: number, phrase: Phrase): boolean =>
  phrase.words.every(({ plain, stem }, index) => {
    const word = words[from + index];
    if (!phrase.isPrefix) return word?.stem === stem;
    return index === phrase.words.length - 1 ? word?.plain.startsWith(plain) === true : word?.plain === plain;
  });
