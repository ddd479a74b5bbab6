import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import fc from "fast-check";
import { unifiedDiff } from "./diff.ts";

const folder = mkdtempSync(join(tmpdir(), "gsv-diff-"));
after(() => rmSync(folder, { recursive: true, force: true }));
/** The old text with the diff, by git. */
function applied(before: string, diff: string): string {
  writeFileSync(join(folder, "f.md"), before);
  writeFileSync(join(folder, "d.patch"), `${diff}\n`);
  execFileSync("git", ["apply", "--unidiff-zero", "--whitespace=nowarn", "-p0", "d.patch"], { cwd: folder, stdio: "pipe" });
  return readFileSync(join(folder, "f.md"), "utf8");
}

describe("[TA10] the diff of a question", () => {
  test("shows changes with three lines around them, in one hunk when they are near", () => {
    const before = "a\nb\nc\nd\ne\nf\ng\nh\n";
    assert.equal(
      unifiedDiff("SOUL.md", before, before.replace("e", "E")),
      ["--- SOUL.md", "+++ SOUL.md", "@@ -2,7 +2,7 @@", " b", " c", " d", "-e", "+E", " f", " g", " h"].join("\n"),
    );
    assert.equal((unifiedDiff("SOUL.md", before, before.replace("a", "A").replace("h", "H")).match(/@@ -/g) ?? []).length, 1);
    const long = Array.from({ length: 40 }, (_, index) => `line ${index}\n`).join("");
    const twice = unifiedDiff("f", long, long.replace("line 2\n", "x\n").replace("line 35\n", "y\n"));
    assert.deepEqual(twice.match(/@@.*@@/g), ["@@ -1,6 +1,6 @@", "@@ -33,7 +33,7 @@"]);
  });
  test("a new file, a deleted file, a last line without its end, and no difference", () => {
    assert.equal(unifiedDiff("f", undefined, "a\n"), "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a");
    assert.equal(unifiedDiff("f", "a\n", undefined), "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a");
    assert.match(unifiedDiff("f", "a", "a\n"), /-a\n\\ No newline at end of file\n\+a$/);
    assert.equal(unifiedDiff("f", "a", "a"), "");
  });
  test("git applies it to the old text and gets the new one", () => {
    const line = fc.constantFrom("a", "b", "c", "", " x", "- y", "+ z");
    const text = fc.tuple(fc.array(line, { maxLength: 12 }), fc.boolean()).map(([lines, end]) => lines.join("\n") + (end ? "\n" : ""));
    fc.assert(
      fc.property(text, text, (before, next) => {
        fc.pre(before !== next && before !== "" && next !== "");
        assert.equal(applied(before, unifiedDiff("f.md", before, next)), next);
      }),
      { numRuns: 60 },
    );
  });
  test("parts that are too large to compare are shown whole", () => {
    const before = Array.from({ length: 1_500 }, (_, index) => `o${index}\n`).join("");
    const diff = unifiedDiff("f", before, before.replaceAll("o", "n"));
    assert.equal(diff.split("\n").filter((line) => /^-o/.test(line)).length, 1_500);
    assert.equal(diff.split("\n").filter((line) => /^\+n/.test(line)).length, 1_500);
  });
});
