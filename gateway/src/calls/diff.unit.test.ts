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
  test("is the shortest one: as many lines as can stay, stay", () => {
    const line = fc.constantFrom("a", "b", "c");
    const lines = fc.array(line, { maxLength: 9 });
    const common = ([first, ...rest]: readonly string[], other: readonly string[]): number => {
      if (first === undefined) return 0;
      const at = other.indexOf(first);
      return Math.max(common(rest, other), at === -1 ? 0 : 1 + common(rest, other.slice(at + 1)));
    };
    const text = (of: readonly string[]): string => of.map((each) => `${each}\n`).join("");
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        fc.pre(before.join() !== after.join());
        const body = unifiedDiff("f", text(before), text(after)).split("\n").slice(2);
        const count = (mark: string): number => body.filter((each) => each.startsWith(mark)).length;
        const stays = common(before, after);
        assert.deepEqual([count("-"), count("+")], [before.length - stays, after.length - stays]);
      }),
      { numRuns: 2_000 },
    );
    assert.equal(unifiedDiff("f", "a\n", "a\na\n"), "--- f\n+++ f\n@@ -1,1 +1,2 @@\n a\n+a");
    assert.equal(unifiedDiff("f", undefined, ""), "--- /dev/null\n+++ f");
  });
  test("compares up to a million pairs of lines, and only where the texts differ", () => {
    const around = (inside: string): string => "same\n".repeat(1_500) + inside + "end\n".repeat(1_500);
    assert.equal(unifiedDiff("f", around("a\n"), around("b\n")).split("\n").length, 11);
    const numbered = (letter: string, count: number): string => {
      const all = Array.from({ length: count }, (_, index) => `${letter}${index}\n`);
      return [...all.slice(0, 500), "common\n", ...all.slice(501)].join("");
    };
    const isCompared = (before: number, after: number): boolean =>
      unifiedDiff("f", numbered("o", before), numbered("n", after)).split("\n").includes(" common");
    assert.deepEqual([isCompared(1_000, 999), isCompared(1_000, 1_000)], [true, false]);
  });
  test("parts that are too large to compare are shown whole", () => {
    const before = Array.from({ length: 1_500 }, (_, index) => `o${index}\n`).join("");
    const diff = unifiedDiff("f", before, before.replaceAll("o", "n"));
    assert.equal(diff.split("\n").filter((line) => /^-o/.test(line)).length, 1_500);
    assert.equal(diff.split("\n").filter((line) => /^\+n/.test(line)).length, 1_500);
  });
});
