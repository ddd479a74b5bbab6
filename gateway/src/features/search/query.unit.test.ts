import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { database } from "../../../test/features/search/recall-measure.ts";
import type { SearchMatch } from "../../ports/search.ts";
import { IndexStore } from "./index-store.ts";
import { MAX_WORDS, parseQuery } from "./query.ts";

/** `words | exact | without`, or the error. */
const match = (query: string): string => {
  const parsed = parseQuery(query);
  if (!parsed.ok) return `! ${parsed.error.reason}`;
  const { words, exact, without } = parsed.value;
  return [words.join(" "), exact, without].map((part) => part ?? "").join(" | ");
};

describe("[SE1] the query language", () => {
  test("[F67] any word of a question may occur; stop words do not count, unless there are no others", () => {
    assert.equal(match("red apple"), '"red" "apple" |  | ');
    assert.equal(match("What did Anna paint in the kitchen?"), '"anna" "paint" "kitchen" |  | ');
    assert.equal(match("Isn't it Anna\u2019s \u201cboat\u201d?"), '"anna" "boat" |  | ');
    assert.equal(match("who is it?"), '"who" "is" "it" |  | ');
    assert.equal(match("apple Apple APPLE"), '"apple" |  | ');
  });
  test("[F67] a phrase and a word with a plus must occur exactly; a word with a minus must not", () => {
    assert.equal(match('"red apple" pie'), '"pie" | ("red apple") | ');
    assert.equal(match("+Painting the kitchen"), '"kitchen" | ("Painting") | ');
    assert.equal(match('+"red apple" +pie tart'), '"tart" | ("red apple" AND "pie") | ');
    assert.equal(match("apple -pie -tart"), '"apple" |  | "pie" OR "tart"');
    assert.equal(match('-"apple pie" apple'), '"apple" |  | "apple pie"');
    assert.equal(match("+apple -pie"), ' | (("apple") NOT ("pie")) | ');
    assert.equal(match('"red app"*'), ' | ("red app" *) | ');
    assert.equal(match("app*"), '"app" * |  | ');
  });
  test("OR separates alternatives, and all words of one must occur", () => {
    assert.equal(match("red OR green apple"), '"red" "green" "apple" | ("red") OR ("green" AND "apple") | ');
    assert.equal(match('red OR "green apple"'), '"red" | ("red") OR ("green apple") | ');
    assert.equal(match("apple -pie OR pear plum"), '"apple" "pear" "plum" | (("apple") NOT ("pie")) OR ("pear" AND "plum") | ');
  });
  test("FTS5's own syntax is treated as text", () => {
    assert.equal(match("NEAR(a1 b1, 2) text:secret"), '"near(a1" "b1" "2" "text:secret" |  | ');
    assert.equal(match("a1 AND b1 NOT c1"), '"a1" "b1" "c1" |  | ');
    assert.equal(match("^a1 {b1}"), '"a1" "b1" |  | ');
  });
  test("missing and unfinished parts are ignored", () => {
    assert.equal(match("OR a1 OR OR b1 OR"), '"a1" "b1" | ("a1") OR ("b1") | ');
    assert.equal(match('"not closed'), ' | ("not closed") | ');
    assert.equal(match('a1"b c"d1'), '"a1" "d1" | ("b c") | ');
    assert.equal(match("a1 ... !!! b1"), '"a1" "b1" |  | ');
    assert.equal(match("foo-bar user@example.com"), '"foo-bar" "user@example.com" |  | ');
  });
  test("a query without a word is search.bad_query", () => {
    for (const query of ["", "   ", "!!!", '""', "OR", "AND", "-pie", "apple OR -pie", "*", "-", "+", "\u{1f600}"])
      assert.equal(match(query), "! search.bad_query", query);
    assert.notEqual(match(Array.from({ length: MAX_WORDS }, (_, i) => `w${i}`).join(" ")), "! search.bad_query");
    assert.equal(match(Array.from({ length: MAX_WORDS + 1 }, (_, i) => `w${i}`).join(" ")), "! search.bad_query");
    for (const long of ["的".repeat(MAX_WORDS + 1), `"${"的".repeat(MAX_WORDS + 1)}"`, `"${"a ".repeat(MAX_WORDS + 1)}"`])
      assert.equal(match(long), "! search.bad_query", "each word of a phrase counts");
    assert.notEqual(match("的".repeat(MAX_WORDS)), "! search.bad_query");
  });
  test("in scripts without spaces each character is a word, and a run of characters is a phrase", () => {
    assert.equal(match("東京"), '"\u200b東\u200b\u200b京\u200b" |  | ');
    assert.equal(match("東京*"), '"\u200b東\u200b\u200b京\u200b" * |  | ');
  });
});

describe("[SE1] no query causes an SQLite error", () => {
  const store = new IndexStore(database());
  store.prepare("main");
  store.sources.listed("archives", new Map([["sessions/a.jsonl.gz", { etag: "1" }]]));
  store.add(
    store.sources.one("archives", "sessions/a.jsonl.gz")?.id ?? 0,
    [{ position: 0, role: "user", at: 1, text: "alpha beta gamma", day: "2026-01-15 thursday 15 january" }],
    { state: "done" },
  );
  /** How many texts match. */
  const found = (match: SearchMatch): number => store.find({ match, sources: ["archives"], limit: 5, offset: 0 }).length;
  const piece = fc.oneof(
    fc.string({ unit: "binary", maxLength: 12 }),
    fc.constantFrom(
      '"',
      "*",
      "-",
      "OR",
      "AND",
      "NOT",
      "NEAR",
      "(",
      ")",
      ":",
      "^",
      "+",
      "{",
      "}",
      ",",
      " ",
      "a",
      "東",
      "नी",
      "\u0301",
      "\u0000",
      "\ud800",
      "\u200b",
      "\ue000",
    ),
  );
  test("any string is a valid query or search.bad_query", () => {
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 40 }), (parts) => {
        const parsed = parseQuery(parts.join(""));
        if (!parsed.ok) assert.equal(parsed.error.reason, "search.bad_query");
        else assert.ok(found(parsed.value) >= 0);
      }),
      { numRuns: 3_000 },
    );
  });
  test("a word of the text finds it in any context", () => {
    fc.assert(
      fc.property(fc.constantFrom("alpha", "beta", "gamma"), fc.stringMatching(/^[()^+:{},.;!?]{0,6}$/), (word, noise) => {
        const parsed = parseQuery(`${noise} ${noise}${word}${noise} -delta`);
        assert.ok(parsed.ok);
        assert.equal(found(parsed.value), 1);
      }),
    );
  });
});
