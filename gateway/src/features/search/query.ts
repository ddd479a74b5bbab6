/**
 * Translates the query of a person or model into an FTS5 expression. PURE. Understands words (all must occur), `"a phrase"`,
 * `OR`, `-word` and `word*`; everything else is text. Each word becomes a quoted string, so no input is ever read as FTS5's
 * own syntax.
 */
import { failure, type Failure, type Result } from "../../ports/result.ts";
import { hasWord, segment } from "./text.ts";

/** Words and phrases of one query. */
export const MAX_TERMS = 64;
const bad = (message: string): Failure => failure("search.bad_query", message);
const NOTHING = "The query has no word. Name at least one word.";

interface Term {
  readonly text: string;
  readonly not: boolean;
  readonly prefix: boolean;
}
type Token = { readonly kind: "term"; readonly term: Term } | { readonly kind: "or" };

function* tokens(query: string): IterableIterator<Token> {
  // Each branch consumes at least one character, so the loop ends.
  const pattern = /\s+|(-?)(?:"([^"]*)(?:"(\*?)|$)|([^\s"]+))|./gsu;
  for (const [, minus, phrase, star, word] of query.matchAll(pattern)) {
    const not = minus === "-";
    if (phrase !== undefined) yield { kind: "term", term: { text: phrase, not, prefix: star === "*" } };
    else if (word === "OR" && !not) yield { kind: "or" };
    else if (word !== undefined && (word !== "AND" || not))
      yield { kind: "term", term: { text: word.replace(/\*+$/, ""), not, prefix: word.endsWith("*") } };
  }
}
const quoted = ({ text, prefix }: Term): string => `"${segment(text).replaceAll('"', '""')}"${prefix ? " *" : ""}`;

/** The right-hand side of MATCH, or the error. */
export function parseQuery(query: string): Result<string> {
  const alternatives: { wanted: string[]; unwanted: string[] }[] = [{ wanted: [], unwanted: [] }];
  let terms = 0;
  for (const token of tokens(query.toWellFormed())) {
    if (token.kind === "or") {
      alternatives.push({ wanted: [], unwanted: [] });
      continue;
    }
    // A word without a letter or digit is never indexed.
    if (!hasWord(token.term.text)) continue;
    if (++terms > MAX_TERMS) return bad(`A query can have at most ${MAX_TERMS} words. Name fewer.`);
    const last = alternatives.at(-1);
    (token.term.not ? last?.unwanted : last?.wanted)?.push(quoted(token.term));
  }
  const expressions: string[] = [];
  for (const { wanted, unwanted } of alternatives) {
    if (wanted.length === 0 && unwanted.length > 0) return bad("The query only excludes words. Name at least one word without a minus.");
    if (wanted.length === 0) continue;
    const all = wanted.join(" AND ");
    expressions.push(unwanted.length === 0 ? `(${all})` : `((${all}) NOT (${unwanted.join(" OR ")}))`);
  }
  return expressions.length === 0 ? bad(NOTHING) : { ok: true, value: expressions.join(" OR ") };
}
