import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, each } from "./deletion-cases.ts";

describe("[PO13] deletions by what ordinary tools are given", () => {
  it("a difference that takes files away and is applied", () => {
    const many = [
      "git diff -R | git apply",
      "git diff -R HEAD | patch -p1",
      "git diff -R HEAD > p; git apply p",
      "git show -R | git apply",
      "git diff --no-index src e | git apply",
      "mkdir e; git diff --no-index src e | git apply",
      "diff -ruN src e | patch -p0",
      "diff -ruN src e > p && sh -c 'patch -p0 < p'",
      "sh -c 'git diff -R | git apply'",
    ];
    const few = [
      "git diff > p; git apply p",
      "git diff | git apply --check",
      "git diff -R > p",
      "git diff -R | git apply --stat",
      "git diff HEAD~1 -- a.ts | git apply --cached",
      "diff -u a b | patch -p0",
      "diff -ruN a b > x.patch",
      "git diff -R HEAD | less",
    ];
    assert.deepEqual([all(many), all(few)], [each(many, "many"), each(few, "few")]);
  });
  it("a program for git that only deletes", () => {
    const many = [
      "PAGER=rm git grep -O ''",
      "export PAGER=rm; git grep -O .",
      "PAGER=/bin/rm git grep -Ol .",
      "PAGER=unlink git grep -O .",
      "GIT_DIFFTOOL_EXTCMD=rm git difftool -y",
      "git -c difftool.meld.path=rm difftool -y -t meld",
      "git -c diff.external=rm diff",
      "git -c diff.external=/bin/rm diff HEAD~1",
      "git -c diff.x.command=rm -c core.attributesFile=at diff",
      "git -c diff.x.textconv=rm -c core.attributesFile=at diff",
      "git config diff.external rm; git diff",
      "git config --local core.editor 'rm -f' && git commit",
    ];
    const few = [
      "PAGER=cat git log",
      "EDITOR=true git commit --amend",
      "git -c core.pager=cat log",
      "git -c user.name=rm commit -m x",
      "git config --get diff.external",
      "git -c diff.external=difft diff",
      "git config core.editor vim",
    ];
    assert.deepEqual([all(many), all(few)], [each(many, "many"), each(few, "few")]);
  });
  it("a folder that a tool empties because the text names it", () => {
    const many = [
      "cargo clean --target-dir src",
      "cargo clean --target-dir=src",
      "cargo +nightly clean -v --target-dir ../x",
      "cargo clean --config build.target-dir='\"src\"'",
      "CARGO_TARGET_DIR=src cargo clean",
      "export CARGO_TARGET_DIR=src; cargo clean",
      "read CARGO_TARGET_DIR < f; cargo clean",
      "GOMODCACHE=$PWD/src go clean -modcache",
      "env GOCACHE=/x go clean -cache",
      "PYTEST_ADDOPTS=--basetemp=src pytest",
      "export PYTEST_ADDOPTS='-q --basetemp=src'; pytest",
      "pytest -o addopts=--basetemp=src",
      "pytest -q -o 'addopts=-q --basetemp src'",
      "python3 -m pytest -o addopts=--basetemp=src",
      "coverage run -m pytest --basetemp=src",
      "pytest-3 --basetemp=src",
    ];
    const few = [
      "cargo clean",
      "cargo clean --target-dir /tmp/t",
      "cargo clean --target-dir target-musl",
      "CARGO_TARGET_DIR=/tmp/t cargo clean",
      "CARGO_TARGET_DIR=target cargo clean -p x",
      "CARGO_TARGET_DIR=src cargo build",
      "echo $CARGO_TARGET_DIR; cargo clean",
      "go clean -modcache",
      "go clean -cache ./...",
      "PYTEST_ADDOPTS=-q pytest",
      "PYTEST_ADDOPTS='-q --basetemp=/tmp/x' pytest",
      "pytest -o addopts=-q",
      "coverage run -m pytest -q",
      "pytest-3 -q",
    ];
    assert.deepEqual([all(many), all(few)], [each(many, "many"), each(few, "few")]);
  });
});
