import assert from "node:assert/strict";
import { test } from "node:test";
import type { SkillPin } from "../../ports/skills.ts";
import { approvalOf, unreported } from "./pins.ts";

type Folder = Parameters<typeof unreported>[0][number];
const folder = (sha256: string | undefined, scope = "workspace", name = "mail") =>
  ({ scope, name, ...(sha256 === undefined ? {} : { sha256 }) }) as unknown as Folder;
const pin = (sha256: string, next?: string, scope = "workspace", name = "mail") =>
  ({ scope, name, sha256, ...(next === undefined ? {} : { next }) }) as unknown as SkillPin;

test("a skill is approved as it was pinned, or as its announced change", () => {
  assert.equal(approvalOf(folder("a"), [pin("a")]), "approved");
  assert.equal(approvalOf(folder("b"), [pin("a", "b")]), "approved");
  assert.equal(approvalOf(folder("c"), [pin("a", "b")]), "changed");
  assert.equal(approvalOf(folder("c"), [pin("a")]), "changed");
  assert.equal(approvalOf(folder(undefined), [pin("a")]), "changed");
  assert.equal(approvalOf(folder("a"), [pin("a", undefined, "shared"), pin("a", undefined, "workspace", "other")]), "unseen");
  assert.equal(approvalOf(folder(undefined, "builtin"), []), "approved");
});
test("skills without a pin and announced changes are reported, built-in and unreadable ones are not", () => {
  const reported = (one: Folder, ...pins: SkillPin[]): number => unreported([one], pins).length;
  assert.deepEqual(unreported([folder("a")], []), [{ scope: "workspace", name: "mail", sha256: "a" }]);
  assert.equal(reported(folder("a"), pin("a")), 0);
  assert.equal(reported(folder("b"), pin("a", "b")), 1);
  assert.equal(reported(folder("c"), pin("a", "b")), 0);
  assert.equal(reported(folder("a", "builtin")), 0);
  assert.equal(reported(folder(undefined)), 0);
});
