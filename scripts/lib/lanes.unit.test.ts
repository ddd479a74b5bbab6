import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { fromCargo, fromNode, fromVitest, judged, total } from "./lanes.ts";
import { ROOT } from "./root.ts";
import { run } from "./run.ts";

describe("counting tests", () => {
  it("node: a run is told with its failures, skips and broken hooks", async () => {
    const folder = mkdtempSync(join(tmpdir(), "gsv-reporter-"));
    try {
      const file = join(folder, "a.test.mjs");
      writeFileSync(
        file,
        `import { before, describe, it } from "node:test";
         describe("suite", () => { it("good", () => {}); it("bad", () => { throw new Error("because"); }); it.skip("later", () => {}); });
         describe("broken", () => { before(() => { throw new Error("hook"); }); it("never", () => {}); });`,
      );
      const out = join(folder, "out.json");
      // Inside a test run, node would otherwise report to the outer runner.
      const { NODE_TEST_CONTEXT: _, ...env } = process.env;
      const args = ["--test", `--test-reporter=${join(ROOT, "scripts/lib/test-reporter.ts")}`, `--test-reporter-destination=${out}`, file];
      const result = await run("env", ["-i", ...Object.entries(env).map(([name, value]) => `${name}=${value}`), process.execPath, ...args]);
      assert.equal(result.code, 1, result.output);
      const outcome = fromNode(readFileSync(out, "utf8"));
      assert.equal(outcome?.passed, 1);
      assert.equal(outcome?.skipped, 1);
      assert.ok((outcome?.failed ?? 0) >= 2, JSON.stringify(outcome));
      assert.match(outcome?.failures.find((failure) => failure.includes(": bad: ")) ?? "", /a\.test\.mjs: bad: .*because/);
    } finally {
      rmSync(folder, { recursive: true });
    }
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

  it("cargo: all harnesses together", () => {
    const text =
      "test a::b ... FAILED\ntest result: FAILED. 4 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1s\n\ntest result: ok. 2 passed; 0 failed; 0 ignored;";
    assert.deepEqual(fromCargo(text), { passed: 6, failed: 1, skipped: 1, failures: ["a::b"] });
  });

  it("a lane without tests, and one that broke silently, fail", () => {
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
