import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, braced, each } from "./deletion-cases.ts";

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
      "cmake -E $X src",
      "cmake -E $(echo rm) src",
      "cmake -E `echo rm` src",
      'cmake -E "$X" src',
      "cmake -E r? src",
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
  it("a program that the shell makes behind several prefixes", () => {
    const many = ["env nice $X src", "sudo env nice r{m,} src", `${"env ".repeat(25)}$X src`, `${"env ".repeat(25)}ls src`];
    assert.deepEqual(all(many), each(many, "many"));
    const few = ["env nice ls src", "sudo env nice ls src", `${"env ".repeat(15)}ls src`];
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
