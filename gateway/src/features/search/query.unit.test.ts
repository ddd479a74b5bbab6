import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import fc from "fast-check";
import { MAX_TERMS, parseQuery } from "./query.ts";

const match = (query: string): string => {
  const parsed = parseQuery(query);
  return parsed.ok ? parsed.value : `! ${parsed.error.reason}`;
};

describe("[SE1] the query language", () => {
  test("all words must occur; phrases, OR, minus and star work", () => {
    assert.equal(match("red apple"), '("red" AND "apple")');
    assert.equal(match('"red apple" pie'), '("red apple" AND "pie")');
    assert.equal(match("red OR green apple"), '("red") OR ("green" AND "apple")');
    assert.equal(match("apple -pie -tart"), '(("apple") NOT ("pie" OR "tart"))');
    assert.equal(match('-"apple pie" apple'), '(("apple") NOT ("apple pie"))');
    assert.equal(match("app*"), '("app" *)');
    assert.equal(match('"red app"*'), '("red app" *)');
  });
  test("FTS5's own syntax is treated as text", () => {
    assert.equal(match("NEAR(a b, 2) text:secret"), '("NEAR(a" AND "b," AND "2)" AND "text:secret")');
    assert.equal(match("a AND b NOT c"), '("a" AND "b" AND "NOT" AND "c")');
    assert.equal(match("^a + {b}"), '("^a" AND "{b}")');
    assert.equal(match("or and not"), '("or" AND "and" AND "not")');
  });
  test("missing and unfinished parts are ignored", () => {
    assert.equal(match("OR a OR OR b OR"), '("a") OR ("b")');
    assert.equal(match('"not closed'), '("not closed")');
    assert.equal(match('a"b c"d'), '("a" AND "b c" AND "d")');
    assert.equal(match("a ... !!! b"), '("a" AND "b")');
    assert.equal(match("foo-bar user@example.com"), '("foo-bar" AND "user@example.com")');
  });
  test("a query without a word is search.bad_query", () => {
    for (const query of ["", "   ", "!!!", '""', "OR", "AND", "-pie", "apple OR -pie", "*", "-", "\u{1f600}"])
      assert.equal(match(query), "! search.bad_query", query);
    assert.equal(match(Array.from({ length: MAX_TERMS + 1 }, (_, i) => `w${i}`).join(" ")), "! search.bad_query");
  });
  test("in scripts without spaces each character is a word, and a run of characters is a phrase", () => {
    assert.equal(match("東京"), '("\u200b東\u200b\u200b京\u200b")');
    assert.equal(match("東京*"), '("\u200b東\u200b\u200b京\u200b" *)');
  });
});

describe("[SE1] no query causes an SQLite error", () => {
  const db = new DatabaseSync(":memory:");
  db.exec("CREATE VIRTUAL TABLE places USING fts5(text, tokenize = 'unicode61 remove_diacritics 2')");
  db.prepare("INSERT INTO places(text) VALUES(?)").run("alpha beta gamma");
  const find = db.prepare("SELECT count(*) AS n FROM places WHERE places MATCH ?");
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
        else assert.equal(typeof find.get(parsed.value)?.["n"], "number");
      }),
      { numRuns: 3_000 },
    );
  });
  test("a word of the text finds it in any context", () => {
    fc.assert(
      fc.property(fc.constantFrom("alpha", "beta", "gamma"), fc.stringMatching(/^[()^+:{},.;!?]{0,6}$/), (word, noise) => {
        const parsed = parseQuery(`${noise} ${noise}${word}${noise} -delta`);
        assert.ok(parsed.ok);
        assert.equal(find.get(parsed.value)?.["n"], 1);
      }),
    );
  });
});
