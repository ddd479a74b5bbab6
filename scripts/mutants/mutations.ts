/**
 * One-line mistakes that can be made in a source file: a comparison turned round, a condition that is never true, a call left out.
 * Takes texts and gives mutations, without files or processes. It works on text, so a mutation may not compile; the driver finds out.
 */
import { blank } from "../check/dependency-rules.ts";

export interface Mutation {
  /** Path from the root, with `/`. */
  readonly file: string;
  /** Counted from 1. */
  readonly line: number;
  /** What is changed, in words: `=== to !==`. */
  readonly change: string;
  /** The changed line before and after, without indentation. */
  readonly from: string;
  readonly to: string;
  /** The whole file after the change. */
  readonly mutant: string;
}

type Swap = readonly [pattern: RegExp, put: string, change: string];
const SWAPS: readonly Swap[] = [
  [/ === /g, " !== ", "=== to !=="],
  [/ !== /g, " === ", "!== to ==="],
  [/ == /g, " != ", "== to !="],
  [/ != /g, " == ", "!= to =="],
  [/ < /g, " <= ", "< to <="],
  [/ <= /g, " < ", "<= to <"],
  [/ > /g, " >= ", "> to >="],
  [/ >= /g, " > ", ">= to >"],
  [/ && /g, " || ", "&& to ||"],
  // After `move` it begins a closure.
  [/(?<!\bmove) \|\| /g, " && ", "|| to &&"],
  [/ \+ 1\b/g, "", "+ 1 left out"],
  [/ - 1\b/g, "", "- 1 left out"],
  [/\breturn true\b/g, "return false", "return true to return false"],
  [/\breturn false\b/g, "return true", "return false to return true"],
  [/(?<=[\s(])!(?=[A-Za-z(])/g, "", "! left out"],
];
const CALL = /^[ \t]+(?:await |void )?[A-Za-z_][\w.!?:]*\(.*\)\??(?:\.await\??)?;$/;
/** Lines whose change no test can see or should see: logs, assertions, types, generics, attributes and what depends on the system. */
const LEFT_ALONE =
  /\b(?:logger|console|tracing)\b|\blog(?:Line)?\(|\blog(?:\.|::)(?:trace|debug|info|warn|error)\b|\b(?:debug_)?assert(?:_eq|_ne)?\b|\breadonly\b|^\s*(?:(?:export|pub) )?(?:interface|type|import|where|impl|use)\b|^\s*(?:#\[|\/\/|\*)|\bnew Error\(|panic|unreachable|\bcfg!\(/;

const UNIT_TESTS = /^#\[cfg\((?:test|all\(test, .*\))\)\]$/m;

/** Every mutation of a file, in the order of its lines. Unit tests at the end of a Rust file are not touched. */
export function mutationsOf(file: string, text: string): Mutation[] {
  const rust = file.endsWith(".rs");
  const code = blank(rust ? (text.split(UNIT_TESTS)[0] ?? "") : text, { comments: true, strings: true });
  const found: Mutation[] = [];
  let start = 0;
  for (const [index, line] of code.split("\n").entries()) {
    if (!LEFT_ALONE.test(line))
      for (const edit of editsOf(line, rust)) {
        const at = start + edit.at;
        const mutant = text.slice(0, at) + edit.put + text.slice(at + edit.length);
        const before = text.split("\n")[index] ?? "";
        const after = before.slice(0, edit.at) + edit.put + before.slice(edit.at + edit.length);
        found.push({ file, line: index + 1, change: edit.change, from: before.trim(), to: after.trim(), mutant });
      }
    start += line.length + 1;
  }
  return found;
}

interface Edit {
  readonly at: number;
  readonly length: number;
  readonly put: string;
  readonly change: string;
}
function* editsOf(line: string, rust: boolean): Generator<Edit> {
  for (const [pattern, put, change] of SWAPS)
    for (const match of line.matchAll(pattern)) yield { at: match.index, length: match[0].length, put, change };
  const condition = rust ? rustCondition(line) : scriptCondition(line);
  if (condition !== undefined) yield { ...condition, put: rust ? "false" : "(false)", change: "a condition that is never true" };
  if (CALL.test(line) && balanced(line)) {
    const at = line.length - line.trimStart().length;
    yield { at, length: line.length - at, put: "", change: "a call left out" };
  }
}

/** The condition of `if (...)`, with its parentheses, when it ends on the same line. */
function scriptCondition(line: string): { at: number; length: number } | undefined {
  const match = /\bif \(/.exec(line);
  if (match === null) return undefined;
  const at = match.index + "if ".length;
  let depth = 0;
  for (let end = at; end < line.length; end++) {
    if (line[end] === "(") depth += 1;
    if (line[end] === ")") depth -= 1;
    if (depth === 0) return { at, length: end - at + 1 };
  }
  return undefined;
}
function rustCondition(line: string): { at: number; length: number } | undefined {
  const match = /\bif (?!let\b)(.+) \{$/.exec(line);
  if (match === null || / let /.test(match[1] ?? "")) return undefined;
  return { at: match.index + "if ".length, length: match[1]?.length ?? 0 };
}
function balanced(line: string): boolean {
  let depth = 0;
  for (const letter of line) {
    if ("([{".includes(letter)) depth += 1;
    if (")]}".includes(letter)) depth -= 1;
    if (depth < 0) return false;
  }
  return depth === 0;
}
