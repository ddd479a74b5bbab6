import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, each } from "./deletion-cases.ts";

describe("[PO13] everyday commands that delete nothing", () => {
  it("few: copies and extractions in another folder", () => {
    const few = [
      "cd ~/proj && cp *.md docs/",
      'cd "$ROOT" && cp *.md docs/',
      "cd ~/proj && mv *.log logs/",
      'cd "$ROOT" && cp -r "$A" "$B"',
      "cd $HOME/proj && cp *.md docs/",
      'cd "$HOME/proj" && cp *.md docs/',
      'tar -xzf a.tgz -C "$D"',
      'tar -xzf "$F" -C "$D"',
      "cd ~/x && tar xzf *.tgz",
      "cd bin && cp *.sh ../out/",
      'for d in */; do cd "$d"; cp ../*.md .; cd ..; done',
      'ROOT=$(git rev-parse --show-toplevel); cd "$ROOT" && cp -r "$A" "$B"',
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a program that is copied in a folder of programs, or in one that the text names by a variable", () => {
    const many = [
      "cd /bin; cp rm ~/q; ~/q -rf d",
      "cd ~/../../bin; cp r? ~/q",
      "cd ~/bin; cp * /x/",
      "HOME=/bin; cd ~; cp rm q",
      "R=/bin; cd $R; cp $A q",
      'R=/bin; cd "$R" && cp r[m] q',
      "read R <<< /bin; cd $R; cp r? q",
      "R\\\nR=/bin; cd $RR; cp r? q",
      ". ./x; cd $R; cp r? q",
      'export "$X=/bin"; cd $R; cp r? q',
      "cd /b$" + "{X}in; cp r? q",
      "cd /bin; cp $X.md q",
      "cd /bin; cp {rm,x} q",
      "cd $OLDPWD; cp r? q",
      // A folder is read to a length, behind which anything may come.
      `cd /${"usr/../".repeat(45)}bin; cp r? ~/q`,
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("a path that git restores: a file by an extension that files have, else a folder", () => {
    const many = [
      "git restore conf.d",
      "git checkout -- conf.d",
      "git checkout HEAD -- conf.d",
      "git checkout HEAD conf.d",
      "git restore -W --source=HEAD conf.d",
      "git checkout --ours src",
      "git checkout --theirs src lib",
      "git restore v1.2",
      "git mv src s.d; git restore s.d",
    ];
    const few = [
      "git restore src/a.ts",
      "git checkout HEAD -- src/a.ts",
      "git checkout --ours package-lock.json",
      "git restore .gitignore Makefile go.sum",
      "git checkout --theirs src/a.test.tsx && git add src/a.test.tsx",
    ];
    assert.deepEqual([all(many), all(few)], [each(many, "many"), each(few, "few")]);
  });
  it("few: what a message or a pattern says, and how a tool sets up the shell", () => {
    const body = "fix: cleanup\n\n- rm -rf dist is gone (git stash drop)\n- find . -delete too\n- `git reset --hard` (#12)";
    const document = `"$(cat <<'EOF'\n${body}\nEOF\n)"`;
    const set = ["fnm env", "conda shell.bash hook", "pyenv init -", "ssh-agent -s", "brew shellenv", "direnv export bash"];
    const few = [
      `git commit -m ${document}`,
      `git add -A && git commit -m ${document} && git status`,
      `git add . && git commit -m ${document} 2>&1 | tail -3`,
      `cd ~/x && git add *.ts && git -C a commit --message=${document}`,
      `gh pr create --title "x" --body ${document}`,
      `gh release create v1 --notes ${document}`,
      `gh pr create --title ${document} --body ${document}`,
      "git log --grep='rm -rf'",
      'git log --grep="git clean -fdx"',
      "rg --regexp='rm -rf'",
      'gh pr create --title="Drop rm -rf dist" --body=x',
      ...set.flatMap((text) => [`eval "$(${text})"`, `eval "$(${text})" && npm test`, `cd app && eval "$(${text})" && npm test`]),
      'eval "$(fnm env)"; eval "$(pyenv init -)"; npm test',
      "eval $(opam env) && dune build",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: a text that only looks like a message or a set-up", () => {
    const document = (body: string): string => `"$(cat <<'EOF'\n${body}\nEOF\n)"`;
    const many = [
      `sh -c ${document("rm -rf src")}`,
      `git commit -m "$(cat <<EOF\n$(rm -rf src)\nEOF\n)"`,
      `git commit -m ${document("x")}; rm -rf src`,
      `git commit -m "$(cat <<'EOF'\nx\nEOF\nrm -rf src\n)"`,
      `git commit -m "$(cat <<'EOF'\nx\nEOF\n)$(rm -rf src)"`,
      // An older shell ends the substitution at the bracket.
      `git commit -m ${document(')"; rm -rf src; "')}`,
      `git commit -m ${document("'(' )\n`rm -rf src`")}`,
      `git commit -m ${document('\\(a) "; rm -rf src')}`,
      `git rebase -x -m ${document("rm -rf src")}`,
      `git commit --allow-empty -m ${document("rm -rf src")}; git log -1 --format=%B > x; sh x`,
      `git commit -m ${document("rm -rf src")}; git log -1 --format=%B | tee x; ./x`,
      `git commit -m ${document("rm -rf src")}; . .git/COMMIT_EDITMSG`,
      `eval ': -m ${document("")}rm -rf src'`,
      'fnm() { echo "rm -rf src"; }; eval "$(fnm env)"',
      'eval "$(fnm env; echo rm -rf src)"',
      'eval "$(fnm env)" x $X',
      'eval "$(fnm env)"; eval "$(cat x)"',
      'PATH=. && eval "$(fnm env)"',
      "foo --exec='rm -rf src'",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("few: programs and operands in variables, and what known commands print", () => {
    const few = [
      "ROOT=$(git rev-parse --show-toplevel); $ROOT/scripts/x.sh",
      "true && time ls -l /bin/rm",
      "case $y in @(a)*) rm a;; esac",
      "$(go env GOPATH)/bin/golangci-lint run",
      '"$(go env GOPATH)"/bin/golangci-lint run',
      "BIN=$PWD/target/debug/app; $BIN --help",
      "BIN=target/debug; $BIN/app --help",
      "$(npm bin)/tsc",
      "find $(pwd) -name '*.ts'",
      "find $DIR -name x",
      "tar czf $NAME.tgz src",
      "tar -xf $F -C $D",
      "rsync -av $SRC/ $DST/",
      "git reset --soft $(git merge-base main HEAD)",
      "git switch $B",
      "git checkout $BRANCH",
      "git checkout -q $(git rev-parse HEAD~3)",
      "rm -rf /tmp/x-$$",
      "T=/tmp/x-$$; mkdir $T",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });
  it("many: programs and operands that the text makes", () => {
    const many = [
      "R='rm -rf src #'; $R/x",
      "R='rm -rf src'; $R/scripts/x.sh",
      "GOPATH='/bin/rm -rf src' $(go env GOPATH)/bin/x",
      "go env -w GOPATH='/bin/rm -rf src'; $(go env GOPATH)/bin/x",
      "git() { echo /bin/rm -rf src; }; $(git rev-parse --show-toplevel)/x",
      "BIN=$PWD/rm; $BIN -rf src",
      "$(echo rm)/x -rf src",
      "DIR='src -delete'; find $DIR -name x",
      "read DIR; find $DIR -name x",
      "env DIR='src -delete' sh -c 'find $DIR'",
      'cd "src -delete"; find $(pwd) -name x',
      'cd "a b" && rm $(pwd)/a.txt',
      "'read' x; rm $(pwd)/a.txt",
      "find src $X",
      "find $(pwd) -delete",
      "NAME=--remove-files; tar czf $NAME src",
      "N='--remove-files a'; tar czf $N.tgz src",
      "B=.; git checkout $B",
      "B='-f x'; git switch $B",
      "git checkout $B .",
      "git checkout -- $B",
      "git reset $(git rev-parse --hard)",
      "git checkout $(git rev-parse src) .",
      "rm -rf /tmp/$$/../../src",
      "rm -rf x-$$",
      "rm -rf $(pwd)/x",
      "mv src $(pwd)/../tmp/x",
      "cd /tmp; mv ~/src $(pwd)/x",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });
  it("rsync that only shows what it would do, or whose target is a temporary folder", () => {
    const few = [
      "rsync -avn --delete a/ b/",
      "rsync -avz --dry-run --delete a/ host:/b/",
      "rsync -a --delete -n a/ b/",
      "rsync -a --delete src/ /tmp/x/",
      "rsync -a --delete --exclude .git src/ /tmp/x",
      "rsync -r e/ .",
    ];
    const many = [
      "rsync -a --delete a/ b/",
      "rsync -a --delete -e -n a/ b/",
      "rsync -ae n --delete a/ b/",
      "rsync -aen --delete a/ b/",
      "rsync -a --delete --exclude -n a/ b/",
      "rsync -an --no-n --delete a/ b/",
      "rsync -a --delete a/ b/ -- -n",
      "rsync -a --delete src/ b/ --exclude /tmp/x",
      "rsync -a --delete src/ /tmp/x/y",
      "rsync -a --delete src/ /tmp/",
      "rsync -a --remove-source-files src/ /tmp/x",
      "rsync -a l /tmp/x; rsync -a --delete e/ /tmp/x/",
      "cp -P l /tmp/x; rsync -a --delete e/ /tmp/x/",
      "ln -s ~ /tmp/x; rsync -a --delete e/ /tmp/x/",
      "rsync -r --force e/ .",
      "rsync -a --force e/ ./",
    ];
    assert.deepEqual([all(few), all(many)], [each(few, "few"), each(many, "many")]);
  });
});
