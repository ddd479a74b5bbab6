/**
 * Translates the query of a person or model into FTS5 expressions. PURE. A question is not a query: any of its words may occur, in any
 * form, and stop words do not count. `"a phrase"` and `+word` must occur exactly as written, `-word` must not. `OR` separates
 * alternatives, of which one must occur whole; `word*` is the beginning of a word. Everything else is text. Each word becomes a quoted
 * string, so no input is ever read as FTS5's own syntax.
 */
import type { Result } from "../../ports/result.ts";
import type { SearchMatch } from "../../ports/search.ts";
import { bareWord, isStopWord } from "./stop-words.ts";
import { wordNumbers } from "./stems.ts";
import { hasWord, segment } from "./text.ts";

/** Words of one query, those of its phrases and the characters of scripts without spaces included: a long phrase takes long where a text repeats its words. */
export const MAX_WORDS = 64;
const bad = (message: string): Result<never> => ({ ok: false, error: { reason: "search.bad_query", message } });
const NOTHING = "The query has no word. Name at least one word.";

interface Term {
  readonly text: string;
  readonly use: "any" | "required" | "excluded";
  readonly prefix: boolean;
}
type Token = { readonly kind: "term"; readonly term: Term } | { readonly kind: "or" };

function* tokens(query: string): IterableIterator<Token> {
  // Each branch consumes at least one character, so the loop ends.
  const pattern = /\s+|([-+]?)(?:"([^"]*)(?:"(\*?)|$)|([^\s"]+))|./gsu;
  for (const [, sign = "", phrase, star, word] of query.matchAll(pattern)) {
    const use = sign === "-" ? "excluded" : sign === "+" || phrase !== undefined ? "required" : "any";
    if (phrase !== undefined) yield { kind: "term", term: { text: phrase, use, prefix: star === "*" } };
    else if (word === "OR" && sign === "") yield { kind: "or" };
    else if (word !== undefined && (word !== "AND" || sign !== ""))
      yield { kind: "term", term: { text: word.replace(/\*+$/, ""), use, prefix: word.endsWith("*") } };
  }
}
const quoted = (text: string, prefix: boolean): string => `"${segment(text).replaceAll('"', '""')}"${prefix ? PREFIX : ""}`;
const PREFIX = " *";
/** Whether such an expression is the beginning of a word. */
export const isPrefix = (word: string): boolean => word.endsWith(`"${PREFIX}`);

interface Alternative {
  readonly any: Term[];
  readonly required: string[];
  readonly excluded: string[];
}

/** An exact text and a single word are found by their words alone. */
export const usesMeaning = ({ exact, words }: SearchMatch): boolean => exact === undefined && words.length > 1;

/** What the index is asked, or the error. */
export function parseQuery(query: string): Result<SearchMatch> {
  const alternatives: Alternative[] = [{ any: [], required: [], excluded: [] }];
  let words = 0;
  for (const token of tokens(query.toWellFormed())) {
    if (token.kind === "or") {
      alternatives.push({ any: [], required: [], excluded: [] });
      continue;
    }
    const { term } = token;
    // A word without a letter or digit is never indexed.
    if (!hasWord(term.text)) continue;
    words += Math.max(1, wordNumbers(segment(term.text)).length);
    if (words > MAX_WORDS) return bad(`A query can have at most ${MAX_WORDS} words. Name fewer.`);
    const last = alternatives.at(-1);
    if (term.use === "any") last?.any.push(term);
    else last?.[term.use].push(quoted(term.text, term.prefix));
  }
  const asked = alternatives.filter(({ any, required, excluded }) => any.length + required.length + excluded.length > 0);
  if (asked.some(({ any, required }) => any.length + required.length === 0))
    return bad("The query only excludes words. Name at least one word without a minus.");
  if (asked.length === 0) return bad(NOTHING);
  return { ok: true, value: matchOf(asked) };
}

function matchOf(alternatives: readonly Alternative[]): SearchMatch {
  const words = wanted(alternatives.flatMap(({ any }) => any));
  const [first, ...others] = alternatives;
  if (first !== undefined && others.length === 0 && first.required.length === 0)
    return { words, ...(first.excluded.length === 0 ? {} : { without: first.excluded.join(" OR ") }) };
  const exact = alternatives.map(({ any, required, excluded }) => {
    // Beside alternatives, a word is as much a condition as a phrase.
    const words = others.length === 0 ? [] : any.map(({ text, prefix }) => quoted(text, prefix));
    const parts = [...required, ...words].join(" AND ");
    return excluded.length === 0 ? `(${parts})` : `((${parts}) NOT (${excluded.join(" OR ")}))`;
  });
  return { words, exact: exact.join(" OR ") };
}

/** Words that rank, each once: without stop words, unless there are no others. */
function wanted(terms: readonly Term[]): readonly string[] {
  const bare = terms.map(({ text, prefix }) => ({ text: bareWord(text), prefix }));
  const telling = bare.filter(({ text, prefix }) => prefix || !isStopWord(text.toLowerCase()));
  return [...new Set((telling.length > 0 ? telling : bare).map(({ text, prefix }) => quoted(text.toLowerCase(), prefix)))];
}
