import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, braced, each } from "./deletion-cases.ts";
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
      "git stash drop",
      "git stash clear",
      "fdupes -dN .",
      "jdupes -rdN .",
      "rdfind -deleteduplicates true .",
      "tmpreaper 0 d",
      "systemd-tmpfiles --remove",
      "lz4 -m --rm *",
      "xargs tmpreaper 0",
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

  it("few: everyday commands", () => {
    const few = [
      "python3 -c \"import json,sys; print(json.load(sys.stdin)['a'])\" < a.json",
      "git commit -m 'x y'",
      "cargo test",
      "npm test",
      "git stash",
      "git stash pop",
      "fdupes -r .",
      "rdfind .",
      "systemd-tmpfiles --create",
      "lz4 a",
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
