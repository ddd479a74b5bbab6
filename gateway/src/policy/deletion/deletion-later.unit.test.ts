import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, braced, each } from "./deletion-cases.ts";
import { deletionOf } from "./deletions.ts";

describe("[PO13] texts and values that run later", () => {
  it("many: a text for a shell that makes the program there", () => {
    const many = [
      "split --filter='/bin/r? -rf src' a",
      "split --filter='r$@m -rf src' a",
      braced("split --filter='rm§{IFS}-rf§{IFS}src' a"),
      braced("tar cf /dev/null conf.d --checkpoint=1 --checkpoint-action=exec='rm§{IFS}-rf§{IFS}src'"),
      "tar cf /dev/null conf.d --checkpoint=1 --checkpoint-action=exec='/bin/r? -rf src'",
      "tar cf a.tar --use-compress-program='r$@m -rf src;cat' conf.d",
      "tar -I'/bin/r? -rf src' -cf a.tar conf.d",
      "tar -I '/bin/r? -rf src' -cf a.tar conf.d",
      "zip -q -T -TT '/bin/r? -rf src;:' a.zip conf.d/g1.txt",
      "git bisect run '/bin/r?' -rf src",
      braced("git -c core.pager='rm§{IFS}-rf§{IFS}src' -p log"),
      "GIT_EDITOR='/bin/r? -rf src;:' git commit --amend",
      "EDITOR='/bin/r? -rf src;:' git commit --amend",
      braced("EDITOR='rm§{IFS}-rf§{IFS}src;:' git commit --amend"),
      "EDITOR='r$@m -rf src;:' git commit --amend",
      "vim -es -c '!/bin/r? -rf src' -c q",
      "vim -c '!r$@m -rf src'",
      "sqlite3 :memory: '.shell /bin/r? -rf src'",
      braced("sqlite3 :memory: '.shell rm§{IFS}-rf§{IFS}src'"),
      "gdb -batch -ex 'shell /bin/r? -rf src'",
      braced("gdb -batch -ex 'shell rm§{IFS}-rf§{IFS}src'"),
      "awk 'BEGIN{system(\"/bin/r? -rf src\")}'",
      braced("awk 'BEGIN{system(\"rm§{IFS}-rf§{IFS}src\")}'"),
      "awk 'BEGIN{system(\"r$@m -rf src\")}'",
      braced("python3 -c 'import os;os.system(\"rm§{IFS}-rf§{IFS}src\")'"),
      "python3 -c 'import os;os.system(\"r$@m -rf src\")'",
      "python3 -c 'import os;os.system(\"/bin/r? -rf src\")'",
      braced('node -e \'require("child_process").execSync("rm§{IFS}-rf§{IFS}src")\''),
      'node -e \'require("child_process").execSync("/bin/r? -rf src")\'',
      braced("perl -e 'system(q(rm§{IFS}-rf§{IFS}src))'"),
      "perl -e 'system(q(/bin/r[m] -rf src))'",
      "perl -e 'system(\"/bin/r? -rf src\")'",
      "npx -c '/bin/r? -rf src'",
      braced("npm exec -c 'rm§{IFS}-rf§{IFS}src'"),
      braced("make CC='rm$§{IFS}-rf$§{IFS}src;:' x.o"),
      braced("CC='rm$§{IFS}-rf$§{IFS}src;:' make x.o"),
      "make --eval='x:;r$$@m -rf src' x",
      "EDITOR='nice /bin/r? -rf src' git commit",
      "python3 - <<'E'\nimport os\nos.system(\"/bin/r? -rf src\")\nE",
      "git rebase -x '/bin/r? -rf src' HEAD",
      "ed -s <<< '!/bin/r? -rf src'",
      "sqlite3 x <<< '.shell /bin/r? -rf src'",
      "echo 'import os; os.system(\"/bin/r? -rf src\")' | python3",
      "perl -e '`/bin/r? -rf src`'",
      "ruby -e '%x(/bin/r? -rf src)'",
      'python3 -c \'import os; os.system( """/bin/r? -rf src""" )\'',
      "tar cf x y --checkpoint=1 --checkpoint-a exec='/bin/r? -rf src'",
      "nice split --filter='/bin/r? -rf src' a",
      "ruby -e 'system(\"/bin/r? -rf src\")'",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: texts for a shell whose program is written out", () => {
    const few = [
      "split --filter='gzip > $FILE.gz' a",
      "tar -I zstd -cf a.tar src",
      "tar -I 'zstd -19' -cf a.tar src",
      "EDITOR=true git commit --amend",
      "EDITOR='code --wait' git commit",
      'EDITOR="$VISUAL" git commit',
      "GIT_SEQUENCE_EDITOR=\"sed -i '1s/pick/reword/'\" git rebase -i HEAD~3",
      "vim -es -c '%s/a/b/g' -c wq f",
      "vim -es -c '%!jq .' -c wq f",
      "sqlite3 a.db '.tables'",
      "sqlite3 a.db 'select * from a'",
      "gdb -batch -ex 'bt' ./a",
      "awk '{print $1 | \"sort\"}' a",
      "awk 'BEGIN{system(\"wc -l a\")}'",
      "python3 -c 'import os; os.system(\"ls *.py\")'",
      "python3 -c 'import os; os.system(\"echo $HOME\")'",
      'node -e \'require("child_process").execSync("ls *.js")\'',
      braced("node -e 'require(\"child_process\").execSync(`§{cmd} x`)'"),
      "perl -e 'system(\"ls\")'",
      "perl -e 'system(\"$cmd x\")'",
      "make CC='gcc -O2' x",
      "make SRC='*.c' x",
      "make --eval='x:;for i in 1; do echo $$i; done' x",
      "git -c user.name='A*' commit -m x",
      "git -c merge.conflictStyle=diff3 merge x",
      "git bisect run npm test",
      "git submodule foreach 'git pull || :'",
      "npx -c 'eslint src/**/*.ts'",
      "rsync -a --filter='- *.o' a/ b/",
      "pnpm --filter='./packages/*' exec tsc",
      "python3 - <<'E'\nimport os\nos.system(\"ls *\")\nE",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a value that the shell evaluates", () => {
    const many = [
      braced("PS4='$(rm§{IFS}-rf§{IFS}src)'; set -x; :"),
      braced("PS4='$(rm§{IFS}-rf§{IFS}src)' bash -xc :"),
      braced("x='$(rm§{IFS}-rf§{IFS}src)'; echo \"§{x@P}\""),
      braced("x='$(r'; x+='m -rf src)'; : \"§{x@P}\""),
      braced("x='a[$(rm§{IFS}-rf§{IFS}src)]'; echo $((x))"),
      "x='a[$(r'; x+='m -rf src)]'; echo $((x))",
      "x='a[$(r'; x+='m -rf src)]'; [[ $x -eq 0 ]]",
      "x='a[$(r'; x+='m -rf src)]'; let y=x",
      "x='a[$(r'; x+='m -rf src)]'; printf -v \"$x\" a",
      "x='a[$(r'; x+='m -rf src)]'; test -v \"$x\"",
      "x='a[$(r'; x+='m -rf src)]'; [[ -v $x ]]",
      "x='a[$(r'; x+='m -rf src)]'; unset \"$x\"",
      "x='a[$(r'; x+='m -rf src)]'; read \"$x\" <<< 1",
      "x='a[$(r'; x+='m -rf src)]'; ((x))",
      braced("x='a[$(r'; x+='m -rf src)]'; b=(1); echo §{b[x]}"),
      "x='a[$(r'; x+='m -rf src)]'; b=(1); b[x]=1",
      braced("x='a[$(r'; x+='m -rf src)]'; y=abc; echo §{y:x}"),
      braced("x='a[$(r'; x+='m -rf src)]'; echo §{!x}"),
      "x='a[$(r'; x+='m -rf src)]'; declare -i y=x",
      "x='a[$(r'; x+='m -rf src)]'; declare \"$x=1\"",
      "x='a[$(r'; x+='m -rf src)]'; for ((;x;)); do :; done",
      "x='a[$(r'; x+='m -rf src)]'; exit $x",
      "x='a[$(r'; x+='m -rf src)]'; return $x",
      "x='a[`r'; x+='m -rf src`]'; echo $((x))",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: values that the shell does not evaluate", () => {
    const few = [
      braced('echo "§{x@Q}"'),
      "PS4='+ '; set -x; npm test",
      braced("PS4='+§{BASH_SOURCE}:§{LINENO}: '; set -x; npm test"),
      "x=$(wc -l < a); echo $((x+1))",
      "i=0; i=$((i+1)); echo $i",
      "x='a $(b)'; echo \"$x\"",
      "p='^foo$'; echo $((1+1)); grep \"$p\" a",
      'm="it\'s $(date)"; echo $((1+1)) "$m"',
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a folder that code moves into a temporary folder, and its deletion", () => {
    const many = [
      'python3 -c \'import shutil;shutil.move("src","/tmp/x")\'; rm -rf /tmp/x',
      'T=$(mktemp -d); python3 -c \'import shutil,sys;shutil.move("src",sys.argv[1])\' "$T"; rm -rf "$T"',
      "cmake -E rename src /tmp/x; rm -rf /tmp/x",
      "cmake -E rename src /tmp/x",
      'node -e \'fs.renameSync("src","/tmp/x")\'; rm -rf /tmp/x',
      'perl -e \'rename "src","/tmp/x"\'; rm -rf /tmp/x',
      "mv --exchange /tmp/x src; rm -rf /tmp/x",
      'ruby -e \'FileUtils.mv "src", "/tmp/x"\'; rm -rf /tmp/x',
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: a file that is moved, or another deletion", () => {
    const few = [
      'python3 -c \'import shutil;shutil.move("src/a.ts","/tmp/x")\'',
      'python3 -c \'import os; os.rename("a.txt","b.txt")\'; rm -rf /tmp/x',
      "cmake -E rename a b",
      "cmake -E rename a.txt /tmp/a.txt",
      'node -e \'s.replace("a","b")\'; rm -rf /tmp/x',
      "mv --exchange a b",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: another name, another spelling, an earlier command", () => {
    const many = [
      'find src -type f | awk \'{f=$0; c="sh"; print "rm " f | c}\'',
      "find src -type f | awk -v c=sh '{f=$0; print \"rm \" f | c}'",
      'find src -type f | awk \'BEGIN{c="sh"} {print "rm " $0 | c}\'',
      'find src -type f | awk \'{f=$0; print "rm " f | "s" "h"}\'',
      "set -o history; history -s 'rm -rf src'; fc -s rm",
      "set -o history\nhistory -s 'rm -rf src'\nfc -s rm",
      "set -o history\nhistory -s 'rm -rf src'\nfc -e : -1",
      "strip -o q /bin/rm; ./q -rf src",
      "objcopy /bin/rm q; ./q -rf src",
      'python3 -c \'import shutil; shutil.copy("/bin/rm","q")\'; ./q -rf src',
      "python3 -c \"import shutil; shutil._rmtree('src')\"",
      "python3 -c \"import shutil; shutil._rmtree_unsafe('src', print)\"",
      "python3 -c \"import tempfile; tempfile.TemporaryDirectory._rmtree('src')\"",
      "python3 -c \"import venv; venv.create('src', clear=True)\"",
      "perl -MFile::Path -e 'File::Path::_rmtree({},[\"src\"])'",
      "ruby -rfileutils -e 'FileUtils.rm Dir[\"src/*\"]'",
      "ruby -rfileutils -e 'FileUtils.rm(Dir.glob(\"src/*\"))'",
      'node -e \'require("shelljs").rm("-rf","src")\'',
      'python3 -c \'import os; open("q","wb").write(open("/bin/rm","rb").read())\'; ./q -rf src',
      'node -e \'fs.copyFileSync("/usr/bin/rm","q")\'',
      "tclsh <<< 'file delet -force src'",
      "fc -s",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: what is like these and deletes nothing", () => {
    const few = [
      "awk '{c=\"sort -u\"; print $1 | c}' a",
      "awk '{cmd = \"date\"; cmd | getline d; close(cmd); print d}' a",
      "awk '/a|b/{print}' f",
      "awk '$1 || $2 {print $1}' f",
      "history | tail",
      "history 10",
      "fc -l",
      "strip -o q a.out",
      "objcopy -O binary a b",
      'python3 -c \'import shutil; shutil.copy("a","b")\'',
      "python3 -c \"import venv; venv.create('.venv', with_pip=True)\"",
      "ruby -rfileutils -e 'FileUtils.rm \"a.txt\"'",
      'node -e \'require("shelljs").rm("a.txt")\'',
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
});

it("[PO13] a text of 50,000 characters is read in less than half a second", () => {
  const filled = (head: string, unit: string): string => (head + unit.repeat(50_000 / unit.length)).slice(0, 50_000);
  const texts = [
    filled("git commit ", "-m \"$(cat <<'EOF'\nx\nEOF\n)\" "),
    filled("git commit -m \"$(cat <<'EOF'\n", "(a"),
    filled("cp a b; ", "cd $AB; "),
    filled("find ", "$(pwd) "),
    filled("python3 -c '*", 'run("ls *.py") '),
    filled("python3 -c '", "run{"),
    filled("awk '{*", "print a | b; "),
    filled("make ", "A='x$$' "),
    filled("x='$(';", "[[ "),
    filled("rm -rf /tmp/x; ", "move("),
    filled("git diff -R x ", "apply "),
    filled("", "EDITOR='ls *' "),
  ];
  for (const text of texts) {
    const before = process.cpuUsage();
    deletionOf(text);
    const { user, system } = process.cpuUsage(before);
    assert.ok(user + system < 500_000, text.slice(0, 40));
  }
});
