import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { documentFindings, namedIds, pageFindings, ruleFindings, rulesOf } from "./rule-ids.ts";

const DOCUMENT = "- **P6** Once.\n- **K16'** Lost.\n- **P15** (planned) Later.\nNot a rule: **P7**.\n";
const messages = (files: Readonly<Record<string, string>>): string[] =>
  ruleFindings(new Map(Object.entries(files))).map(({ file, line, message }) => `${file}:${line} ${message}`);

describe("rules and their tests", () => {
  it("rules are list items that begin with an id", () => {
    assert.deepEqual(
      rulesOf(new Map([["docs/a.md", DOCUMENT]])).map(({ id, planned, line }) => [id, planned, line]),
      [
        ["P6", false, 1],
        ["K16'", false, 2],
        ["P15", true, 3],
      ],
    );
  });

  it("tests name ids in brackets, and Rust tests also by the first words of their names", () => {
    const sources = new Map([
      ["a.test.ts", 'it("[P6] [P5.2] once", () => {});'],
      ["gateway/test/support/contract.ts", "/** [S11] */"],
      ["gateway/src/a.ts", '"[P7]"'],
      ["crates/x/tests/a.rs", 'fn k15_k16b_lost() {}\nfn sha256_of() {}\n("p14_cancelled", x)\n//! [W26]'],
    ]);
    assert.deepEqual([...namedIds(sources, new Set(["P", "K", "W"])).keys()], ["P6", "P5.2", "S11", "K15", "K16'", "P14", "W26"]);
  });

  it("all is well when each rule has a test and each id a rule", () => {
    assert.deepEqual(messages({ "docs/a.md": DOCUMENT, "a.test.ts": '"[P6]" "[K16\']"' }), []);
  });

  it("the id of a reported problem needs no rule of its own", () => {
    assert.deepEqual(messages({ "docs/a.md": DOCUMENT, "a.test.ts": '"[P6] [F12]" "[K16\']"' }), []);
  });

  it("an id without a rule, a rule without a test, an id of two rules, and a planned rule with a test are findings", () => {
    assert.deepEqual(messages({ "docs/a.md": DOCUMENT, "b/SPEC.md": "- **P6** Twice.\n", "a.test.ts": '"[P6] [P15] [P99]"' }), [
      "b/SPEC.md:1 P6 is a rule of docs/a.md:1 too. Give one of them another id.",
      "a.test.ts:1 No document has the rule P99. Write it, or name the right one.",
      "docs/a.md:2 No test names K16'. Write one, or mark the rule (planned).",
      "docs/a.md:3 P15 is marked (planned), and a.test.ts:1 tests it.",
    ]);
  });
});

describe("pages of the gateway's rules", () => {
  const PAGES = { "gateway/spec/a.md": "- **AB1** One.\n- **CD1** (planned) Two.\n", "gateway/spec/b.md": "- **E1** Three.\n" };
  const found = (rows: string): string[] =>
    pageFindings(new Map(Object.entries({ "gateway/SPEC.md": rows, ...PAGES }))).map(
      ({ file, line, message }) => `${file}:${line} ${message}`,
    );

  it("each page has a row with the letters of its rules", () => {
    assert.deepEqual(found("| page | rules |\n| [a](spec/a.md) | CD, AB: a, b |\n| [b](spec/b.md) | E: c |\n"), []);
  });

  it("a page without a row, and a row with other letters, are findings", () => {
    assert.deepEqual(found("See [b](spec/b.md).\n| [a](spec/a.md) | AB: a |\n"), [
      "gateway/SPEC.md:2 The rules of spec/a.md begin with AB, CD, not with AB.",
      "gateway/spec/b.md:1 This page has no row in gateway/SPEC.md. Add | [name](spec/b.md) | E: what it is about |.",
    ]);
  });
});

describe("documents that are mentioned", () => {
  const found = (file: string, text: string): string[] =>
    documentFindings(
      new Map([
        [file, text],
        ["docs/promises.md", ""],
      ]),
      (path) => ["docs/promises.md", "docs", "a.ts"].includes(path),
    ).map(({ message }) => message);

  it("links that stay in the repository and known documents pass", () => {
    assert.deepEqual(found("docs/a.md", "[x](promises.md) [y](../a.ts#l1) [z](https://example.org/x.md) promises.md SOUL.md"), []);
    assert.deepEqual(found("a.ts", "// promises.md\nconst path = 'notes.md';"), []);
  });

  it("links out of the repository and unknown documents are findings", () => {
    assert.deepEqual(found("docs/a.md", "[x](../../shared/plan.md)"), ["../../shared/plan.md is not a file of this repository."]);
    assert.deepEqual(found("a.ts", "// see guards.md section 2"), ["guards.md is not a document of this repository."]);
  });
});
