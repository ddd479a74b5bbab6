import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { readShell } from "./shell.ts";

interface Case {
  readonly class: string;
  readonly text: string;
  readonly commands?: readonly (readonly string[])[];
  readonly complex?: string;
}
const table = readFileSync(join(import.meta.dirname, "../../../test/tables/shell-cases.jsonl"), "utf8");
const cases = table
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Case);

test("[PO2] the table has at least 300 spellings of 12 classes", () => {
  assert.ok(cases.length >= 300, String(cases.length));
  assert.equal(new Set(cases.map((found) => found.class)).size, 12);
  assert.equal(new Set(cases.map(({ text }) => text)).size, cases.length);
});

test("[PO2] each spelling of the table gives its argument vectors, or is complex for its reason", () => {
  for (const { text, commands, complex } of cases) {
    const read = readShell(text);
    if (read.kind === "plain")
      assert.deepEqual(
        read.commands.map(({ words }) => words),
        commands,
        JSON.stringify(text),
      );
    else assert.equal(read.why, complex, JSON.stringify(text));
  }
});

/** The output of bash for a script, in which PATH is empty. */
function bash(script: string): string {
  const { status, stdout, stderr } = spawnSync("/bin/bash", ["--norc", "--noprofile", "-s"], {
    env: { PATH: "/nonexistent", LC_ALL: "C.UTF-8" },
    input: script,
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  assert.equal(status, 0, stderr);
  return stdout;
}
/**
 * What bash makes of the source of simple commands: each is an argument of a function that prints its arguments, on a descriptor that no
 * redirection of the command changes. Nothing of the texts is run.
 */
function inBash(sources: readonly string[]): readonly (readonly string[])[] {
  const show = 'show() { printf \'%s\\0\' "$#" "$@" >&9; }';
  const words = bash([show, "exec 9>&1", ...sources.map((source) => `show ${source}`), ""].join("\n"))
    .split("\0")
    .slice(0, -1);
  const vectors: string[][] = [];
  for (let at = 0; at < words.length; ) {
    const count = Number(words[at]);
    vectors.push(words.slice(at + 1, at + 1 + count));
    at += 1 + count;
  }
  return vectors;
}
/** Source and vector of every simple command of the plain texts. Between the commands are operators only. */
function simple(texts: readonly string[]): readonly { readonly source: string; readonly words: readonly string[] }[] {
  return texts.flatMap((text) => {
    const read = readShell(text);
    if (read.kind !== "plain") return [];
    const borders = read.commands.map(({ start }, index) => text.slice(read.commands[index - 1]?.end ?? 0, start));
    const [before = "", ...between] = [...borders, text.slice(read.commands.at(-1)?.end)];
    assert.match(before, /^[ \t]*$/);
    for (const operator of between) assert.match(operator, /^[ \t]*(?:&&|\|\||;|\||)[ \t]*$/);
    return read.commands.map(({ words, start, end }) => ({ source: text.slice(start, end), words }));
  });
}

test("[PO2] [TH11] bash sees the same arguments in every spelling that is not complex", () => {
  const found = simple(cases.map(({ text }) => text));
  assert.ok(found.length > 300, String(found.length));
  assert.deepEqual(
    inBash(found.map(({ source }) => source)),
    found.map(({ words }) => words),
  );
});

test("[PO2] bash sees the same arguments in texts of random pieces, and accepts them as a whole", () => {
  const pieces =
    "a|b|git|1|2| |  |\t|'|\"|\\|$|`|;|&|&&|\\|\\||>|<|/dev/null|2>&1|(|)|#|~|*|?|{|}|=|!|\n|\r|é|-|--x|%|:|,|@|.|''|'x y'|\"z\""
      .split(/(?<!\\)\|/)
      .map((piece) => piece.replaceAll("\\|", "|"));
  const text = fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 9 }).map((parts) => parts.join(""));
  const texts = fc.sample(text, { numRuns: 30_000, seed: 20 });
  const plain = [...new Set(texts)].filter((candidate) => readShell(candidate).kind === "plain");
  assert.ok(plain.length > 500, String(plain.length));
  const found = simple(plain);
  assert.deepEqual(
    inBash(found.map(({ source }) => source)),
    found.map(({ words }) => words),
  );
  // `declare -f` prints what bash has read, and runs nothing: a function for each text, so none may end early or go on in the next.
  const script = plain.map((candidate, index) => `f${index}() {\n${candidate}\n}`).join("\n");
  assert.equal(bash(`${script}\ndeclare -F\n`).trimEnd().split("\n").length, plain.length);
});

test("[PO2] the reason names the kind of the character outside quotes: the first and last of each kind", () => {
  const why = (text: string): string => {
    const read = readShell(text);
    return read.kind === "plain" ? "plain" : read.why;
  };
  assert.deepEqual(["a\u001f", "a\u007f", "a\u0080", "a\u00e9", "a'\u0080'", "a'\u00e9'", "a'~'"].map(why), [
    "control",
    "control",
    "unicode",
    "unicode",
    "unicode",
    "plain",
    "plain",
  ]);
});
