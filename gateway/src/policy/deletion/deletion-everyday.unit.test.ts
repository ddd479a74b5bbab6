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
});
