import assert from "node:assert/strict";
import { test } from "node:test";
import { foldedPath, isGrantableFolder, isGrantablePath, isOrdinaryInside, normalPath } from "./paths.ts";

test("a path without detours, as far as the text tells", () => {
  for (const [path, normal] of [
    ["a/./b//c/", "a/b/c"],
    ["a/b/../c", "a/c"],
    ["a/..", ""],
    ["../a", "../a"],
    ["../../a", "../../a"],
    ["a/../../b", "../b"],
    ["/..", "/"],
    ["/../../a", "/a"],
    ["/a/../b", "/b"],
    ["/", "/"],
    ["", ""],
  ] as const)
    assert.equal(normalPath(path), normal, path);
  assert.equal(foldedPath("A\\.\\b/\u200bC"), "a/b/c");
});
test("[PO7] an ordinary file inside the workspace", () => {
  const long = (length: number): string => `${"a/".repeat(length / 2 - 1)}ab`;
  for (const path of ["a", "src/a.ts", "./a", long(4096)]) assert.ok(isOrdinaryInside(path), path);
  for (const path of ["", undefined, 5, "/a", "~", "~/a", "..", "a/../b", "a\\b", "C:a", "a\nb", ".env", "a/.Git/b", `${long(4096)}c`])
    assert.ok(!isOrdinaryInside(path), String(path));
});
test("[GR2] a path for a grant may be absolute, and is short and exact", () => {
  for (const path of ["a", "src/a.ts", "/home/me/a", "a".repeat(512)]) assert.ok(isGrantablePath(path), path);
  for (const path of ["", undefined, 5, "~/a", "..", "/a/../b", "a\\b", "C:a", "a\u200bb", "/home/.ssh/a", "a".repeat(513)])
    assert.ok(!isGrantablePath(path), String(path));
});
test("[PO7] [GR2] settings and hooks of git make programs run in a folder of any name", () => {
  for (const path of [
    "config",
    "meta/config",
    "proj.git/Config",
    "proj.git/./config/",
    "proj.git/worktrees/main/config.worktree",
    "proj.git/worktrees/main/commondir",
    "proj.git/worktrees/main/gitdir",
    "proj.git/HEAD",
    "plain/info/attributes",
    "mirror.git/hooks/post-update",
    "mirror.git//Hooks/Update",
    "hooks/pre-commit",
    "hooks/fsmonitor-watchman",
    "opencode.json",
    "web/Mise.toml",
  ])
    assert.ok(!isOrdinaryInside(path) && !isGrantablePath(path), path);
  for (const path of [
    "config.json",
    "config/app.ts",
    "src/config.ts",
    "src/hooks/useX.ts",
    "src/hooks/update.ts",
    "hooks/pre-commit.sample",
    "hooks/README",
    "src/update",
    "info/a.md",
    "attributes",
    "gitdir.md",
  ])
    assert.ok(isOrdinaryInside(path) && isGrantablePath(path), path);
  assert.ok(isGrantableFolder("config") && !isGrantableFolder("a/.git"));
});
