import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../lib/root.ts";
import { inTurn } from "./choose.ts";
import { judgeWith, type Verdict } from "./judge.ts";
import { type Mutation, mutationsOf } from "./mutations.ts";
import { optionsOf } from "./options.ts";
import { type Results, resultsOf, textOf } from "./results.ts";
import { type Accepted, acceptedBy, entryProblems } from "./survivors.ts";
import { importers, isTestFile, type Suite, suitesOf } from "./tests-of.ts";

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
    const text = "    if a.len() > b {\n        self.stop(a)?;\n    }\n#[cfg(unix)]\n#[cfg(test)]\nmod tests { fn f() { if 1 == 2 {} } }\n";
    for (const attribute of ["#[cfg(test)]", '#[cfg(all(test, target_os = "linux"))]'])
      assert.deepEqual(changes("a.rs", text.replace("#[cfg(test)]", attribute)), [
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
  test("a decision about a field that is called type or log is a decision", () => {
    assert.deepEqual(changes("a.ts", '  if (event.type === "a") this.log.push(event);\n'), [
      '=== to !==: if (event.type !== "a") this.log.push(event);',
      "a condition that is never true: if (false) this.log.push(event);",
    ]);
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
});

describe("accepted survivors", () => {
  const [mutation] = mutationsOf("a.ts", "  x.go(1);\n");
  assert.ok(mutation);
  const entry = { file: "a.ts", from: "x.go(1);", to: "", reason: "It only saves work: the outcome is the same." };
  const problemsOf = (one: Accepted, text: string) => entryProblems([one], new Map([["a.ts", text]]));
  test("are named by file and by the line before and after the change", () => {
    assert.equal(acceptedBy(mutation, [entry]), entry);
    for (const other of [{ file: "b.ts" }, { from: "y.go(1);" }, { to: "x.go(2);" }])
      assert.equal(acceptedBy(mutation, [{ ...entry, ...other }]), undefined);
  });
  test("match exactly one mistake and have a reason", () => {
    assert.deepEqual(problemsOf(entry, "  x.go(1);\n"), []);
    assert.match(problemsOf(entry, "  x.go(2);\n").join(), /0 mistakes match/);
    assert.match(problemsOf(entry, "  x.go(1);\n  x.go(1);\n").join(), /2 mistakes match/);
    assert.match(problemsOf({ ...entry, reason: " " }, "  x.go(1);\n").join(), /write a reason/);
  });
  test("in survivors.json are up to date", () => {
    const accepted = JSON.parse(readFileSync(join(ROOT, "scripts", "mutants", "survivors.json"), "utf8")) as readonly Accepted[];
    const sources = new Map(accepted.map(({ file }) => [file, readFileSync(join(ROOT, file), "utf8")]));
    assert.deepEqual(entryProblems(accepted, sources), []);
  });
});

describe("the judgement", () => {
  const suites: readonly Suite[] = ["one.unit.test.ts", "two.unit.test.ts"].map((file) => ({ runner: "node", file }));
  const [mistake] = mutationsOf("a.ts", "  x.go(1);\n");
  /** What each run of a suite gives with the mistake, in order; without one it gives `control`. */
  async function judged(withMistake: Readonly<Record<string, readonly Verdict[]>>, control: readonly Verdict[] = ["passed"]) {
    assert.ok(mistake);
    const left = new Map(Object.entries(withMistake).map(([file, verdicts]) => [file, [...verdicts]]));
    const controls = [...control];
    const limits: number[] = [];
    const run = async (suite: Suite, mutation: Mutation | undefined, limitMs: number) => {
      assert.equal(suite.runner, "node");
      if (mutation === undefined) return { verdict: (controls.length > 1 ? controls.shift() : controls[0]) ?? "failed", ms: 1_000 };
      limits.push(limitMs);
      return { verdict: (suite.runner === "node" ? left.get(suite.file)?.shift() : undefined) ?? ("passed" as const), ms: 1_000 };
    };
    const broken = new Map<string, Verdict>();
    return { ...(await judgeWith(run, new Map(), broken)(mistake, suites)), limits, broken: [...broken] };
  }
  test("a mistake is caught by the first suite that fails twice", async () => {
    assert.equal((await judged({ "two.unit.test.ts": ["failed", "failed"] })).by, "two.unit.test.ts");
    assert.equal((await judged({})).fate, "survived");
  });
  test("a suite that fails only once has noticed nothing", async () => {
    assert.equal((await judged({ "one.unit.test.ts": ["failed", "passed"] })).fate, "survived");
  });
  test("a suite that does not end has noticed the mistake, within a limit of its own", async () => {
    const { fate, limits } = await judged({ "one.unit.test.ts": ["not ended", "not ended"] });
    assert.equal(fate, "caught");
    assert.deepEqual(limits, [36_000, 36_000]);
  });
  test("a suite that fails without the mistake can't judge", async () => {
    const twice: readonly Verdict[] = ["failed", "failed"];
    const both = { "one.unit.test.ts": twice, "two.unit.test.ts": twice };
    const { by, broken } = await judged(both, ["failed", "failed", "passed"]);
    assert.deepEqual([by, broken], ["two.unit.test.ts", [["one.unit.test.ts", "failed"]]]);
    assert.equal((await judged(both, ["failed"])).fate, "survived");
    assert.equal((await judged(both, ["failed", "passed"])).by, "one.unit.test.ts");
  });
  test("what does not compile is no mistake", async () => {
    assert.equal((await judged({ "one.unit.test.ts": ["not compiled"] })).fate, "not compiled");
  });
});

describe("saved results", () => {
  const results: Results = {
    hash: "h1",
    controls: new Map([["a", 5]]),
    broken: new Map(),
    fates: new Map([
      ["one", "caught"],
      ["two", "survived"],
    ]),
  };
  test("are the same in the next run with the same files, and none with others", () => {
    assert.deepEqual(resultsOf(textOf(results), "h1"), results);
    const none = { controls: new Map(), broken: new Map(), fates: new Map() };
    assert.deepEqual(resultsOf(textOf(results), "h2"), { hash: "h2", ...none });
    assert.deepEqual(resultsOf(undefined, "h1"), { hash: "h1", ...none });
  });
  test("a suite that could not judge is tried again, with the mistakes that it might have noticed", () => {
    const saved = textOf({ ...results, broken: new Map([["b", "failed"]]) });
    assert.deepEqual(resultsOf(saved, "h1"), { ...results, fates: new Map([["one", "caught"]]) });
  });
});

describe("the command line", () => {
  test("has defaults, and takes areas, count and seed", () => {
    assert.deepEqual(optionsOf([]), { areas: ["cores", "kit", "crates"], seed: 1 });
    assert.deepEqual(optionsOf(["--area", "kit", "--area", "cores", "--count", "5", "--seed", "0"]), {
      areas: ["cores", "kit"],
      count: 5,
      seed: 0,
    });
    assert.equal(optionsOf(["--help"]), "help");
  });
  test("refuses bad numbers, unknown areas and unknown options", () => {
    const error = (...args: string[]): string => {
      const found = optionsOf(args);
      return typeof found === "object" && "error" in found ? found.error : "";
    };
    assert.match(error("--count", "x"), /--count x: give a whole number of at least 1/);
    assert.match(error("--count", "0"), /at least 1/);
    assert.match(error("--seed", "1.5"), /--seed 1\.5: give a whole number/);
    assert.match(error("--area", "gateway"), /There is no area gateway/);
    assert.match(error("--cuont", "1"), /cuont/);
    assert.match(error("--minutes", "5"), /--minutes needs --state/);
  });
});

describe("the tests that should notice", () => {
  const sources = new Map([
    ["gateway/src/calls/core.ts", ""],
    ["gateway/src/calls/calls.ts", 'import { a } from "./core.ts";\n'],
    ["gateway/src/calls/all.unit.test.ts", 'import { a } from "./core.ts";\n'],
    ["gateway/src/calls/core.unit.test.ts", 'import { a } from "./core.ts";\n'],
    ["gateway/src/calls/calls.unit.test.ts", 'import { b } from "./calls.ts";\nimport type { C } from "../ports/model.ts";\n'],
    ["gateway/src/ports/model.ts", ""],
  ]);
  const of = (file: string) => suitesOf(file, importers(sources));
  test("are the types, unit tests that import the file, the nearest first, and then its folder in the Workers runtime", () => {
    assert.deepEqual(of("gateway/src/calls/core.ts"), [
      { runner: "types", project: "gateway" },
      { runner: "node", file: "gateway/src/calls/core.unit.test.ts" },
      { runner: "node", file: "gateway/src/calls/all.unit.test.ts" },
      { runner: "node", file: "gateway/src/calls/calls.unit.test.ts" },
      { runner: "workerd", folder: "test/features/nodes" },
    ]);
    assert.deepEqual(of("gateway/src/storage/other.ts"), [
      { runner: "types", project: "gateway" },
      { runner: "workerd", folder: "test/storage" },
      { runner: "workerd", folder: "test/features/workspace" },
    ]);
  });
  test("the types alone are no test", () => {
    assert.deepEqual(of("gateway/src/ports/model.ts"), []);
  });
  test("tests themselves are not mutated", () => {
    for (const file of ["a/calls.unit.test.ts", "a/src/tests.rs", "a/src/crash_tests.rs", "a/src/ledger_test.rs"])
      assert.equal(isTestFile(file), true, file);
    for (const file of ["a/calls.ts", "a/tests.ts", "a/src/latests.rs", "a/src/lib.rs"]) assert.equal(isTestFile(file), false, file);
  });
  test("the crate's own tests for Rust", () => {
    assert.deepEqual(
      of("crates/gsv-link/src/lib.rs").map((suite) => (suite.runner === "cargo" ? [suite.package, ...suite.args] : [])),
      [
        ["gsv-link", "--lib"],
        ["gsv-link", "--test", "link"],
      ],
    );
  });
});
