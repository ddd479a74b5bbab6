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
  it("many: code that deletes a list of files, or a folder", () => {
    const many = [
      "python3 -c 'import os,sys; [os.remove(f) for f in sys.argv[1:]]' src/*",
      "python3 -c 'import os,sys; list(map(os.remove, sys.argv[1:]))' a b",
      "python3 -c 'import os; [os.remove(f) for f in os.popen(\"ls src\").read().split()]'",
      "python3 -c 'import os,subprocess; [os.remove(f) for f in subprocess.check_output(\"ls\").split()]'",
      "python3 -c 'import os; [os.remove(l.strip()) for l in open(\"list\")]'",
      "python3 - <<'E'\nimport os\nwith open(\"list\") as f:\n  for l in f.readlines():\n    os.remove(l.strip())\nE",
      "node -e 'process.argv.slice(1).forEach(f=>fs.unlinkSync(f))' src/*",
      'node -e \'for (const f of fs.readFileSync("list","utf8").split("\\n")) fs.unlinkSync(f)\'',
      'node -e \'require("child_process").execSync("ls")+"".split("\\n").forEach(f=>fs.unlinkSync(f))\'',
      "perl -e '@a=<src/*>; unlink @a'",
      "perl -e 'unlink @ARGV' src/a src/b",
      "perl -e 'unlink for <src/*>'",
      "perl -MExtUtils::Command -e rm_f src/*",
      "vim -es -c \"call delete('src','rf')\" -c q",
      'vim -es -c \'call delete("src", "rf")\' -c q',
      "echo 'file delete -force src' | tclsh",
      "tclsh <<'E'\nfile delete -force src\nE",
      "echo 'eval file delete [glob src/*]' | tclsh",
      'python3 -c \'import shutil; shutil.move("src","/dev/shm/x")\'',
      'python3 -c \'import os; os.rename("src","/run/x")\'',
      'node -e \'fs.renameSync("src", "/dev/shm/x")\'',
      'ruby -e \'FileUtils.mv("src", "/var/tmp/x")\'',
      "ruby -e 'File.delete(*ARGV)' src/*",
      "ruby -e 'File.delete(*ARGV)' a b",
      "ruby -e 'ARGV.each { |f| File.unlink f }' a b",
      'node -e \'require("fs-extra").removeSync("src")\'',
      'node -e \'require("fs-extra").remove("src")\'',
      "zsh -c 'zmodload zsh/files; zf_rm -rf src'",
      "pwsh -c 'Remove-Item -Recurse src'",
      'pwsh -Command "Get-ChildItem src | Remove-Item"',
      "pwsh -c 'ri -r src'",
      "ls src | perl -ne 'chomp; unlink($f)'",
      "ls src | ruby -ne 'File.delete($F)'",
      "perl -e '@a=glob(\"*\"); unlink(@a)'",
      'python3 -c \'import shutil,os; shutil.move("src", os.path.join("/dev/shm","x"))\'',
      'python3 -c \'from pathlib import Path; Path("src").rename("/run/x")\'',
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: code that deletes one file, or only reads a list", () => {
    const few = [
      "python3 -c 'print(open(\"x\").read())'",
      "python3 -c 'import sys; print(sys.argv[1:])' src/*",
      "python3 -c 'import os,sys; os.remove(sys.argv[1])' a.txt",
      'python3 -c \'import os; os.remove("a.txt"); print(open("b").read())\'',
      'python3 - <<\'E\'\nimport os\nfor l in open("x"):\n    print(l.split())\nos.remove("x.tmp")\nE',
      "python3 -c 'import subprocess; print(subprocess.check_output(\"ls\"))'",
      "node -e 'console.log(process.argv.slice(1))' a b",
      'node -e \'fs.unlinkSync("a.txt"); console.log(fs.readFileSync("b"))\'',
      "perl -e 'unlink \"a.txt\"'",
      "perl -ne 'print if /x/' f",
      'python3 -c \'import shutil; shutil.move("a","b")\'',
      'python3 -c \'x.replace("a","/dev/null")\'',
      'node -e \'fs.renameSync("a", "b")\'',
      "vim -es -c '%s/a/b/' -c wq f",
      "echo 'file exists a' | tclsh",
      "pwsh -c 'Remove-Item a.txt'",
      "pwsh -c 'Get-ChildItem'",
      "node -e 'Deno.removeSync(\"a.txt\")'",
      'node -e \'require("fs-extra").copySync("a","b")\'',
      "ruby -e 'File.delete(\"a.txt\")'",
      "ruby -e 'puts ARGV' a b",
      'python3 - <<\'E\'\nfrom pathlib import Path\nfor l in open("x"):\n    print(l)\nPath("x.tmp").unlink(missing_ok=True)\nE',
      "ssh host 'mv a b && cat /proc/cpuinfo'",
      "python3 -c 'print(\"file deleted\"); print(sys.argv)'",
      "perl -pi -e 's/a/b/' *.txt",
      "perl -ne 'unlink \"a.txt\" if eof' f",
      "node -e 'map.delete(k, r); for (const a of process.argv) console.log(a)'",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: an extraction, an environment or a test run that empties a folder first", () => {
    const many = [
      "tar xf a.tar --recursiv",
      "tar xf a.tar --recursive",
      "tar xf a.tar --recursive-unlink",
      "tar xGf a.tar",
      "tar -xGf a.tar",
      "tar -x -G -f a.tar",
      "tar xgf snap a.tar",
      "tar xf a.tar --inc",
      "tar xf a.tar --listed=snap",
      "tar --extract --incremental -f a.tar",
      "TAR_OPTIONS=-G tar xf a.tar",
      "python3 -m venv --clear src",
      "python3.12 -m venv --cl src",
      "virtualenv --clear src",
      "uv venv --clear src",
      "pytest --basetemp=src",
      "pytest --basetemp src",
      "python3 -m pytest --basetemp=src",
      "poetry run pytest --basetemp=src",
      "python3 -mvenv --clear src",
      "python3 -Im venv --clear src",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: archives, environments and tests that delete nothing", () => {
    const few = [
      "tar xzf a.tgz",
      "tar xf a.tar --recursion",
      "tar -xzf big.tgz -C out",
      "tar -xfbig.tar",
      "tar czgf snap a.tgz src",
      "tar --listed-incremental=snap -czf a.tgz src",
      "tar tf a.tar",
      "tar --exclude=.git -czf a.tgz .",
      "python3 -m venv .venv",
      "virtualenv .venv",
      "uv venv",
      "pytest -q",
      "pytest --basetemp=/tmp/x",
      "python3 -m pytest -q",
      "python3 -m pip install x",
      "python3 -c 'import venv' --clear",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
});
