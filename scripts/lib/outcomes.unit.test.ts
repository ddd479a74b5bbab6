import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fromCargo, fromCommand, fromLints, fromNode, fromVitest, judged, total } from "./outcomes.ts";
import { ROOT } from "./root.ts";
import { run } from "./run.ts";
import type { Outcome } from "./test-reporter.ts";

/** Runs test files with the reporter, as a lane does. */
async function reported(files: Readonly<Record<string, string>>): Promise<{ readonly code: number; readonly outcome: Outcome | null }> {
  const folder = mkdtempSync(join(tmpdir(), "gsv-reporter-"));
  try {
    const paths = Object.entries(files).map(([name, text]) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    });
    const out = join(folder, "out.json");
    // Without this, node reports to the outer test runner.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const reporter = join(ROOT, "scripts", "lib", "test-reporter.ts");
    const args = ["--test", `--test-reporter=${reporter}`, `--test-reporter-destination=${out}`, ...paths];
    const result = await run("env", ["-i", ...Object.entries(env).map(([name, value]) => `${name}=${value}`), process.execPath, ...args]);
    return { code: result.code, outcome: fromNode(readFileSync(out, "utf8")) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

describe("counting tests", () => {
  it("node: passed, failed and skipped tests, and broken hooks", async () => {
    const { code, outcome } = await reported({
      "a.test.mjs": `import { before, describe, it } from "node:test";
        describe("suite", () => { it("good", () => {}); it("bad", () => { throw new Error("because"); }); it.skip("later", () => {}); });
        describe("broken", () => { before(() => { throw new Error("hook"); }); it("never", () => {}); });`,
    });
    assert.equal(code, 1);
    assert.equal(outcome?.passed, 1);
    assert.equal(outcome?.skipped, 1);
    assert.ok((outcome?.failed ?? 0) >= 2, JSON.stringify(outcome));
    assert.match(outcome?.failures.find((failure) => failure.includes(": bad: ")) ?? "", /a\.test\.mjs: bad: .*because/);
  });

  it("[F82] node: a file without a test fails, and adds no passed test", async () => {
    const { outcome } = await reported({
      "empty.test.mjs": "",
      "suite.test.mjs": 'import { describe } from "node:test"; describe("nothing", () => {});',
      "good.test.mjs": 'import { it } from "node:test"; it("good", () => {});',
    });
    assert.deepEqual([outcome?.passed, outcome?.failed], [1, 2], JSON.stringify(outcome));
    assert.match(outcome?.failures.join("\n") ?? "", /empty\.test\.mjs: .*\n.*suite\.test\.mjs: it has no test/);
  });

  it("[F82] node: a file whose process ends with 0 before all tests ran fails", async () => {
    const { code, outcome } = await reported({
      "exit.test.mjs": `import { it } from "node:test";
        it("first", () => {});
        it("exits", () => { process.exit(0); }); it("never", () => { throw new Error("never"); });`,
    });
    assert.equal(code, 0);
    assert.equal(outcome?.failed, 1, JSON.stringify(outcome));
    assert.match(outcome?.failures[0] ?? "", /exit\.test\.mjs: its process ended before all its tests had run/);
  });

  it("vitest: failed tests and files that do not load", () => {
    const outcome = fromVitest(
      JSON.stringify({
        numPassedTests: 3,
        numFailedTests: 1,
        numPendingTests: 2,
        numTodoTests: 0,
        testResults: [
          {
            name: "a.test.ts",
            status: "failed",
            assertionResults: [{ status: "failed", fullName: "x y", failureMessages: ["Error: z\nat"] }],
          },
          { name: "b.test.ts", status: "failed", message: "no such module", assertionResults: [] },
        ],
      }),
    );
    assert.deepEqual(outcome, { passed: 3, failed: 2, skipped: 2, failures: ["a.test.ts: x y: Error: z", "b.test.ts: no such module"] });
    assert.equal(fromVitest("Segmentation fault"), null);
  });

  it("cargo: the sum of all test programs", () => {
    const text =
      "test a::b ... FAILED\ntest result: FAILED. 4 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1s\n\ntest result: ok. 2 passed; 0 failed; 0 ignored;";
    assert.deepEqual(fromCargo(text), { passed: 6, failed: 1, skipped: 1, failures: ["a::b"] });
  });

  it("[F82] cargo: a test program with a harness of its own counts by its tests", () => {
    const text = [
      "     Running tests/a.rs (target/debug/deps/a-1)",
      "test one ... ok",
      "test result: ok. 1 passed; 0 failed; 0 ignored;",
      "     Running tests/own.rs (target/debug/deps/own-1)",
      "test k16 ... ok",
      "test k17 ... FAILED",
    ].join("\n");
    assert.deepEqual(fromCargo(text), { passed: 2, failed: 1, skipped: 0, failures: ["k17"] });
  });

  it("[F82] a command passes only when it says that it finished", () => {
    const finished = /^ *Finished /m;
    assert.equal(fromCommand({ code: 0, output: "    Finished `dev` profile in 1s" }, "clippy", finished).passed, 1);
    for (const bad of [
      { code: 0, output: "" },
      { code: 101, output: "    Finished `dev` profile in 1s" },
    ])
      assert.deepEqual([fromCommand(bad, "clippy", finished).passed, fromCommand(bad, "clippy", finished).failed], [0, 1]);
  });

  it("[F82] a build that lints passes only without warnings", () => {
    const finished = /^ *Finished /m;
    const built = "    Finished `dev` profile in 1s";
    const passed = fromLints({ code: 0, output: `warning: gsv@0.1.0: a build script says this\n${built}` }, finished);
    assert.deepEqual(passed, { passed: 1, failed: 0, skipped: 0, failures: [] });
    const warned = fromLints({ code: 0, output: `warning: unused\nwarning: \`gsv\` (bin "gsv") generated 2 warnings\n${built}` }, finished);
    assert.deepEqual([warned.passed, warned.failed], [0, 1]);
    assert.match(warned.failures[0] ?? "", /`gsv` \(bin "gsv"\) generated 2 warnings; .*cargo clippy/);
    assert.equal(fromLints({ code: 101, output: built }, finished).failed, 1);
    const long = "\nwarning: unused".repeat(40);
    const broken = `warning: \`gsv\` (bin "gsv") generated 2 warnings\nerror: mismatched types${long}\nerror: could not compile`;
    const failed = fromLints({ code: 101, output: broken }, finished);
    assert.equal(failed.failed, 1);
    assert.match(failed.failures[0] ?? "", /error: mismatched types/, "the compiler's error comes before its warnings");
  });

  it("[F82] a lane without tests, and a lane whose runner broke, fail", () => {
    assert.deepEqual(judged({ passed: 0, failed: 0, skipped: 3, failures: [] }, 0).failed, 1);
    assert.deepEqual(judged(null, 0).failed, 1);
    assert.deepEqual(judged({ passed: 5, failed: 0, skipped: 0, failures: [] }, 101).failed, 1);
    assert.deepEqual(judged({ passed: 5, failed: 0, skipped: 0, failures: [] }, 0), { passed: 5, failed: 0, skipped: 0, failures: [] });
  });

  it("the last line", () => {
    assert.equal(total({ passed: 12, failed: 0, skipped: 0 }), "12 passed, 0 failed");
    assert.equal(total({ passed: 12, failed: 1, skipped: 2 }), "12 passed, 1 failed, 2 skipped");
  });
});
