import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { inTurn, isAccepted } from "./choose.ts";
import { mutationsOf } from "./mutations.ts";
import { importers, isTestFile, joined, suitesOf } from "./tests-of.ts";

const changes = (file: string, text: string): string[] => mutationsOf(file, text).map(({ change, to }) => `${change}: ${to}`);

describe("one-line mistakes", () => {
  test("TypeScript: comparisons, conditions and calls are changed, one place at a time", () => {
    assert.deepEqual(changes("a.ts", "  if (a === b && !c) this.go(a);\n  rows.push(a);\n"), [
      "=== to !==: if (a !== b && !c) this.go(a);",
      "&& to ||: if (a === b || !c) this.go(a);",
      "! left out: if (a === b && c) this.go(a);",
      "a condition that is never true: if (false) this.go(a);",
      "a call left out: ",
    ]);
  });
  test("Rust: the same, and unit tests at the end of a file are left alone", () => {
    const text = "    if a.len() > b {\n        self.stop(a)?;\n    }\n#[cfg(test)]\nmod tests { fn f() { if 1 == 2 {} } }\n";
    assert.deepEqual(changes("a.rs", text), [
      "> to >=: if a.len() >= b {",
      "a condition that is never true: if false {",
      "a call left out: ",
    ]);
  });
  test("comments, strings, logs, types and matching patterns are left alone", () => {
    assert.deepEqual(changes("a.ts", '// a === b\nconst x = " === ";\n  log.warn("x");\n  readonly a: B < C;\n'), []);
    assert.deepEqual(
      changes("a.rs", "    if let Some(a) = b {\n    log::warn!(a);\n    debug_assert_eq!(a, b);\n    let f = move || a;\n"),
      [],
    );
  });
  test("a call that goes on over several lines is left alone", () => {
    assert.deepEqual(changes("a.ts", "  this.go(\n    a,\n  );\n"), []);
  });
  test("the mutant is the whole file with one change", () => {
    assert.deepEqual(
      mutationsOf("a.ts", "const a = b === c;\nconst d = 1;\n").map(({ mutant }) => mutant),
      ["const a = b !== c;\nconst d = 1;\n"],
    );
  });
});

describe("the choice", () => {
  const all = ["a.ts", "b.ts"].flatMap((file) => mutationsOf(file, "  x.go(1);\n  y.go(1);\n  if (a === b) z(1);\n"));
  test("is the same for the same seed, takes turns between files and one mistake a line", () => {
    const chosen = inTurn(all, 7);
    assert.deepEqual(inTurn(all, 7), chosen);
    assert.deepEqual([...new Set(chosen.slice(0, 2).map(({ file }) => file))].sort(), ["a.ts", "b.ts"]);
    assert.equal(chosen.length, 6);
    const orders = [1, 2, 3, 4, 5].map((seed) =>
      inTurn(all, seed)
        .map(({ change, file }) => file + change)
        .join(),
    );
    assert.ok(new Set(orders).size > 1, "other seeds give other orders");
  });
  test("a survivor is accepted by file, line and change", () => {
    const [mutation] = all;
    assert.ok(mutation);
    const one = { file: "a.ts", from: mutation.from, change: mutation.change, reason: "it is only a hint" };
    assert.equal(isAccepted(mutation, [one]), true);
    assert.equal(isAccepted(mutation, [{ ...one, file: "b.ts" }]), false);
    assert.equal(isAccepted(mutation, [{ ...one, from: "y.go(2);" }]), false);
  });
});

describe("the tests that should notice", () => {
  const sources = new Map([
    ["gateway/src/calls/core.ts", ""],
    ["gateway/src/calls/calls.ts", 'import { a } from "./core.ts";\n'],
    ["gateway/src/calls/calls.unit.test.ts", 'import { b } from "./calls.ts";\nimport type { C } from "../models/model.ts";\n'],
    ["gateway/src/models/model.ts", ""],
  ]);
  const of = (file: string) => suitesOf(file, importers(sources));
  test("are unit tests that import the file, and then its folder in the Workers runtime", () => {
    assert.deepEqual(of("gateway/src/calls/core.ts"), [
      { runner: "node", files: ["gateway/src/calls/calls.unit.test.ts"] },
      { runner: "workerd", paths: ["test/features/nodes"] },
    ]);
    assert.deepEqual(of("gateway/src/storage/other.ts"), [{ runner: "workerd", paths: ["test/storage", "test/features/workspace"] }]);
  });
  test("an import of types alone proves nothing", () => {
    assert.deepEqual(of("gateway/src/models/model.ts"), []);
  });
  test("tests themselves are not mutated", () => {
    for (const file of ["a/calls.unit.test.ts", "a/src/tests.rs", "a/src/crash_tests.rs", "a/src/ledger_test.rs"])
      assert.equal(isTestFile(file), true, file);
    for (const file of ["a/calls.ts", "a/tests.ts", "a/src/latests.rs", "a/src/lib.rs"]) assert.equal(isTestFile(file), false, file);
  });
  test("the crate's own tests for Rust", () => {
    assert.deepEqual(
      of("crates/gsv-link/src/lib.rs").map((suite) => (suite.runner === "cargo" ? [suite.package, ...suite.args] : [])),
      [["gsv-link", "--lib"], ["gsv-link"]],
    );
  });
  test("the control runs each test once", () => {
    const suites = ["calls/core.ts", "calls/calls.ts", "kernel/other.ts"].flatMap((file) => of(`gateway/src/${file}`));
    assert.deepEqual(joined([...suites, ...of("crates/gsv-link/src/lib.rs")]), [
      { runner: "node", files: ["gateway/src/calls/calls.unit.test.ts"] },
      { runner: "workerd", paths: ["test/features/nodes", "test/kernel"] },
      { runner: "cargo", package: "gsv-link", args: [] },
    ]);
  });
});
