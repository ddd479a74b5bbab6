/**
 * Reads YAML 1.2 of others: plain values only. Aliases, anchors, tags, directives, further documents and deep nesting are refused, so that
 * a small text cannot become a large value. PURE; never throws. Problems name the line, never the value.
 */
import { isNode, isScalar, LineCounter, type Node, parseDocument, visit } from "yaml";

export interface YamlProblem {
  readonly line: number;
  /** A sentence without its subject: `a key occurs twice.` */
  readonly problem: string;
}
export type StrictYaml =
  /** `lineOf`: of the deepest part of a path that the text has. */
  | { readonly kind: "value"; readonly value: unknown; readonly lineOf: (path: readonly (string | number)[]) => number }
  | { readonly kind: "flawed"; readonly problems: readonly YamlProblem[] }
  /** Without a line: the text as a whole. */
  | { readonly kind: "unreadable"; readonly problem: string };
export interface YamlBounds {
  readonly maxDepth: number;
  /** Lines of the file before the text. */
  readonly linesAbove?: number;
}

export function readStrictYaml(text: string, { maxDepth, linesAbove = 0 }: YamlBounds): StrictYaml {
  const lines = new LineCounter();
  const lineAt = (offset: number): number => lines.linePos(offset).line + linesAbove;
  const first = linesAbove + 1;
  try {
    if (deepestFlow(text) > maxDepth) return { kind: "unreadable", problem: `is nested deeper than ${maxDepth}.` };
    const marked = text.split("\n").findIndex((line, index) => (index > 0 || !START.test(line)) && MARKER.test(line));
    if (marked !== -1)
      return { kind: "flawed", problems: [{ line: first + marked, problem: "directives and further documents are not allowed." }] };
    const document = parseDocument(text, {
      version: "1.2",
      schema: "core",
      uniqueKeys: true,
      merge: false,
      strict: true,
      resolveKnownTags: false,
      prettyErrors: false,
      logLevel: "silent",
      lineCounter: lines,
    });
    const flaws = [...document.errors, ...document.warnings].map(({ pos, code }) => ({ line: lineAt(pos[0]), problem: sentence(code) }));
    if (flaws.length > 0) return { kind: "flawed", problems: once(flaws) };
    const odd = oddNode(document.contents, maxDepth);
    if (odd !== undefined)
      return { kind: "flawed", problems: [{ line: odd.offset === undefined ? first : lineAt(odd.offset), problem: odd.problem }] };
    const value: unknown = document.toJS({ maxAliasCount: 0 });
    const lineOf = (path: readonly (string | number)[]): number => {
      for (let depth = path.length; depth > 0; depth--) {
        const node: unknown = document.getIn(path.slice(0, depth), true);
        if (isNode(node) && node.range) return lineAt(node.range[0]);
      }
      return first;
    };
    return { kind: "value", value, lineOf };
  } catch {
    // The parser recurses, so deep nesting can overflow its stack.
    return { kind: "unreadable", problem: "can't be read: it is nested too deeply or is not YAML." };
  }
}

/** The parser says nothing of further documents when it is silent. */
const MARKER = /^(?:---|\.\.\.)(?:\s|$)|^%/;
const START = /^---\s*$/;

const once = (flaws: readonly YamlProblem[]): readonly YamlProblem[] => [
  ...new Map(flaws.map((flaw) => [`${flaw.line} ${flaw.problem}`, flaw])).values(),
];

/** Counts brackets inside quotes too: no valid text has so many. */
function deepestFlow(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const sign of text) {
    if (sign === "[" || sign === "{") deepest = Math.max(deepest, ++depth);
    else if (sign === "]" || sign === "}") depth--;
  }
  return deepest;
}

interface Odd {
  /** Absent: not known. */
  readonly offset: number | undefined;
  readonly problem: string;
}
/** YAML features that the text must not use. */
function oddNode(root: Node | null, maxDepth: number): Odd | undefined {
  let found: Odd | undefined;
  const at = (node: unknown, problem: string): symbol => {
    found = { offset: isNode(node) ? node.range?.[0] : undefined, problem };
    return visit.BREAK;
  };
  visit(root, {
    Alias: (_key, node) => at(node, "aliases (`*name`) are not allowed."),
    Node: (_key, node, path) => {
      if (node.anchor) return at(node, "anchors (`&name`) are not allowed.");
      if (typeof node.tag === "string") return at(node, "tags (`!name`) are not allowed.");
      return path.length > maxDepth * 2 ? at(node, `it is nested deeper than ${maxDepth}.`) : undefined;
    },
    Pair: (_key, pair) => (isScalar(pair.key) && typeof pair.key.value === "string" ? undefined : at(pair.key, "a key is not a text.")),
  });
  return found;
}

/** Sentences for the parser's codes. The parser's own messages may quote the text. */
function sentence(code: string): string {
  switch (code) {
    case "DUPLICATE_KEY":
      return "a key occurs twice.";
    case "TAB_AS_INDENT":
      return "a tab is used to indent; use spaces.";
    case "TAG_RESOLVE_FAILED":
      return "tags (`!name`) are not allowed.";
    case "BAD_ALIAS":
      return "an alias (`*name`) names nothing; aliases are not allowed.";
    case "MULTILINE_IMPLICIT_KEY":
    case "BLOCK_AS_IMPLICIT_KEY":
    case "BAD_INDENT":
      return "the indentation or a colon is wrong; put texts with a colon in quotes.";
    default:
      return `this is not YAML (${code.toLowerCase().replaceAll("_", " ")}).`;
  }
}
