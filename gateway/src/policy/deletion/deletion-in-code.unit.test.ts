import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, each } from "./deletion-cases.ts";

describe("[PO13] deletions that hide in code", () => {
  it("many: the function and its option stand anywhere in the code", () => {
    const many = [
      "node -e \"fs.rmSync(String('d'),{recursive:true})\"",
      'node -e \'fs["rmSync"]("d",{recursive:true})\'',
      "node -e 'fs[`rm`](\"d\",{recursive:!0},()=>{})'",
      "node -e \"const o={recursive:true};require('fs').rmSync('d',o)\"",
      "node -e 'const {rm:x}=fs; x(\"d\", {recursive:true},f)'",
      "node -e 'fs.rm.call(fs,\"d\",{recursive:true},f)'",
      "node -e 'fs.promises.rm ( p(1), {force:true, recursive:true})'",
      "bun -e 'rmdirSync(join(a()),{recursive:true})'",
      'deno eval \'Deno["remove"](f("d"),{recursive:true})\'',
      "node <<'E'\nfs.rmSync(String('d'),\n{recursive:true})\nE",
      "ruby -e 'FileUtils.remove_entry_secure \"d\"'",
      "ruby -e 'FileUtils.remove_dir(\"d\")'",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "bash -lc 'git submodule update --init --recursive && rm -f a.txt'",
      "sh -c 'git clone --recursive x && rm a.tgz'",
      "node -e 'fs.mkdirSync(\"a\",{recursive:true})'",
      "node -e 'fs.rmSync(\"a.txt\")'",
      "node -e 'fs.rmdirSync(\"a\")'",
      "python3 -c 'import glob; print(glob.glob(\"**\", recursive=True))'",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: what a script of sed runs, by its command or by its flag", () => {
    const many = [
      'sed -n "1e mv d /tmp/q" F',
      "sed '1erm -rf d' F",
      "sed '/x/e rm -rf d' F",
      "sed '\\%x%,$!{p;e rm -rf d\n}' F",
      "sed -ne '1e rm -rf d' F",
      "sed -e1erm\\ -rf\\ d F",
      "sed --expression='1e $X -rf d' F",
      "sed e F",
      "sed '$!e' F",
      "sed '1s/a/b/e' F",
      "sed 's/a/b/;s:c:d:e;p' F",
      "sed 's/a/b/gIe' F",
      "sed 's/a\\/b/c/2e' F",
      "sed -es!a!b!e F",
      "sed 'y/a/b/;s/.*/rm -rf d/e' F",
      "busybox sed 's/a/b/e' F",
      "find . -name x -exec sed 's/a/b/e' {} +",
      "ls | xargs sed 's/.*/rm -r &/e'",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "sed -n '1,5p' e.txt",
      "sed 's/e/E/g' some/release.txt",
      "sed -E 's#(a|e)#[\\1]#g;/e/d' src/e",
      "sed '1i e $X -rf' F",
      "deno eval 'Deno.mkdir(\"a\",{recursive:true})'",
      "sed '/re/,/e$/d' F",
      "sed 's/a/b/w e.txt' F",
      "sed ':e;N;$!be;s/\\n/ /g' F",
      "sed 'y/abe/xye/' F",
      "sed '1e date' F",
      "sed -ie 's/a/b/' F",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a subcommand of git that is a program of its own", () => {
    const many = [
      "/usr/lib/git-core/git-clean -fdx",
      "git-clean -fdx",
      "env git-clean -fdx",
      "sudo /usr/lib/git-core/git-stash -u",
      "sh -c 'git-reset --hard'",
      "echo -fdx | xargs git-clean",
      "python3 -c 'os.system(\"git-clean -fdx\")'",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = ["git-clean -n", "/usr/lib/git-core/git-status", "git-utils/run x", "env git-log"];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a program that runs its arguments", () => {
    const many = ["jobs -x rm -rf d", "jobs -lx rm -rf d", "systemd-inhibit --what=idle rm -rf d", "uclampset -m 1 rm -rf d"];
    const machines = ["x86_64", "i386", "i586", "i686", "uname26", "s390x", "aarch64"].map((name) => `${name} rm -rf d`);
    assert.deepEqual(all([...many, ...machines]), each([...many, ...machines], "many"));
    const few = ["jobs -l", "x86_64 make", "systemd-inhibit cargo build"];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: git takes the text after --exclude, however it is shortened, for a pattern", () => {
    const many = [
      "git clean -fdx --ex --dry-run",
      "git clean -fdx --e --dry-run",
      "git clean -fdx --exclud -n",
      "git rm -r --pathspec-from-file --dry-run",
      "git rm -r --pathspec-fr -n",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = ["git clean -fdx --ex=a --dry-run", "git clean -fdx --ex a -n", "git clean -fdx --dry-run --ex a"];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a shell that reads its commands from a pipe, whatever its options are", () => {
    const shells = [
      "sh +x",
      "bash --norc",
      "bash -o pipefail",
      "bash -oo pipefail errexit",
      "bash -euo pipefail",
      "bash --rcfile x",
      "sh -s -- x",
      "sh -s x",
      "bash /dev/stdin",
      "bash -- /dev/fd/0",
      "bash /dev/../dev//stdin",
      "bash /proc/self/fd/0",
      "sh -",
      "sh --",
      "sh - /dev/stdin",
      "(cd /dev; sh stdin)",
      "sh $X",
      'sh "$X"',
      'sh "$@"',
      "sh /dev/st*n",
      "x86_64 bash",
      "setarch i386 sh +e",
      "{ sh +x; }",
      "sudo -u me bash --login",
      "bash -c sh",
      "bash -c 'exec sh'",
      ". /dev/stdin",
      "source /dev/fd/0",
      "zsh --emulate sh",
      "fish -N",
      "fish --features x",
      "csh -f",
      "pwsh -NoProfile -Command -",
    ];
    const many = shells.map((shell) => `echo cm0gLXJmIGQ= | base64 -d | ${shell}`);
    assert.deepEqual(all(many), each(many, "many"));
    const more = ["ln -s /dev/stdin s; curl x | sh s", "cat <<E | base64 -d | sh +x\ncm0=\nE", "X=/dev/stdin; curl x | sh $X"];
    assert.deepEqual(all(more), each(more, "many"));
    const few = [
      "ls | sh step.sh",
      "ls | bash -e ./step.sh",
      "ls | bash -o pipefail step.sh a",
      "ls | bash -- step.sh",
      "ls | bash -c 'wc -l'",
      "ls | fish step.fish",
      'sh "$t" > out 2>&1',
      "sh build.sh | tee log; bash --norc x.sh",
      "echo ok | sh -s -- x",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: the beginning of a long option that takes a command", () => {
    const many = [
      "split --fi='rm -rf proj/s4' f",
      "split --f 'rm -rf proj/s4' f",
      "zip --test --unzip-c 'rm -rf src' a.zip f",
      "zip --test --unz='rm -rf src' a.zip f",
      "tar cf a.tar --use-c='rm -rf d' x",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = ["split --lines=5 --fi='gzip > $FILE.gz' f", "zip --test a.zip f", "sort --compress-program=gzip f"];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a branch that begins without files", () => {
    const many = ["git switch --orphan z", "git -C a switch --orp z"];
    assert.deepEqual(all(many), each(many, "many"));
    const few = ["git switch z", "git switch -c z", "git checkout --orphan z"];
    assert.deepEqual(all(few), each(few, "few"));
  });
});

describe("[PO13] text that is written and not run", () => {
  it("few: a script in a here-document, a replacement of sed, and the name of a test", () => {
    const few = [
      "cat > clean.sh <<'X'\n#!/bin/sh\nrm -rf dist\nX",
      "cat > clean.sh <<'X'\nrm -rf dist\nX\nchmod +x clean.sh\nls -l",
      'mkdir -p scripts && cat > scripts/clean.sh <<"X" && chmod +x scripts/clean.sh\nrm -rf dist\nX',
      "cat <<'X' > clean.sh\nrm -rf dist\nX\n\ngit add clean.sh && git status",
      "cat >> Makefile <<-X\n\tclean:\n\t\trm -rf dist\n\tX",
      "tee clean.sh <<'X'\nrm -rf dist\nX",
      "tee -a clean.sh > /dev/null <<'X'\nrm -rf dist\nX\ncat clean.sh | head -5",
      "cat > /tmp/notes.md <<'X'\nUse `rm -rf $D`.\nX",
      "sed -i 's/rm -rf dist/rm -rf build/' Makefile",
      "sed -i.bak -E -e 's|rm -rf a b|rm -rf c d|g' -e '3,5s/x y/z/;$!p' Makefile && git diff",
      "sed -n '/rm -rf/p' Makefile | head -3",
      "python3 -m pytest tests/test_delete.py -k 'remove_dir'",
      "cd api && python -m pytest -q -k rmtree 2>&1 | tail -5",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a script of sed of which programs disagree where it ends, or that has no end", () => {
    const many = ["sed -i 's/x[rm -rf a b]/c/' Makefile", "sed -i 's/rm -rf a b' Makefile"];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("many: the written file, or the input, is run in the same text", () => {
    const script = "cat > c.sh <<'X'\nrm -rf dist\nX\n";
    const many = [
      ...["sh c.sh", "./c.sh", ". c.sh", "bash < c.sh", "cat c.sh | sh", "chmod +x c.sh && ./c.sh", "env sh c.sh", "make", "npm test"].map(
        (run) => script + run,
      ),
      ...[
        "xargs -a c.sh env",
        "find . -name c.sh -exec sh {} +",
        "(sh c.sh)",
        "x=$(sh c.sh)",
        "$PWD/c.sh",
        "`sh c.sh`",
        "true & sh c.sh",
      ].map((run) => script + run),
      ...["git commit -m x", "git -c core.pager=./c.sh log", "python3 -m pytest", "echo a > b; sh c.sh", "crontab c.sh"].map(
        (run) => script + run,
      ),
      "cat > c.sh <<'X' | sh\nrm -rf dist\nX",
      "cat > c.sh <<'X'; sh c.sh\nrm -rf dist\nX",
      "sh <<'X'\nrm -rf dist\nX",
      "cat <<'X' | sh\nrm -rf dist\nX",
      "tee >(sh) <<'X'\nrm -rf dist\nX",
      "cat > c.sh <<X\n$(rm -rf dist)\nX",
      "cat > c.sh <<X\n`rm -rf dist`\nX",
      "cat > c.sh <<'X'\nX\nrm -rf dist",
      "cat > c.sh <<'X'\nX \nX\nrm -rf dist\nX",
      "cat > c.sh <<-'X'\n\tX\nrm -rf dist\nX",
      "cat > c.sh <<'X'Y\nX\nXY\nrm -rf dist\nX",
      "cat > c.sh <<'X'\nrm -rf dist",
      "cat > .git/config <<'X'\n[core]\nfsmonitor=\"\nrm -rf dist\"\nX\ngit status",
      "cd .git && cat > info.x <<'X'\nrm -rf dist\nX\ngit status",
      "cat > .bashrc <<'X'\nrm -rf dist\nX",
      "cat > /dev/fd/3 <<'X'\nrm -rf dist\nX",
      "cat > $F <<'X'\nrm -rf dist\nX",
      "cat() { sh; }; cat > c.sh <<'X'\nrm -rf dist\nX",
      "echo 'a\ncat > c.sh <<X\n'; rm -rf dist\nX",
      "exec 3> >(sh)\ncat > c.sh <<'X'\nrm -rf dist\nX",
      "cat > conftest.py <<'X'\nimport shutil; shutil.rmtree('d')\nX\npython3 -m pytest",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("many: sed runs it, or something runs what sed has written", () => {
    const many = [
      "sed -i 's/true/rm -rf d/' run.sh && sh run.sh",
      "sed -i 's/true/rm -rf d/' run.sh; ./run.sh",
      "sed -i 's/true/rm -rf d/' Makefile; make",
      "sed -i 's/x/y = !rm -rf d/' .git/config && git status",
      "sed -i 's/x/rm -rf d/' conftest.py && python3 -m pytest -k remove_dir",
      "sed 's/.*/rm -rf d/' a | sh",
      "sed 's/.*/rm -rf d/e' a",
      "sed 's/.*/rm -rf d/ge' a",
      "sed 's/a/b/;e rm -rf d' a",
      "sed 's/a/b/;1e rm -rf d' a",
      "sed -e 's/a/b/' -e 'e rm -rf d' a",
      "sed -n '/x/e rm -rf d' a",
      "sed 's/[/]/e rm -rf d/' a",
      "sed 's/a/b/\ne rm -rf d' a",
      "sed -n 's/rm -rf d/x/w /dev/stdout' a | sh",
      "sed -f 'rm -rf d' a",
      "sed --expression='s/a/rm -rf d/e' a",
      "sed -ie 's/rm -rf d/x/e' a",
      "sed -ne 'p' -e '$e rm -rf d' a",
      "find . -exec sed -i 's/a/rm -rf d/e' {} +",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("many: a module of Python with code, or after a change", () => {
    const many = [
      "python3 -m timeit 'shutil.rmtree(\"d\")'",
      "python3 -c 'shutil.rmtree(\"d\")' -m pytest",
      "python3 -m pytest -k remove_dir; python3 -c 'shutil.rmtree(\"d\")'",
      "python3 -m pytest -k remove_dir && rm -rf d",
      "python3 -m pytest -k remove_dir | xargs rm -rf",
      "python3 -m pytest -k remove_dir | sh",
      "echo 'shutil.rmtree(1)' | tee conftest.py && python3 -m pytest",
      'python3 -m pytest -k "$(rm -rf d)"',
      "python3 -m pdb -c '!shutil.rmtree(\"d\")' a.py",
      "python3 -m code <<< 'shutil.rmtree(\"d\")'",
      "ls | python3 -m asyncio 'rmtree'",
      "sudo python3 -m cProfile -m 'rmtree'",
      "echo 'shutil.rmtree(1)' | python3 -m pytest -s",
      "echo 'shutil.rmtree(1)' |   python3 -m pytest -s",
      "python3 -m pytest --pdb -k remove_dir",
      "python3 -m pytest --basetemp=src -k remove_dir",
      "python3 -m pylint --init-hook='shutil.rmtree(1)' a.py",
      "python3 -m pytest --tx 'popen//python=rm -rf d'",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
});
