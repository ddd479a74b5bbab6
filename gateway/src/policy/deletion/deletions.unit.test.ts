import { MAX_DELETED } from "./reading.ts";
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { all, each, files } from "./deletion-cases.ts";
import { deletesMany, deletionOf } from "./deletions.ts";

describe("[PO13] what a command deletes, as far as its words tell", () => {
  it("many: folders, globs, variables, lists from elsewhere, more than 50 names", () => {
    const many = [
      "rm -rf old",
      "rm -R old",
      "rm old -fr",
      "rm --recursive old",
      "rm --rec old",
      "/bin/rm -r old",
      "'rm' \"-r\" old",
      "RM -r old",
      "rm -rf ~/old",
      "rm -rf ~/old/*",
      "rm *.log",
      'rm "$FILE"',
      "rm a{1..99}",
      `rm ${files(51)}`,
      `rm ${files(30)}; rm ${files(30)}`,
      "rm -r -- -old",
      "cd src && rm -rf build",
      "cd /tmp/x; rm -r ../../home",
      "rm -rf /tmp/../home",
      "rm -rf /tmp/$X",
      "rm -rf /tmp",
      "rm -rf /tmp/a old",
      "\\rm -r old",
      "r'm' -r old",
      "sudo rm -rf old",
      "env -i rm -rf old",
      "timeout 5 nice rm -r old",
      "busybox rm -r old",
      "sh -c 'rm -rf old'",
      "bash -lc \"sh -c 'rm -rf old'\"",
      "ls | xargs rm",
      "ls | xargs -I{} rm {}",
      "find . -delete",
      "find . -name '*.pyc' -delete",
      "find -delete",
      "find /tmp/a old -delete",
      "find . -exec rm {} +",
      "find . -type f -exec sh -c 'rm -rf \"$1\"' _ {} \\;",
      "fd -x rm",
      "git clean -fdx",
      "git -C sub clean -fd",
      "git rm -r src",
      "rsync -a --delete a/ b/",
      "tar cf a.tar --remove-files a",
      "npx rimraf dist",
      "for f in *; do rm $f; done",
      "if true; then rm -rf old; fi",
      "{ rm -rf old; }",
      "f() { rm -rf old; }; f",
      "echo $(rm -rf old)",
      "echo `rm -rf old`",
      "X=1 rm -rf old",
      'eval "rm -rf old"',
      "trap 'rm -rf old' EXIT",
      "sleep 1 & rm -rf old",
      "true\nrm -rf old",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });

  it("many: spellings of a folder as a temporary one, and of a deletion as one that only shows", () => {
    const many = [
      // A shell expands braces, and older ones expand a dot with a glob to `..`.
      "rm -rf /tmp/{x,..}/home/me/work",
      "rm -rf /tmp/.*/home/me/work",
      "rm -rf /tmp/.?/home/me/work",
      "rm -rf /tmp/.[.]/home/me/work",
      // The variable can be another folder.
      "TMPDIR=/home/me; rm -rf $TMPDIR/work",
      "export TMPDIR=/home/me && rm -rf $TMPDIR/work",
      "unset TMPDIR; rm -rf $TMPDIR/home/me",
      "for TMPDIR in /home/me; do rm -rf $TMPDIR/work; done",
      "env -i sh -c 'rm -rf $TMPDIR/home/me'",
      // A value that looks like an option, an option that another one takes back, and a name after the end of the options.
      "git clean -fdx -en",
      "git clean -ffdxen",
      "git clean -fdx -e -n",
      "git clean -fdx --exclude -n",
      "git clean -fdxn --no-dry-run",
      "git rm -rf --ignore-unmatch . -- -n",
      "git rm -r --cached --no-cached .",
      // BSD takes an option after a name for a name.
      "rm -rf work --help",
      "POSIXLY_CORRECT=1 rm -rf work --version",
      "tar cf a.tar --rem work",
    ];
    assert.deepEqual(all(many), each(many, "many"));
  });

  it("many: a temporary folder that a link in the same command may lead out of", () => {
    const many = [
      "ln -s ~ /tmp/l; rm -rf /tmp/l/*",
      "ln -s ~ /tmp/l && rm /tmp/l/*.txt",
      "find /tmp/a -follow -delete",
      "find -L /tmp/a -delete",
      "ln -s $HOME $TMPDIR/l; rm -r $TMPDIR/l/work",
      ["ln -s ~ $", "{TMPDIR}/l; find $", "{TMPDIR}/l/ -delete"].join(""),
      "/bin/ln -s ~ /var/tmp/l; rm -rf /var/tmp/l/work",
      "l'n' -s ~ /tmp/l; rm -rf /tmp/l/work",
      "sh -c 'ln -s ~ /tmp/l'; rm -rf /tmp/l/work",
      "sh -c 'ln -s ~ /tmp/l; rm -rf /tmp/l/work'",
      "mount --bind ~ /tmp/l; rm -rf /tmp/l/work",
      'python3 -c \'import os; os.symlink(os.environ["HOME"], "/tmp/l")\'; rm -rf /tmp/l/work',
      'node -e \'fs.symlinkSync("..", "/tmp/l")\' && rm -rf /tmp/l/work',
    ];
    assert.deepEqual(all(many), each(many, "many"));
    const few = ["rm -rf /tmp/link", "rm -rf /tmp/ln $TMPDIR/mount", "ln -s a b; rm a.txt", "ln -sf ../a /tmp/l; rm /tmp/l"];
    assert.deepEqual(all(few), each(few, "few"));
  });

  it("few: named files, temporary folders, and commands that delete nothing", () => {
    const few = [
      "rm a.txt",
      "rm -f a.txt b.txt",
      `rm ${files(50)}`,
      "rm -- -r",
      "rm --help",
      "rmdir old",
      "rm -rf /tmp/build-1",
      "rm -rf /tmp/build-*",
      'rm -rf "$TMPDIR/x"',
      ["rm -rf $", "{TMPDIR}/x"].join(""),
      "rm -r /var/tmp/x /tmp/y",
      "find . -name '*.pyc'",
      "find /tmp/a -delete",
      "git clean -nd",
      "git clean --dry-run",
      "git clean -nd -e x",
      "git rm -rn src",
      "git rm --cached -r src",
      "git rm a.txt",
      "git commit -m 'rm -rf is gone'",
      "git checkout clean",
      "rsync -a a/ b/",
      "echo rm -rf old",
      "grep -r rm .",
      "npm run clean",
      "cat rm",
      "ls *",
      "echo 'rm -rf x' > clean.txt",
      "",
    ];
    assert.deepEqual(all(few), each(few, "few"));
  });

  it("a text that would take long to read counts as many", () => {
    assert.equal(deletionOf(`env ${"rm ".repeat(50_000)}`), "many");
    assert.equal(deletionOf(`sh -c "${"x ".repeat(100_000)}"`), "many");
    let nested = "true";
    for (let depth = 0; depth < 2; depth++) nested = `sh -c '${nested.replaceAll("'", '"')}'`;
    assert.equal(deletionOf(nested), "few");
  });
});

it("[PO13] the limits are exact: files of a command, words of one that runs another, and commands in commands", () => {
  const named = (count: number): readonly string[] => ["rm", ...files(count).split(" ")];
  assert.deepEqual([deletesMany(named(MAX_DELETED)), deletesMany(named(MAX_DELETED + 1)), deletesMany(["rm", "*"])], [false, true, true]);
  const words = (count: number): string => `sudo ${"a ".repeat(count - 1)}`;
  assert.deepEqual([deletionOf(words(2_000)), deletionOf(words(2_001))], ["few", "many"]);
  const nested = (depth: number): string => (depth === 0 ? "true x" : `sh -c '${nested(depth - 1).replaceAll("'", "'\\''")}'`);
  assert.deepEqual([deletionOf(nested(2)), deletionOf(nested(4)), deletionOf(nested(5))], ["few", "few", "many"]);
});
