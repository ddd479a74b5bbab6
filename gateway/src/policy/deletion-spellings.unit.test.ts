import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, braced, each, files } from "./deletion-cases.ts";
import { deletionOf } from "./deletions.ts";

describe("[PO13] plain spellings of a deletion", () => {
  it("many: a program whose name the shell makes, that runs another one, or that deletes by itself", () => {
    const many = [
      "time -- rm -rf src",
      "time -p -- rm -rf src",
      "cp $(which rm) q; ./q -rf src",
      "cp `command -v rm` q && ./q -rf src",
      'mapfile -C "rm -rf src" -c 1 < f',
      "readarray -C 'rm -rf src' a < f",
      "mv x /tmp/y && rm -rf /tmp/y",
      "cd /tmp && mv ~/d x; rm -rf /tmp/x",
      "sudo -u me $R -rf d",
      "timeout -k 5 10 $R -rf d",
      "busybox $R -rf d",
      'trap "$X" EXIT',
      "git --config-env=alias.x=Y x",
      "GIT_EDITOR='rm -rf d' git commit",
      "PAGER='rm -rf d' man x",
      "echo 'rm -rf d' > x.sh && sh x.sh",
      "echo 'rm -rf d' > x; chmod +x x; ./x",
      "base64 -d <<< cm0= | sh -s",
      "xargs -a c -n1 sh -c",
      "awk '{system($0)}' f",
      "awk '{print | \"sh\"}' f",
      "sed -n e f",
      "sed 's/a/b/e' f",
      "RM=rm; $RM -rf d",
      "$(echo rm) -rf d",
      "git -c alias.x='clean -fdxq' x d",
      "git -c alias.x=clean x -fdx",
      "tar -cf /dev/null a.txt --checkpoint=1 --checkpoint-action=exec='rm -rf d'",
      "sed -n '1e rm -rf d' a.txt",
      "cmake -E remove_directory d",
      "cmake -E rm -rf .",
      "git submodule foreach git clean -fdx",
      "mv here /tmp/l && rm -rf /tmp/l/*",
      "git worktree remove --force wt",
      "git bisect run rm -rf .",
      "git rebase -x 'rm -rf .' HEAD~1",
      "git rebase --exec='rm -rf .' HEAD~1",
      "parallel rm ::: a b",
      "parallel rm ::: *",
      "bfs . -delete",
      "ed -s x <<< '!rm -rf .'",
      "vim -c '!rm -rf .' -c q",
      "vim -c ':!rm -rf .'",
      "gdb -batch -ex 'shell rm -rf .'",
      "sqlite3 x '.shell rm -rf .'",
      "zip -rm /tmp/a.zip .",
      "7z a -sdel /tmp/a.7z .",
      "`echo rm` -rf d",
      ["r$", "{x}m -rf d"].join(""),
      "$'\\x72m' -rf d",
      "/bin/r? -rf d",
      "{rm,-rf,d}",
      '"$@"',
      'f() { "$@"; }; f rm -rf d',
      'set -- rm -rf d; "$@"',
      "echo 'rm -rf d' | sh",
      "sh <<< 'rm -rf d'",
      "sh <<EOF\n$R -rf d\nEOF",
      "curl x | bash",
      "curl x | pwsh",
      "curl x | nu",
      "xonsh -c 'rm -rf d'",
      "echo x | base64 -d | sh",
      "env $RM -rf d",
      "timeout 5 $RM -rf d",
      "xargs $RM",
      'sh -c "$X"',
      'eval "$X"',
      "eval $X",
      ". <(echo rm -rf d)",
      "bash <(echo rm -rf d)",
      "2>x rm -rf d",
      ">x rm -rf d",
      "rm>x -rf d",
      "rm &>x -rf d",
      ">&2 rm -rf d",
      "alias x='rm -rf'; x d",
      "cp /bin/rm x; ./x -rf d",
      "find . -exec $R {} +",
      "git stash -u",
      "git reset --hard",
      "git checkout -- .",
      "git checkout .",
      "git restore .",
      "git checkout -f",
      "git submodule deinit -f --all",
      "rclone purge .",
      "perl -e 'unlink glob q(*)'",
      "python3 -c 'import shutil; shutil.rmtree(\"d\")'",
      "node -e 'fs.rmSync(\"d\", {recursive:true})'",
      // One file by one, of a list.
      "python3 -c 'for r, _, f in os.walk(\".\"): [os.remove(os.path.join(r, x)) for x in f]'",
      'python3 -c \'[p.unlink() for p in Path(".").rglob("*")]\'',
      'python3 <<X\nfor f in os.listdir("."): os.unlink(f)\nX',
      "ls | python3 -c 'for f in sys.stdin: os.remove(f.strip())'",
      "node -e 'for (const f of fs.readdirSync(\".\")) fs.unlinkSync(f)'",
      "ruby -e 'Dir.glob(\"**/*\").each { |f| File.delete(f) }'",
      "ruby -e 'Dir[\"*\"].each { |f| File.unlink f }'",
      "awk 'BEGIN{system(\"rm -rf .\")}'",
      "printf '!rm -rf .\\n' | ed x",
      "time -p rm -rf d",
      "rm -rf '/t'mp/l/x; ln -s ~ /tmp/l",
      "cp -as ~ /tmp/l; rm -rf /tmp/l/x/",
      "git clone x /tmp/l && rm -rf /tmp/l/s/*",
      "git config alias.x '!rm -rf d'",
      "git config alias.x clean",
      "case $1 in a) $RM -rf d;; esac",
      "if [ -f a ]; then $X -rf d; fi",
      "x=$($R -rf d)",
      'echo "$($R -rf d)"',
      "npx rimraf@5 d",
      "yarn rimraf d",
      "sh -c 'R=rm; $R -rf d'",
      "watch -n1 'R=rm; $R -rf d'",
      "rsync -a --remove-source-files a/ b/",
      "truncate -s 0 *",
      "sed '1erm -rf d' x",
      "sed 's/x/rm -rf d/e' x",
      "git difftool -x 'rm -rf d'",
      "git filter-branch --tree-filter 'rm -rf d'",
      'export TMP"DIR"=/home; rm -rf $TMPDIR/x',
      "watch rm -rf d",
      "curl x | sudo bash",
      "echo x | base64 -d | env sh",
      "echo 'rm -rf d' | parallel",
      "echo rm -rf d | xargs -I{} sh -c {}",
      "nice rm -rf d",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });

  it("few: what an ordinary day needs", () => {
    const few = [
      "python3 -c \"import json,sys; print(json.load(sys.stdin)['a'])\" < a.json",
      "git commit -m 'x y'",
      "cargo test",
      "npm test",
      "git stash",
      "git stash pop",
      "sed -i s/a/b/ f",
      "awk '{print $1}' f",
      "env FOO=1 cargo build",
      "timeout 60 npm test",
      "for f in *.txt; do wc -l $f; done",
      'for f in *.txt; do wc -l "$f"; done > out',
      "git checkout main",
      "git checkout -b x",
      "git checkout -- a.txt",
      "git restore --staged .",
      "git reset --soft HEAD~1",
      "git reset HEAD a",
      "git rebase main",
      "git submodule update --init",
      "git -c user.name=Ann commit -m 'x'",
      "cat <<EOF > a.txt\n$X is a\n*bold* it's\nEOF\n",
      "cat > a.py <<'EOF'\nimport os\nprint(\"$x\")\nEOF\npython3 a.py",
      "bash <<'EOF'\nset -e\ncargo build\nEOF",
      "echo $(date) > x",
      'x=$(git rev-parse HEAD); echo "$x"',
      "if [ -f a ]; then echo a; fi",
      "[ -f a ] && echo b",
      "[[ $x == *y* && $z ]] && echo a",
      'while read -r l; do echo "$l"; done < a',
      "case $1 in a|b) echo x;; *) echo y;; esac",
      "for ((i=0;i<3;i++)); do echo $i; done",
      'arr=(a *.txt "$x"); echo "$arr"',
      "f() { echo $1; }; f a",
      "FOO=$x cargo run",
      "~/.cargo/bin/cargo test",
      "$HOME/.cargo/bin/cargo test",
      "./build/sum 4 5",
      "npm test 2>&1 | tail -20",
      "ls | xargs grep foo",
      "find . -name '*.rs' | xargs wc -l",
      "find . -name '*.ts' -exec grep -l foo {} +",
      "python3 -c 'print(1)'",
      "python3 -c 'os.remove(\"a.txt\")'",
      "python3 -c 'print(os.listdir(\".\"))'",
      "node -e 'fs.unlinkSync(\"a\")'",
      "python3 - <<'EOF'\nprint({1: [2]})\nfor x in []:\n  pass\nEOF",
      "node -e 'console.log(1)'",
      "echo $((1+2))",
      "mv a b",
      "mv x y && rm -rf /tmp/y",
      "tar xzf a.tgz -C /tmp/x && mv /tmp/x/bin/y . && rm -rf /tmp/x",
      "timeout $T npm test",
      "EDITOR=vi git commit",
      "awk '{ print > \"x\" }' f",
      "cp -r a /tmp/b && rm -rf /tmp/b",
      "tar -xzf a.tgz -C /tmp",
      "tar czf a.tgz src",
      "zip -r a.zip src",
      "cmake -B build && cmake --build build",
      "cmake -E make_directory x",
      "rsync -a a/ b/",
      "jq '.a | .b' f",
      "grep -E 'a|b' f | sort | uniq -c",
      "mkdir -p a/{b,c}",
      "docker run --rm -it x",
      "source .venv/bin/activate && pytest -q",
      ". ./env.sh",
      'export PATH="$PATH:/x"',
      'test -n "$X" && echo y',
      "time cargo build",
      "! grep x y",
      "diff <(sort a) <(sort b)",
      'echo "a (b) $c" | cat',
      "sqlite3 x 'select * from t'",
      "sed -e '$ s/a b/c/' f",
      "sed -n '1,5p' f",
      "(cd a && npm test)",
      "{ echo a; echo b; } > c",
      "xargs -a l -n1 echo",
      "sort -u -o x x",
      "git log --format='%h %s' | head",
      "git diff | cat",
      "make -j4",
      'sh "$t"',
      "bash -lc 'npm test'",
      "sh -c 'for f in *; do echo \"$f\"; done'",
      "echo hi | sh",
      "git worktree add ../x",
      "gzip -k f",
      "perl -pi -e 's/a/b/' f",
      "vim --version",
      "rm a.txt 2>/dev/null",
      "rm -f a b > /dev/null 2>&1",
      "rm -rf /tmp/a || true",
      "printf '3,c\\n1,a\\n' > data.csv",
      "cat <<EOF > README.md\nUse  rm -rf build here.\nEOF\nsed -i s/a/b/ README.md",
      "ls | xargs bash -n",
      "sh step.sh --part 'auto 1'",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });

  it("a text that would take long to read is read quickly, and nesting without end counts as many", () => {
    assert.equal(deletionOf(`echo ${"$(".repeat(5_000)}`), "many");
    assert.equal(deletionOf("a=(".repeat(60_000)), "many");
    assert.equal(deletionOf("((".repeat(20_000)), "few");
    assert.equal(deletionOf(`echo ${"a $X ".repeat(9_000)}`), "few");
    assert.equal(deletionOf("mv a b;".repeat(7_000)), "few");
    assert.equal(deletionOf(`echo ${"x".repeat(100_000)}`), "many", "a longer text is not read");
    assert.equal(deletionOf(`python3 - <<EOF\n${"rm a\n".repeat(60)}EOF`), "many");
    assert.equal(deletionOf(`case x in ${"a) echo;; ".repeat(2_000)} esac`), "few");
  });
});

describe("[PO13] a text with another one in it", () => {
  it("many: words of the input become a command", () => {
    const many = [
      "echo rm -rf src | xargs env",
      "echo \"-c 'rm -rf src'\" | xargs sh",
      "echo 'm -rf src' | xargs -I{} sh -c 'r{}'",
      "echo 'm -rf src' | xargs -IX -n1 sh -c 'rX'",
      "echo 'm -rf src' | xargs --replace bash -c 'r{}'",
      "echo clean -fdx | xargs git",
      "env -vS'rm -rf src'",
      "env '--split-string=rm -rf src'",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("many: substitutions in what has no words of a command", () => {
    const many = [
      braced("r=rm; : §{x:-$($r -rf src)}"),
      ": $(( $($r -rf src) ))",
      "(( $($r -rf src) ))",
      "[[ $($r -rf src) ]]",
      "[[ a == `$r -rf src` ]]",
      "case $($r -rf src) in a) ;; esac",
      "case x in $($r -rf src)) ;; esac",
      "cat <<E\n$($r -rf src)\nE",
      "cat <<E\n`$r -rf src`\nE",
      ": $(($r -rf src) )",
      "(($r -rf src) )",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "cat > a.sh <<'E'\n$r -rf src\nE",
      "cat > a <<E\n$(date) $x\nE",
      braced("x=$((1 + (2 * y))); echo §{x:-$(date)}"),
      "[[ $(uname) == Linux ]] && make",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a deletion that quotes, a variable or no blank hides from its reader", () => {
    const many = [
      braced("sh -c 'rm§{IFS}-rf§{IFS}src'"),
      "sed -n '1e r\"\"m -rf src' t.py",
      "sqlite3 :memory: '.shell r\"\"m -rf src'",
      "GIT_EDITOR='r\"\"m -rf src;:' git commit --amend",
      "vim -es -c '!r\"\"m -rf src'",
      braced("x='rm -rf src'; y=§{x}; bash -c \":;$y\""),
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      'bash -c "cd $HOME && ls"',
      "sh -c 'echo $0' x",
      "find . -name '*.py' | xargs -I{} cp {} out/{}",
      "grep -rl a src | xargs sed -i 's/a/b/g'",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
});

describe("[PO13] programs that replace or move files", () => {
  it("many: folders that git, hg or svn replace, and what is moved into the memory", () => {
    const many = [
      "git checkout -- src",
      "git checkout HEAD src",
      "git restore src",
      "git --attr-source HEAD clean -fdx",
      "git read-tree -um HEAD~50",
      "git sparse-checkout set docs",
      "hg revert --all",
      "hg update -C",
      "svn revert -R .",
      "zstd -r --rm src",
      "lha m x src",
      "zip -qr9m x.zip src",
      "mv src /dev/shm/",
      "mv src /run/x",
      "mv src /var/tmp/x",
      "cd /dev/shm && mv ~/src .",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "git checkout -- src/a.ts",
      "git checkout main",
      "git checkout -b new origin/main",
      "git checkout HEAD~1 src/a.ts",
      "git restore src/a.ts",
      "git restore --staged .",
      "hg revert a.txt",
      "zip -9r x.zip src",
      "scripts/run x; mv a b",
      "cat /run/x",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
});

describe("[PO13] a move into a temporary folder, where a later deletion asks nothing", () => {
  it("many: from elsewhere, whatever comes after it", () => {
    const many = [
      "mv d /tmp/gone",
      "mv d /tmp",
      "mv d /tmp/",
      "mv -f ./d /tmp/gone 2>/dev/null",
      "mv /home/me/proj/d /tmp/gone",
      "mv /tmp/a d /tmp/b",
      "mv ~/work $TMPDIR/gone",
      'mv "$HOME/work" "/tmp/gone"',
      "m'v' d /t\"m\"p/gone",
      "mv d /private/tmp/gone",
      "mv d //tmp//gone",
      "mv d /./tmp/gone",
      "mv d /usr/../tmp/gone",
      "mv d ../../../tmp/gone",
      "mv d /t?p/gone",
      "mv d /TMP/gone",
      "mv d /proc/self/root/tmp/gone",
      "mv -t /tmp/gone d",
      "mv -vt/tmp/gone d",
      "mv --target-directory=/tmp/gone d",
      "mv --target-directory /tmp/gone d e",
      "X=/tmp; mv d $X/gone",
      'T=$(mktemp -d); mv d "$T"',
      "T=$(mktemp -d); mv d $T/x",
      "TMPDIR=$TMPDIR; mv d $TMPDIR/gone",
      "cd /tmp && mv ~/work gone",
      "cd /tmp/x; mv $OLDPWD/d .",
      "cd $TMPDIR && mv ../home/d .",
      "cd $(mktemp -d) && mv ~/d .",
      'cd "$(mktemp -d)" && mv ~/d .',
      "pushd `mktemp -d`; mv ~/d .",
      "T=$(mktemp -d); cd $T && mv ~/d .",
      'T=$(mktemp -d); cd "$T" && mv ~/d .',
      "T=$(mktemp -d); T=~; mv $T/d /tmp/gone",
      "env -C /tmp mv /home/me/d gone",
      "sh -c 'mv d /tmp/gone'",
      "sudo mv d /tmp/gone",
      "find . -name '*.ts' -exec mv {} /tmp/gone +",
      "ls | xargs -I{} mv {} /tmp/gone",
      "echo d /tmp/gone | xargs mv",
      'for f in *; do mv "$f" /tmp/gone/; done',
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: in one folder, out of a temporary folder, and beside one", () => {
    const few = [
      "mv a b",
      "mv src/a.ts src/b.ts",
      "mv /tmp/a /tmp/b",
      "mv /tmp/x/bin/tool ~/bin/tool",
      "mv $TMPDIR/a /tmp/b",
      "cd /tmp && curl -so a.tgz https://example.org/a.tgz && mv a.tgz b.tgz",
      "cd /tmp/x && mv bin/tool ~/bin/",
      'T=$(mktemp -d); tar xzf a.tgz -C "$T"; mv "$T/bin" bin',
      'for f in *.txt; do mv "$f" "$(basename "$f" .txt).md"; done',
      "ls /tmp; mv a b",
      "mv tmp old",
      "mv a tmp/b",
      "cp -r d /tmp/copy",
      "cat /tmp/log && mv a.txt docs/b",
      // The workspace itself may be below /tmp: a move in it names no temporary folder.
      "mv d e",
      "mv /tmp/proj/d /tmp/proj/e",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
});

describe("[PO13] a long command", () => {
  /** Texts of 49,000 characters. */
  const long = (part: string, before = ""): string => before + part.repeat(Math.floor((49_000 - before.length) / part.length));
  it("asks when it can't be read in the steps that a command has", () => {
    const many = [
      long(`sudo ${"tar x ".repeat(900)};`),
      long("tar a ", "sh -c 'a' <<E\n"),
      long(`sh -c "env a";`),
      long("-c alias.x=y ", "git "),
      long("env a; "),
    ];
    assert.deepEqual(
      many.map((text) => deletionOf(text)),
      many.map(() => "many"),
    );
  });
  it("asks nothing when it is a file that is written, or a list of ordinary commands", () => {
    const code = "export const sum = (a: number, b: number): number => { return (a + b) | 0; };\nif (tar) find(git.log);\n";
    const few = [
      long(code, "cat > sum.ts <<'E'\n"),
      long("mv a b;"),
      long("cp a b && "),
      long("cargo test --workspace\n"),
      long("print(1 + 2)\n", "python3 - <<'E'\nfind(git)\n"),
    ];
    assert.deepEqual(
      few.map((text) => deletionOf(text)),
      few.map(() => "few"),
    );
  });
  it("counts the steps of each command by itself", () => {
    assert.equal(deletionOf(long("env a; ")), "many");
    assert.equal(deletionOf("env a"), "few");
  });
});

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

describe("[PO13] everyday lines that delete in temporary folders only, and their neighbours", () => {
  it("few: a folder of mktemp, what stands beside a moved folder, a compiler by its usual variable", () => {
    const few = [
      'T=$(mktemp -d); cc -o "$T/a" a.c; "$T/a"; rm -rf "$T"',
      'T=$(mktemp -d)\ngit clone x "$T/r"\nrm -rf "$T"',
      'set -euo pipefail; tmp="$(mktemp -d)"; cp -r a "$tmp/b"; rm -rf "$tmp"',
      ["T=$(mktemp -d) && ls $", '{T} && rm -rf "$', '{T}"'].join(""),
      'T=$(mktemp -d); trap \'rm -rf "$T"\' EXIT; tar xzf a.tgz -C "$T"',
      'T=$(mktemp -d -t build); printf "%s" x > a; find "$T" -delete',
      'T=$(mktemp -d /tmp/x.XXXXXX); rm -rf "$T"',
      "mv /tmp/dist /tmp/old && rm -rf /tmp/old2",
      "trap 'rm -f a.txt; rm -rf /tmp/x' EXIT INT; make",
      "rm -rf /tmp/old2; mv dist old",
      "$CC -o a a.c",
      ["$", "{CC} -o a a.c && ./a"].join(""),
      "$CC -O2 -o a a.c && $PYTHON run.py",
      "cp rm.txt a && cp git/config b",
      "cd src && cp git.ts g.ts",
      "mv rm-old.sh x",
      "git -C bin status",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });

  it("many: the folder may be another one", () => {
    const many = [
      // The name is joined to something, set again, or not set for sure.
      'T=$(mktemp -d); rm -rf "$T/x"',
      'T=$(mktemp -d); rm -rf "$T"/../home',
      'T=$(mktemp -d); rm -rf ~/"$T"',
      'T=$(mktemp -d); rm -rf "$T"old',
      'T=$(mktemp -d); T=/home/me; rm -rf "$T"',
      'T=$(mktemp -d); T+=/../../home; rm -rf "$T"',
      'T=$(mktemp -d); read T < f; rm -rf "$T"',
      "T=$(mktemp -d); \\read $'\\x54' < f; rm -rf \"$T\"",
      'T=$(mktemp -d); re\\\nad $(echo T) < f; rm -rf "$T"',
      'T=$(mktemp -d); printf -v T /home/me; rm -rf "$T"',
      'T=$(mktemp -d); printf $(echo -v) $(echo T) /home/me; rm -rf "$T"',
      'T=$(mktemp -d); eval "$X"; rm -rf "$T"',
      'T=$(mktemp -d); . ./env.sh; rm -rf "$T"',
      'T=$(mktemp -d); for T in *; do rm -rf "$T"; done',
      'T=$(mktemp -d); for f in *; do rm -rf "$f"; done',
      "T=$(mktemp -d); IFS=/; rm -rf $T",
      "T=$(mktemp -d); find $T -delete",
      'false && T=$(mktemp -d); rm -rf "$T"',
      'while false; do T=$(mktemp -d); done; rm -rf "$T"',
      'T=$(mktemp -d) true; rm -rf "$T"',
      'T=$(mktemp -d) | cat; rm -rf "$T"',
      'T=$(mktemp -d -p .); rm -rf "$T"',
      'T=$(mktemp -d x.XXX); rm -rf "$T"',
      'TMPDIR=/home/me; T=$(mktemp -d); rm -rf "$T"',
      'HOME=$(mktemp -d); rm -rf "$HOME"',
      'mktemp() { echo ~; }; T=$(mktemp -d); rm -rf "$T"',
      'PATH=.; T=$(mktemp -d); rm -rf "$T"',
      'T=$(mktemp -d); rm -rf "$T" old',
      'T=$(mktemp -d); rm -rf "$T"/*',
      // A link or a moved folder leads out of it.
      'T=$(mktemp -d); ln -s ~ "$T/l"; rm -rf "$T/l/"',
      'T=$(mktemp -d); mv ~/work "$T"; rm -rf "$T"',
      "mv dist /tmp/old && rm -rf /tmp/old",
      "mv dist /tmp/old && rm -rf /tmp/old/x",
      "mv dist /tmp/old/x && rm -rf /tmp/old",
      "mv dist /tmp/old && rm -rf /tmp/OLD",
      "mv dist /tmp/old && rm -rf /tmp//old",
      "mv dist /tmp/old && rm -rf /tmp/./old",
      "mv dist /private/tmp/old && rm -rf /tmp/old",
      "mv dist $TMPDIR/old && rm -rf /tmp/old",
      "mv dist /tmp/old && rm -rf /tmp/o*",
      "mv dist /tmp/old && rm -rf /tmp/{old,x}",
      "mv dist /tmp/old && find /tmp -delete",
      "mv dist /tmp/o* && rm -rf /tmp/old2",
      "mv -t /tmp/old dist && rm -rf /tmp/old2",
      "cd /tmp && mv ~/dist old && rm -rf old2",
      "sudo mv dist /tmp/old && rm -rf /tmp/old2",
      "trap 'rm -rf old' EXIT; make",
      "trap 'echo \"' EXIT; rm -rf old; echo '\"'",
      "trap 'rm -rf /tmp/x'/../home EXIT",
      "trap 'rm -rf /tmp/x' EXIT old; rm -rf old",
      // Not the usual tool.
      "CC=rm; $CC -rf old",
      "CC=$(echo rm); $CC -rf old",
      "read CC; $CC -rf old",
      "export CC=rm; $CC -rf old",
      "$RM -rf old",
      "$CC$X -rf old",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });

  it("git restore of paths from elsewhere is many, and of named files few", () => {
    const many = ["git diff --name-only | xargs git checkout HEAD --", "git ls-files -m | xargs git restore", "git restore src"];
    assert.deepEqual(all(many), each(many, "many"));
    const few = ["git restore Makefile", "git checkout -- README docs/LICENSE", "git restore --staged", "git checkout main"];
    assert.deepEqual(all(few), each(few, "few"));
  });

  it("output into a temporary folder is no move into it", () => {
    const few = [
      'npm test > /tmp/o; mv a.json "$OUT/"',
      "mv a.log a.log.tmp",
      'for f in *.jpeg; do mv "$f" "${f%.jpeg}.jpg"; done 2>/tmp/err',
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });

  it("many: a program that deletes gets another name in the same command", () => {
    const many = [
      "cd /bin; cp rm ~/q; ~/q -rf old",
      "cd /bin && ln -s rm ~/q && ~/q -rf old",
      "cd /usr/bin; install rm ~/q; ~/q -rf old",
      "cd /usr/bin/; cat rm > ~/q; chmod +x ~/q; ~/q -rf old",
      "cd '/bin'; c'p' r'm' ~/q; ~/q -rf old",
      "cd /bin; cp r? ~/q; ~/q -rf old",
      "cd $D; cp rm ~/q; ~/q -rf old",
      "cd $(dirname $(which ls)); cp find ~/q; ~/q . -delete",
      "(cd /bin; tar cf - rm) | tar xf - -C ~; ~/rm2 -rf old",
      "env -C /bin cp rm /home/me/q; ~/q -rf old",
      "pushd /bin; cp git ~/q; ~/q clean -fdx",
      "cp rm q; ./q -rf old",
      "cp ./rm q; ./q -rf old",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });

  it("lines with many variables and folders are read quickly", () => {
    assert.equal(deletionOf(`T=$(mktemp -d); ${'ls "$T"; '.repeat(1_500)} rm -rf "$T"`), "few");
    assert.equal(deletionOf(`${"mv /tmp/a /tmp/b; ".repeat(2_500)} rm -rf /tmp/c`), "few");
    assert.equal(deletionOf(`${"cd -a ".repeat(8_000)} rm x`), "few");
    assert.equal(deletionOf(`${"$CC ".repeat(4_000)}`), "few");
    // Each of these was read again from each of its parts.
    const parts = ["$CC ", "/a", "-C ", "s/", "a)", "|", "((", "[[ ", braced("§{x"), "$(a) ", "`a` ", "-c alias.x="];
    for (const before of ["", "rm x; cd ", "sh -c '", "xargs ", "git "])
      for (const part of parts) assert.match(deletionOf(before + part.repeat(45_000 / part.length)), /^(?:few|many)$/);
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

describe("[PO13] one file by its name", () => {
  it("few: moved into the folder for temporary files, below the home folder, and in braces", () => {
    const few = [
      "mv screenshot.png /tmp/screenshot.png",
      "mv out.json /tmp/",
      "mv -f ./reports/out.json /tmp && ls /tmp",
      'rm -f "$HOME/ws/a.txt"',
      'rm -f $HOME/ws/a.txt "$HOME/b.txt"',
      braced('rm -f "§{HOME}/ws/a.txt"'),
      "rm -f ./out/{a,b}.txt",
      "rm {a,b}.o c.o",
      `rm x{${files(50).replaceAll(" ", ",")}}`,
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a folder, a pattern, or something that is deleted after it", () => {
    const many = [
      "mv src /tmp/src",
      "mv src.d /tmp/",
      "mv repo.git /tmp/",
      "mv v1.2 /tmp/",
      "mv .git /tmp/",
      "mv .config.json /tmp/",
      "mv *.png /tmp/",
      "mv d*/a.png /tmp/",
      "mv {a,b}.png /tmp/",
      "mv $X.png /tmp/",
      "mv ~/a.png /tmp/",
      "mv ../a.png /tmp/",
      "mv a.png src /tmp/",
      "mv a.png b.png /tmp/",
      "mv -t /tmp a.png",
      "mv a.png/ /tmp/",
      "mv a.png /dev/shm/",
      "mv a.png /var/tmp/",
      "mv src a.png; mv a.png /tmp/",
      "mv a.png /tmp/x && rm -rf /tmp/x",
      "mv a.png /tmp/x; find /tmp/x -delete",
      "mv a.png /tmp/x; sh -c 'rm -rf /tmp/x'",
      "ls | xargs mv a.png /tmp/",
      "sudo mv a.png /tmp/",
      "for f in *; do mv a.png /tmp/; done",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("many: the home folder is another one, or the name is none", () => {
    const many = [
      'rm -rf "$HOME/ws"',
      'rm -f "$HOME"/*',
      'rm -f "$HOME/a"*',
      "rm -f $HOME/*.txt",
      "rm -f $HOME/{a,b,c}*",
      'HOME="/a *"; rm -f $HOME/x',
      'HO"ME"="/a *"; rm -f $HOME/x',
      "read HOME; rm -f $HOME/x",
      "export HOME='/a *'; rm -f $HOME/x",
      "for HOME in *; do rm -f $HOME/x; done",
      braced(": §{HOME:=*}; rm -f $HOME/x"),
      "printf -v HOME '/a *'; rm -f $HOME/x",
      "printf -v $'\\x48OME' '/a *'; rm -f $HOME/x",
      'read<<<"/a *" $(echo H)OME; rm -f $HOME/x',
      'rm -f "$HOMES/x"',
      'rm -f "$HOME/$X"',
      'rm -f "$HOME/$(ls)"',
      "rm -f $OLD/x",
      'rm "$HOME/bin" -r',
      'find "$HOME/ws" -delete',
      'HOME=/; rm -rf "$HOME/etc"',
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("many: braces that are more than a few names, or an option", () => {
    const many = [
      "rm {-rf,d}",
      "rm -{r,f} d",
      "rm -{rf,v} d",
      "rm {,-r} d",
      "rm -$X d",
      "rm -? d",
      "rm a{1..99}",
      "rm {a..z}",
      "rm {a,b}*",
      "rm {a,*}",
      "rm {a,$X}",
      "rm {a,{b,c}}",
      "rm {a,b}{c,d}",
      "rm -r {a,b}",
      "rm {a,b} -r",
      "rm -rf /tmp/{a,..}",
      "rm {a,b}/?",
      "{rm,-rf,d}",
      "xargs rm {a,b} -r",
      `rm x{${files(51).replaceAll(" ", ",")}}`,
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
});

describe("[PO13] a variable that the text sets to plain words as the first thing", () => {
  it("few: it is run as these words, and a trap before mktemp is as good as one after it", () => {
    const few = [
      'CMD="npm test"; $CMD',
      "CMD='npm test' && $CMD --watch",
      'CMD=npm\n"$CMD" test',
      'A=npm; B="run build"; $A $B',
      'T=a.txt; rm -f "$T"',
      'trap \'rm -f "$tmp"\' EXIT; tmp=$(mktemp); echo a > "$tmp"',
      'set -e\ntrap \'rm -rf "$d"\' EXIT INT\nd=$(mktemp -d)\ntar xzf a.tgz -C "$d"',
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: it deletes, or may be something else", () => {
    const many = [
      'CMD="rm -rf d"; $CMD',
      'CMD=rm; "$CMD" -rf d',
      'A="-rf d"; rm $A',
      'A=rm; B="-rf d"; $A $B',
      'CMD="sh -c"; $CMD "rm -rf d"',
      'CMD=eval; $CMD "rm -rf d"',
      'CMD="npm test"; CMD=$X; $CMD',
      'CMD="npm test"; CMD+=x; $CMD',
      'CMD="npm test"; read CMD; $CMD',
      'CMD="npm test"; C"MD"=rm; $CMD -rf d',
      'CMD="npm test"; printf -v CMD rm; $CMD -rf d',
      'CMD="npm test"; for CMD in rm; do $CMD -rf d; done',
      'CMD="npm test"; read<<<rm $(echo C)MD; $CMD -rf d',
      'CMD="npm test" & $CMD',
      'CMD="npm test" | $CMD',
      'CMD="npm test" $CMD',
      "false && CMD=npm; $CMD -rf d",
      'CMD=r; $CMD"m" -rf d',
      braced("CMD=r; §{CMD}m -rf d"),
      braced("CMD=npm; §{CMD:=x}; §{CMD/npm/rm} -rf d"),
      "CMD=npm; sh -c ' $CMD '",
      "CMD=npm; sh <<'X'\n$CMD x\nX",
      'CMD=case; $CMD x in y; $R -rf d; echo "a) "',
      "PATH=npm; $PATH -rf d; $R x",
      'CMD="npm test"; . ./env.sh; $CMD',
      'IFS=m; CMD="npm"; $CMD',
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("many: what a trap deletes is not the folder that mktemp makes", () => {
    const many = [
      "trap 'rm -rf \"$tmp\"' EXIT; tmp=d",
      "trap 'rm -rf \"$tmp\"' EXIT; tmp=$(mktemp -d); tmp=d",
      "trap 'rm -rf \"$tmp\"' EXIT; tmp=$(mktemp -d)/..",
      "trap 'rm -rf \"$tmp\"' EXIT; tmp=$(mktemp -d -p .)",
      "trap 'rm -rf \"$tmp\"' EXIT; false && tmp=$(mktemp -d)",
      "trap 'rm -rf \"$tmp\"' EXIT && tmp=$(mktemp -d); $X",
      "trap 'rm -rf \"$tmp\" d' EXIT; tmp=$(mktemp -d)",
      "trap 'rm -rf \"$tmp/\"../d' EXIT; tmp=$(mktemp -d)",
      "trap 'rm -rf $tmp' EXIT; tmp=$(mktemp -d)",
      "trap 'rm -rf \"$other\"' EXIT; tmp=$(mktemp -d)",
      "trap 'rm -rf \"$tmp\"' EXIT; tmp=$(mktemp -d); read tmp",
      "trap 'rm -rf \"$tmp\"' EXIT; HOME=$(mktemp -d)",
      'trap "rm -rf $tmp" EXIT; tmp=$(mktemp -d)',
      "trap 'rm -rf \"$tmp\"' DEBUG; tmp=$(mktemp -d)",
      "trap 'rm -rf \"$tmp\"' EXIT; exit; tmp=$(mktemp -d)",
      "trap 'rm -rf \"$tmp\"' EXIT; TMPDIR=d; tmp=$(mktemp -d)",
      "TMPDIR=d; trap 'rm -rf \"$tmp\"' EXIT; tmp=$(mktemp -d)",
      'trap \'rm -rf "$tmp"\' EXIT; tmp=$(mktemp -d); mv ~/d "$tmp"',
      "trap 'rm -rf \"$tmp\"' EXIT; tmp=$(mktemp -d); unset tmp; eval $X",
      "trap 'rm -rf \"$tmp\"' EXIT; mktemp() { echo d; }; tmp=$(mktemp -d)",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
});

describe("[PO13] spellings that the shell expands or that its reader could lose", () => {
  it("a program that a prefix runs, and whose name the shell makes", () => {
    const many = [
      "env r{m,} -rf src",
      "nice r$@m -rf src",
      "command -p r$@m -rf src",
      "exec r$@m -rf src",
      "timeout 5 r{m,} -rf src",
      "setsid -w /bin/r[m] -rf src",
      "find src -exec r{m,} -rf {} +",
      "find src -exec nice r{m,} -rf {} +",
      "echo src | xargs /bin/r[m] -rf",
      "nohup r$@m -rf src",
      "env nice -n 5 r{m,} -rf src",
      "env -C a r$@m -rf src",
      "timeout -k 5 10 /bin/r? -rf src",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "find . -print0 | xargs -0 grep -l 'a[0-9]*'",
      "find . -name '*.ts' | xargs -n1 grep 'a.*b'",
      "env -i ls *.ts",
      "time -p wc -l *.ts",
      "env A=$X B={a,b} npm test",
      "timeout 60 $HOME/bin/run",
      "nohup ./run.sh *.ts > log",
      "find . -name '*.ts' -exec grep -l 'a*' {} +",
      "env [ -f a ]",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("a variable that a command sets under a name that the shell makes", () => {
    const many = [
      braced("A=TMP; export §{A}DIR=$PWD; rm -rf $TMPDIR/src"),
      "export TMP{DIR,X}=$PWD; rm -rf $TMPDIR/src",
      "export TM$@PDIR=$PWD; rm -rf $TMPDIR/src",
      "printf -v TMP{DIR,} %s $PWD; rm -rf $TMPDIR/src",
      'declare "TMP$X=$PWD"; rm -rf $TMPDIR/src',
      "read $A <<< $PWD; rm -rf $TMPDIR/src",
      "A=TMP; (( $A$B = 5 )); rm -rf $TMPDIR/src",
      braced("DIR=/tmp/x; A=DI; B=R; mv src 5; : §{A:$A$B=5}; rm -rf $DIR"),
      braced('TT=$(mktemp -d); A=T; : §{A:$A$A=5}; rm -rf "$TT"'),
      'TT=$(mktemp -d); A=T; A=$A$A=5; [[ A -eq 5 ]]; rm -rf "$TT"',
      'TT=$(mktemp -d); A=T; : $[$A$A=5]; rm -rf "$TT"',
      braced('TT=$(mktemp -d); A=T; : §{b[$A$A=5]}; rm -rf "$TT"'),
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "export PATH=$PATH:/x; rm -rf $TMPDIR/src",
      "export A=$TMPDIR/a; rm -rf $TMPDIR/src",
      "read -r a < f; rm -rf $TMPDIR/src",
      'printf "%s" "$X"; rm -rf $TMPDIR/src',
      'T=$(mktemp -d); [[ $# -eq 1 ]] && ls; rm -rf "$T"',
      braced('T=$(mktemp -d); echo "§{A:-$X}"; rm -rf "$T"'),
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("words that xargs appends to a deletion", () => {
    const many = [
      "ls -d src | xargs rm -rf /tmp/x",
      "ls -d src/f* | xargs rm -f x",
      "echo -r src | xargs rm -f x",
      "find src -type f | xargs shred -u src/f1",
      "find src -type f -print0 | xargs -0 -I% rm -f %",
      "git ls-files | xargs git rm -f x",
      "ls | env xargs rm -f x",
      "xargs -a list rm -f x",
      "ls | xargs sudo rm -f x",
      "ls | xargs -n1 nice -n 5 rm -f x",
      "ls | xargs git checkout HEAD a.txt",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "ls | xargs grep -l a",
      "git ls-files | xargs sed -i s/a/b/",
      "ls | xargs git add",
      "git branch | head -1 | xargs git checkout",
      "ls | xargs tar czf a.tgz",
      "ls | xargs grep -n git",
      "ls | xargs -0 zip a.zip",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("a subcommand or an option that the shell makes", () => {
    const many = [
      "git $(echo clean) -fdx",
      "git c{lean,} -fdx src",
      "find src -d{elete,}",
      "zip -qr{m,} x.zip src",
      "cmake -E rem{ove_directory,} src",
      "git $X -fdx",
      'git "$X" -fdx',
      "git -C a $X -fdx",
      "git reset $(echo --hard)",
      "git stash -{u,}",
      "find src $X",
      "rsync $X a/ b/",
      "sudo git $X -fdx",
      "bash -c 'git $X -fdx'",
      "find src {-delete,}",
      'find src "-$X"',
      "tar cf a.tar $X src",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      'git commit -m "$MSG"',
      'git checkout "$BRANCH"',
      'find . -name "*.ts"',
      "find . -name *.ts",
      'find "$DIR" -name x',
      "find $HOME/a -name x",
      'tar xf "$F"',
      "tar czf a.tgz *.ts",
      "git add $F",
      'git -C "$DIR" status',
      'git -c user.name="A $B" commit -m x',
      "zip -r a.zip {a,b}.txt",
      "cmake -DA=$X -B $BUILD",
      "cmake --build $BUILD",
      'rsync -a --exclude="$X" a/ b/',
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("constructs after which a reader could lose its place", () => {
    const many = [
      "echo $'\\'' ; r$@m -rf src #'",
      braced("echo §{x:-'{'}; r$@m -rf src #}"),
      braced("echo §{x:-{}; r$@m -rf src #}"),
      "echo $[1<<3]\nr$@m -rf src",
      'bash -c "echo $[1<<3]\nr$@m -rf src"',
      "\\[[ ; /bin/r[m] -rf src",
      "\\case x; r$@m -rf src",
      "case 'x)y' in \"x)y\") /bin/r[m] -rf src;; esac",
      "case ' in ' in ' in ') /bin/r[m] -rf src;; esac",
      "[[ a == ']]' ]]; /bin/r[m] -rf src",
      "sh -c '[[ ; r$@m -rf src'",
      "cat <<$'E'\nE\nr$@m -rf src",
      "cat <<$E\n$E\nr$@m -rf src",
      "cat <<E\n\\$( '\nE\nr$@m -rf src #'",
      "echo `echo \\`r$@m -rf src\\``",
      braced('echo "§{x:-\'}"; r$@m -rf src #\'}"'),
      "a=( # '\n); r$@m -rf src #'",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "echo $'a\\'b' $'\\t'; npm test",
      braced("echo §{x:-'{'} §{y%\\}}; npm test"),
      braced("while read -r l; do echo \"§{l%$'\\r'}\"; done < a"),
      "echo $[1+2]; npm test",
      "case $1 in 'a b'|\"c)d\") echo x;; (e) echo y;; *) echo z;; esac",
      "[[ $x =~ ^(a|b)$ && ! -f c ]] && npm test",
      "[[ a < b ]] || npm test",
      "FOO=a\\ b npm test",
      "echo $(( (1 + 2) * 3 )); (( x > 1 )) && npm test",
      braced('echo "§{x:-it\'s}"; npm test'),
      "cat <<\\E > a\n$(x)\nE\nnpm test",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("a text that is expanded before a shell gets it", () => {
    const many = [
      "echo r{m,n} -rf src | sh",
      "echo /bin/r[m] -rf src | sh",
      "printf 'r%s -rf src' m | sh",
      "printf %s r m ' -rf src' | sh",
      "echo ~/b?n/rm -rf src | sh",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = ["echo npm test | sh", "printf 'npm test' | sh", "echo 'ls a' | bash -s"];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("a program that deletes gets another name by a path that the shell makes", () => {
    const many = [
      "cp /bin/r[m] q; ./q -rf src",
      "B=/bin; cp $B/rm q; ./q -rf src",
      "V=/bin; BASH_CMDS[x]=$V/r$@m; x -rf src",
      "shopt -s expand_aliases; BASH_ALIASES[x]='rm -rf src'\nx",
      "cat /bin/r[m] > q; ./q -rf src",
      "cat < /bin/rm > q; ./q -rf src",
      "dd if=/bin/r[m] of=q; ./q -rf src",
      "install /bin/r[m] q; ./q -rf src",
      "sudo cp /bin/r[m] q; ./q -rf src",
      "cp /{bin,x}/rm q; ./q -rf src",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "cp build/bin/* out/",
      'cp "$T/bin/tool" ~/bin/tool',
      'install -m 755 a "$PREFIX/bin/a"',
      "cp a ~/bin/$NAME",
      "cat ~/bin/*.sh | wc -l",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("variables whose values other programs take for options or commands", () => {
    const many = [
      "TAR_OPTIONS=--remove-files tar cf /dev/null src",
      "export TAR_OPTIONS='--remove-files'; tar cf /dev/null src",
      "env TAR_OPTIONS=--remove-files tar cf /dev/null src",
      "TAR_OPTIONS=--rem$X tar cf /dev/null src",
      "ZIPOPT=-m zip -qr x.zip src",
      "ZIP=-m zip -qr x.zip src",
      "MAKEFLAGS='--eval=$(shell rm -rf src)' make nothing",
      "touch foo.c; CC='rm -rf src #' make foo",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      'CFLAGS="-O2 -g" make',
      "NODE_OPTIONS=--max-old-space-size=4096 npm test",
      'RUSTFLAGS="-D warnings" cargo test',
      "CC='ccache gcc' make && rm -rf /tmp/x",
      "TAR_OPTIONS=--no-same-owner tar xf a.tar",
      "export MSG='a b'; git commit -m x",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("a move into a folder that ends with the command", () => {
    const many = [
      "mv src /dev/x",
      "find src -type f -exec mv {} /dev/ \\;",
      "mv src /dev/./shm/x",
      "mv src //dev//shm",
      "cd /dev && mv $OLDPWD/src shm/",
      "cd /; mv $OLDPWD/src run/",
      "X=/dev; mv src $X/shm/",
      "mv src /proc/self/root/dev/shm/x",
      "mv src ../../../dev/x",
      "mv -t /dev src",
      "mv a.ts /dev/x",
      "env -C /dev mv /home/me/src shm/",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "npm test > /dev/null; mv a.ts b.ts",
      "mv a.ts b.ts 2>/dev/null",
      "mv src dev/x",
      'cp /dev/null a; mv "$f" "$OUT/"',
      "cd /home/me/dev && mv a b",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("patterns of the shell, and programs that run what they are given", () => {
    const many = [
      "shopt -s extglob\nrm -f src/!(keep)",
      "shopt -s extglob\nrm -f !(keep)",
      "bash -O extglob -c 'rm -f src/!(keep)'",
      "rm -f src/@(a|b)",
      "!(r$@m -rf src)",
      "compgen -C 'rm -rf src;'",
      "complete -C 'rm -rf src;' x",
      'awk \'BEGIN{system("r" "m -rf src")}\'',
      'awk \'BEGIN{"r" "m -rf src" | getline}\'',
      "coreutils rm -rf src",
      "coreutils --coreutils-prog=rm -rf src",
      "ruby -run -e rm -- -rf src",
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = [
      "compgen -c g",
      "awk 'BEGIN{system(\"date\")}'",
      'awk \'BEGIN{system("echo \\"a\\"")}\'',
      "ruby -run -e httpd . -p 80",
      "ls !(a)",
      "! (cd a && npm test)",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
});
