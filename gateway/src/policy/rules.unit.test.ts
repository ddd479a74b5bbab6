/** Whether one rule applies to one call: what is written for certain, in another spelling, or not at all. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ApprovalCondition, ApprovalDecision } from "../../../protocol/gen/types.ts";
import { MAX_PATTERN_CHARS, MAX_SEARCHED_CHARS, compileRegex, type RegexEngine } from "./regex.ts";
import { compileRules, type Match, matchRule, type ShellUnit, unitOf, vectorOf } from "./rules.ts";

const engine: RegexEngine = (pattern) =>
  pattern === "(" ? { ok: false, problem: "open" } : { ok: true, regex: { test: (text) => new RegExp(pattern).test(text) } };
const match = (decision: ApprovalDecision, when: ApprovalCondition, args: Record<string, unknown>, unit?: ShellUnit): Match => {
  const [rule] = compileRules([{ id: "r", tool: "lap__Tool", decision, when: [when] }], engine);
  assert.ok(rule);
  return matchRule(rule, args, unit);
};
/** As a rule that allows and as one that denies. */
const both = (when: ApprovalCondition, args: Record<string, unknown>, unit?: ShellUnit): string =>
  `${match("allow", when, args, unit)} ${match("deny", when, args, unit)}`;
const on = (path: string, op: ApprovalCondition["op"], value: unknown): ApprovalCondition => ({ path, op, value });

test("a rule is described by its id and its reason", () => {
  const about = (reason?: string): string | undefined =>
    compileRules([{ id: "r", tool: "x", decision: "deny", ...(reason === undefined ? {} : { reason }) }], engine)[0]?.about;
  assert.deepEqual([about(), about(""), about("too dear")], ["r", "r", "r (too dear)"]);
});

describe("[PO4] a value", () => {
  for (const [what, when, args, expected] of [
    ["that is absent", on("a", "contains", "x"), { b: "x" }, "no no"],
    ["that is absent below a text", on("a.b", "equals", "x"), { a: "x" }, "no no"],
    ["below another", on("a.b", "equals", "x"), { a: { b: "x" } }, "yes yes"],
    ["of a list", on("a.1", "equals", "x"), { a: ["y", "x"] }, "yes yes"],
    ["of a prototype", on("toString", "equals", "x"), {}, "no no"],
    ["in another case", on("name", "equals", "x"), { name: "X" }, "no no"],
    ["that is a path, in another case", on("path", "equals", "SOUL.md"), { path: "soul.MD" }, "no yes"],
    ["that is a path, on a detour", on("path", "equals", "a/b"), { path: "./a//b" }, "no yes"],
    ["that is a path, behind a detour", on("path", "startsWith", "src/"), { path: "src/../etc/x" }, "no yes"],
    ["that is a number", on("n", "equals", 5), { n: 5 }, "yes yes"],
    ["that is a number as text", on("n", "equals", 5), { n: "5" }, "no yes"],
    ["that is another number as text", on("n", "equals", 5), { n: "6" }, "no no"],
    ["that is a number, for a text", on("n", "equals", "5"), { n: 5 }, "no yes"],
    ["that is another number, for a text", on("n", "equals", "5"), { n: 6 }, "no no"],
    ["that is an object, for a text", on("n", "equals", "x"), { n: { a: 1 } }, "no yes"],
    ["that is another object", on("n", "equals", { a: 1 }), { n: { a: 2 } }, "no no"],
    ["that is an object with the same", on("n", "equals", { a: 1, b: [2, { c: 3 }] }), { n: { b: [2, { c: 3 }], a: 1 } }, "yes yes"],
    ["that is an object with one thing else", on("n", "equals", { a: 1, b: 2 }), { n: { a: 1, b: 3 } }, "no no"],
    ["that is an object with other names", on("n", "equals", { a: 1, b: 2 }), { n: { a: 1, c: 2 } }, "no no"],
    ["that is an object with more", on("n", "equals", { a: 1 }), { n: { a: 1, b: 2 } }, "no no"],
    ["that is a list, for an object like it", on("n", "equals", { 0: 1 }), { n: [1] }, "no no"],
    ["that is null", on("n", "equals", null), { n: null }, "yes yes"],
    ["that is null, for an object", on("n", "equals", {}), { n: null }, "no no"],
    ["that is no text to search", on("n", "contains", "x"), { n: ["x"] }, "no yes"],
    ["for a part that is no text", on("n", "contains", 5), { n: "5" }, "no no"],
    ["for a pattern that fits", on("n", "regex", "^a+$"), { n: "aa" }, "yes yes"],
    ["for a pattern that does not fit", on("n", "regex", "^a+$"), { n: "ab" }, "no no"],
    ["for a pattern that is not valid", on("n", "regex", "("), { n: "a" }, "no unsure"],
    ["that is as long as is searched", on("n", "regex", "b"), { n: "a".repeat(MAX_SEARCHED_CHARS) }, "no no"],
    ["that is longer than is searched", on("n", "regex", "b"), { n: "a".repeat(MAX_SEARCHED_CHARS + 1) }, "no unsure"],
  ] as const)
    test(what, () => assert.equal(both(when, args), expected));
});

describe("[PO4] a command", () => {
  const unit = (...words: string[]): ShellUnit => unitOf(words.join(" "), words);
  const complex = unitOf("$(ls) a");
  for (const [what, when, given, expected] of [
    ["for its words", on("command", "equals", ["rm", "x"]), unit("rm", "x"), "yes yes"],
    ["for its words, with a folder", on("command", "equals", ["rm", "x"]), unit("/bin/rm", "x"), "no yes"],
    ["for its words, with more", on("command", "equals", ["rm"]), unit("rm", "x"), "no no"],
    ["for its first words", on("command", "startsWith", ["git", "push"]), unit("git", "push", "-f"), "no yes"],
    ["for other first words", on("command", "startsWith", ["git", "push"]), unit("git", "pull"), "no no"],
    ["for a part", on("command", "contains", "push"), unit("git", "push"), "no yes"],
    ["for words that only begin a list of another operator", on("command", "contains", ["git"]), unit("git", "push"), "no no"],
    ["that runs another", on("command", "equals", ["rm"]), unit("sudo", "ls"), "no unsure"],
    ["that was not understood", on("command", "equals", ["rm"]), complex, "no unsure"],
    ["that was not understood, with a part", on("command", "contains", "ls"), complex, "no yes"],
    ["for a pattern", on("command", "regex", "^rm x$"), unit("/bin/rm", "x"), "no yes"],
    ["for another pattern", on("command", "regex", "^rm y$"), unit("rm", "x"), "no no"],
    ["for a pattern that is not valid", on("command", "regex", "("), unit("rm", "x"), "no unsure"],
    ["for a file, in another spelling", on("command", "equals", ["rm", "a/b"]), unit("rm", ".//a/./b"), "no yes"],
    ["for a file that a path from elsewhere may lead to", on("command", "equals", ["rm", "a"]), unit("rm", "/ws/a"), "no unsure"],
    ["for another file elsewhere", on("command", "equals", ["rm", "a"]), unit("rm", "/ws/b"), "no no"],
    ["for a program with its version", on("command", "startsWith", ["pip", "uninstall"]), unit("pip3.12", "uninstall", "x"), "no unsure"],
    ["for a subcommand by another name", on("command", "startsWith", ["npm", "run", "x"]), unit("npm", "run-script", "x"), "no yes"],
    ["for one after an option", on("command", "startsWith", ["npm", "run"]), unit("npm", "--prefix", "d", "rum", "x"), "no unsure"],
    ["for one that is named by its other name", on("command", "startsWith", ["cargo", "b"]), unit("cargo", "build"), "no yes"],
    ["for a word that is no subcommand", on("command", "startsWith", ["npm", "test"]), unit("npm", "run", "t"), "no no"],
    ["that is as long as is searched", on("command", "regex", "b"), unit("a".repeat(MAX_SEARCHED_CHARS)), "no no"],
    ["that is longer than is searched", on("command", "regex", "b"), unit("a".repeat(MAX_SEARCHED_CHARS + 1)), "no unsure"],
  ] as const)
    test(what, () => assert.equal(both(when, {}, given), expected));
  test("has the words of a list, or of one plain command for equals", () => {
    assert.deepEqual(vectorOf("equals", ["a", "b c"]), ["a", "b c"]);
    assert.deepEqual(vectorOf("equals", "a 'b c'"), ["a", "b c"]);
    assert.deepEqual(vectorOf("startsWith", ["a"]), ["a"]);
    for (const [op, value] of [
      ["startsWith", "a"],
      ["contains", ["a"]],
      ["regex", ["a"]],
      ["equals", []],
      ["equals", ["a", 5]],
      ["equals", "a; b"],
      ["equals", "a *"],
      ["equals", 5],
    ] as const)
      assert.equal(vectorOf(op, value), undefined, `${op} ${JSON.stringify(value)}`);
  });
});

test("[PO5] the limits of a pattern are exact", () => {
  const isValid = (pattern: unknown, flags?: string): boolean => compileRegex(engine, pattern, flags).ok;
  assert.ok(isValid("a".repeat(MAX_PATTERN_CHARS)) && !isValid("a".repeat(MAX_PATTERN_CHARS + 1)));
  assert.ok(isValid("a", "ims") && !isValid("a", "g") && !isValid("") && !isValid(5));
});
