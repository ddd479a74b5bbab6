import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, each } from "./deletion-cases.ts";

describe("[PO13] deletions by a roundabout way", () => {
  it("many: an escape that ends a line or a word, in a text that something else runs", () => {
    const many = [
      "printf 'true\\nrm -rf src\\n' | sh",
      "printf '#!/bin/sh\\nrm -rf src\\n' > x.sh && chmod +x x.sh && ./x.sh",
      "printf 'clean:\\n\\trm -rf src\\n' > Makefile && make clean",
      "printf 'x:\\n\\trm -rf src\\n' | make -f -",
      "printf 'x:\\n\\trm -rf src\\n' | make -f/dev/stdin",
      "printf 'x:\\n\\trm -rf src\\n' | make --file=- x",
      "printf 'rm\\t-rf\\tsrc\\n' | sh",
      "echo -e 'true\\nrm -rf src' | sh",
      "python3 -c 'import os; os.system(\"true\\nrm -rf src\")'",
      "python3 - <<'E'\nimport os\nos.system(\"true\\nrm -rf src\")\nE",
      "python3 -c \"import subprocess; subprocess.run('cd .\\nrm -rf src', shell=True)\"",
      'node -e \'require("child_process").execSync("true\\nrm -rf src")\'',
      "perl -e 'system(\"true\\nrm -rf src\")'",
      "awk 'BEGIN{system(\"true\\nrm -rf src\")}'",
      "python3 -c 'import os; os.system(\"true\\012rm -rf src\")'",
      "python3 -c 'import os; os.system(\"\\x72\\x6d -rf src\")'",
      "printf 'true\\012rm -rf src\\n' > x.sh; sh x.sh",
      "sh -c $'true\\nrm -rf src'",
      "printf 'all:\\n\\trm -rf src\\n' | tee GNUmakefile; make",
      "printf 'a\\\\nrm -rf src\\n' | bash",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: texts with escapes that only print or write, and files that make reads", () => {
    const few = [
      "printf 'a\\nb\\n' > x",
      "echo -e 'hello\\nworld'",
      "printf 'clean:\\n\\trm -rf dist\\n' >> Makefile",
      "printf '#!/bin/sh\\nrm -rf dist\\n' > clean.sh",
      "printf 'all:\\n\\tcc a.c\\n' > Makefile && make",
      "printf 'true\\nrm a.txt\\n' | sh",
      "printf 'a\\tb\\n' | sh -c 'cat'",
      "python3 -c 'print(\"a\\nrm b\")'",
      "make test",
      "make -f build.mk all",
      "make -j4 2>&1 | tail -5",
      "echo -e 'a\\tb' | awk '{print $2}'",
      "node -e 'console.log(\"a\\nb\")'",
      "grep -rn rm .",
      "git grep rm",
      "git commit -m 'a\\nrm -rf src'",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: git with a program for each file, the shortest beginning of an option, or a configuration in variables", () => {
    const many = [
      "git grep -Orm ''",
      "git grep -nOrm .",
      "git grep -O'rm -f' .",
      "git grep -O/bin/rm .",
      "git grep --open-files-in-pager=rm -e .",
      "git grep --op=rm -e .",
      "GIT_PAGER=rm git grep -O ''",
      "git -c core.pager=rm grep -O ''",
      "git difftool -y -x rm HEAD",
      "git difftool -yxrm HEAD",
      "git difftool -y --extcmd=rm HEAD",
      "git difftool -y --ext rm HEAD",
      "git restore --staged --w .",
      "git checkout-index --f --a",
      "git checkout-index -f *",
      "git ls-files | git checkout-index -f --stdin",
      "git stash --in",
      "git stash --a",
      "git stash push --i",
      "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='clean -fdxq' git x",
      "env GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=stash git x -u",
      "GIT_CONFIG_PARAMETERS=\"'alias.x=clean -fdxq'\" git x",
      "export GIT_CONFIG_KEY_0=alias.x; git x",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: git that shows, or that changes no file", () => {
    const few = [
      "git grep rm",
      "git grep -n rm .",
      "git grep -O less foo",
      "git grep -Oless foo",
      "git grep -e find --and -e git",
      "git difftool -y -x 'diff -u' HEAD",
      "git difftool HEAD",
      "git restore --staged .",
      "git restore --staged a.txt",
      "git checkout-index a.txt",
      "git checkout-index -f a.txt",
      "git checkout-index -a --prefix=out/",
      "git stash",
      "git stash push -m wip",
      "git stash --keep-index",
      "git stash list",
      "git stash pop --index",
      "GIT_CONFIG_GLOBAL=/dev/null git status",
      "echo $GIT_CONFIG_COUNT",
      "GIT_PAGER=cat git log",
      "git diff -Oorder HEAD",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
});
