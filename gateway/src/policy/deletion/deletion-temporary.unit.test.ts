import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, braced, each, files } from "./deletion-cases.ts";
import { deletionOf } from "./deletions.ts";

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
      braced('for f in *.jpeg; do mv "$f" "§{f%.jpeg}.jpg"; done 2>/tmp/err'),
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
