/**
 * What a person or a model types into a search, as an FTS5 expression. PURE. Understands words (all must occur), `"a phrase"`,
 * `OR`, `-word` and `word*`; everything else is text. Each word goes into the expression as a quoted string, so nothing that is
 * typed can ever be read as FTS5's own syntax.
 */
import type { Result } from "../../ports/result.ts";
import { hasWord, segment } from "./text.ts";

/** Words and phrases of one query. */
export const MAX_TERMS = 64;
const bad = (message: string): Result<never> => ({ ok: false, error: { reason: "search.bad_query", message } });
const NOTHING = "There is nothing to search for. Name at least one word.";

interface Term {
  readonly text: string;
  readonly not: boolean;
  readonly prefix: boolean;
}
type Token = { readonly kind: "term"; readonly term: Term } | { readonly kind: "or" };

function* tokens(query: string): IterableIterator<Token> {
  // Each branch takes at least one character, so that it ends.
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

/** The right-hand side of MATCH, or why there is none. */
export function parseQuery(query: string): Result<string> {
  const alternatives: { wanted: string[]; unwanted: string[] }[] = [{ wanted: [], unwanted: [] }];
  let terms = 0;
  for (const token of tokens(query.toWellFormed())) {
    if (token.kind === "or") {
      alternatives.push({ wanted: [], unwanted: [] });
      continue;
    }
    // What has no letter and no digit in it is in no index.
    if (!hasWord(token.term.text)) continue;
    if (++terms > MAX_TERMS) return bad(`At most ${MAX_TERMS} words can be searched for at once. Name fewer.`);
    const last = alternatives.at(-1);
    (token.term.not ? last?.unwanted : last?.wanted)?.push(quoted(token.term));
  }
  const expressions: string[] = [];
  for (const { wanted, unwanted } of alternatives) {
    if (wanted.length === 0 && unwanted.length > 0)
      return bad("Something must be searched for beside what is left out. Name at least one word without a minus.");
    if (wanted.length === 0) continue;
    const all = wanted.join(" AND ");
    expressions.push(unwanted.length === 0 ? `(${all})` : `((${all}) NOT (${unwanted.join(" OR ")}))`);
  }
  return expressions.length === 0 ? bad(NOTHING) : { ok: true, value: expressions.join(" OR ") };
}
