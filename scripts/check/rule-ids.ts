/**
 * Rules and their tests: every id in a test has a document, every rule that is built has a test, no id stands for two rules, each page of
 * rules has its row, and documents point only at files of this repository. PURE: takes texts, gives findings.
 */
import type { Finding, Sources } from "./dependency-rules.ts";

export interface Rule {
  readonly id: string;
  readonly planned: boolean;
  readonly file: string;
  readonly line: number;
}

/** `- **P6** text` or `- **P15** (planned) text`. */
const RULE = /^- \*\*([A-Z]{1,3}\d+(?:\.\d+)?'?)\*\*( \(planned\))?/;
const IN_BRACKETS = /\[([A-Z]{1,3}\d+(?:\.\d+)?'?)\]/g;
/** `fn p6_k15_name` and `"k16b_name"`: in Rust a name begins with the ids that it proves; `b` stands for the prime. */
const RUST_NAME = /(?:\bfn |")((?:[a-z]{1,3}\d+b?_)+)/g;
/** A reported problem: its test keeps it from coming back, and its rule has an id of its own. */
const REPORTED = /^F\d+$/;
const IS_TYPESCRIPT_TEST = /\.test\.ts$|(?:^|\/)test\/.*\.ts$/;
const IS_RUST = /\.rs$/;
/** Tests of this check and of the runner, which name made-up ids. */
const SUBJECT = /^scripts\/check\/rule-ids/;

export function rulesOf(sources: Sources): Rule[] {
  const rules: Rule[] = [];
  for (const [file, text] of sources) {
    if (!file.endsWith(".md")) continue;
    for (const [index, line] of text.split("\n").entries()) {
      const match = RULE.exec(line);
      if (match) rules.push({ id: match[1] ?? "", planned: match[2] !== undefined, file, line: index + 1 });
    }
  }
  return rules;
}

/** Where each id is named by a test. `prefixes`: letters that begin ids; other words with digits are ordinary names. */
export function namedIds(sources: Sources, prefixes: ReadonlySet<string>): Map<string, { readonly file: string; readonly line: number }> {
  const named = new Map<string, { file: string; line: number }>();
  const note = (id: string, file: string, line: number): void => {
    if (!named.has(id)) named.set(id, { file, line });
  };
  for (const [file, text] of sources) {
    const isRust = IS_RUST.test(file);
    if (SUBJECT.test(file) || (!isRust && !IS_TYPESCRIPT_TEST.test(file))) continue;
    for (const [index, line] of text.split("\n").entries()) {
      for (const [, id = ""] of line.matchAll(IN_BRACKETS)) note(id, file, index + 1);
      if (!isRust) continue;
      for (const [, name = ""] of line.matchAll(RUST_NAME))
        for (const word of name.split("_").filter((it) => it !== "")) {
          const id = word.toUpperCase().replace(/B$/, "'");
          if (prefixes.has(id.replace(/\d.*/, ""))) note(id, file, index + 1);
        }
    }
  }
  return named;
}

export function ruleFindings(sources: Sources): Finding[] {
  const rules = rulesOf(sources);
  const findings: Finding[] = [];
  const byId = new Map<string, Rule>();
  for (const rule of rules) {
    const first = byId.get(rule.id);
    if (first === undefined) byId.set(rule.id, rule);
    else
      findings.push({
        rule: "ids",
        file: rule.file,
        line: rule.line,
        message: `${rule.id} is a rule of ${first.file}:${first.line} too. Give one of them another id.`,
      });
  }
  const named = namedIds(sources, new Set([...byId.keys()].map((id) => id.replace(/\d.*/, ""))));
  for (const [id, { file, line }] of named)
    if (!byId.has(id) && !REPORTED.test(id))
      findings.push({ rule: "ids", file, line, message: `No document has the rule ${id}. Write it, or name the right one.` });
  for (const { id, planned, file, line } of byId.values()) {
    if (!planned && !named.has(id))
      findings.push({ rule: "ids", file, line, message: `No test names ${id}. Write one, or mark the rule (planned).` });
    const test = named.get(id);
    if (planned && test !== undefined)
      findings.push({ rule: "ids", file, line, message: `${id} is marked (planned), and ${test.file}:${test.line} tests it.` });
  }
  return findings;
}

const INDEX = "gateway/SPEC.md";
const PAGE = /^gateway\/(spec\/[^/]+\.md)$/;
/** `| [name](spec/name.md) | AB, CD: what the page is about |`. */
const ROW = /^\| \[[^\]]+\]\((spec\/[^)]+\.md)\) \| ([A-Z]{1,3}(?:, [A-Z]{1,3})*): /;
const lettersOf = (rules: readonly Rule[]): string => [...new Set(rules.map(({ id }) => id.replace(/\d.*/, "")))].sort().join(", ");

/** Pages of the gateway's rules without a row in its table of pages, and rows that name other letters than the page's rules have. */
export function pageFindings(sources: Sources): Finding[] {
  const rows = new Map<string, { readonly letters: string; readonly line: number }>();
  for (const [index, line] of (sources.get(INDEX) ?? "").split("\n").entries()) {
    const [, page, letters] = ROW.exec(line) ?? [];
    if (page !== undefined && letters !== undefined) rows.set(page, { letters: letters.split(", ").sort().join(", "), line: index + 1 });
  }
  const findings: Finding[] = [];
  for (const [file, text] of sources) {
    const page = PAGE.exec(file)?.[1];
    if (page === undefined) continue;
    const row = rows.get(page);
    const letters = lettersOf(rulesOf(new Map([[file, text]])));
    if (row === undefined)
      findings.push({
        rule: "ids",
        file,
        line: 1,
        message: `This page has no row in ${INDEX}. Add | [name](${page}) | ${letters}: what it is about |.`,
      });
    else if (row.letters !== letters)
      findings.push({
        rule: "ids",
        file: INDEX,
        line: row.line,
        message: `The rules of ${page} begin with ${letters}, not with ${row.letters}.`,
      });
  }
  return findings;
}

const LINK = /\]\(([^)#\s]+)(?:#[^)]*)?\)/g;
/** Documents that a text names in passing, such as promises.md. Names in backticks are files of users. */
const MENTION = /(?<![\w/.{}*<`-])(?<!\]\()((?:\.\.?\/)*(?:[a-z][\w-]*\/)*[a-z][\w-]*\.md)\b/g;
const HAS_MENTIONS = /\.(?:md|ts|rs|sh)$/;

/** Links and mentions of documents that this repository does not have. `exists`: paths of files and folders. */
export function documentFindings(sources: Sources, exists: (path: string) => boolean): Finding[] {
  const names = new Set([...sources.keys()].filter((file) => file.endsWith(".md")).map((file) => file.split("/").at(-1) ?? ""));
  const findings: Finding[] = [];
  for (const [file, text] of sources) {
    if (SUBJECT.test(file) || !HAS_MENTIONS.test(file)) continue;
    const isDocument = file.endsWith(".md");
    const folder = file.split("/").slice(0, -1);
    for (const [index, line] of text.split("\n").entries()) {
      const complain = (message: string): void => void findings.push({ rule: "documents", file, line: index + 1, message });
      if (isDocument)
        for (const [, target = ""] of line.matchAll(LINK)) {
          if (/^[a-z]+:/.test(target)) continue;
          const path = resolve(folder, target);
          if (path === undefined || !exists(path)) complain(`${target} is not a file of this repository.`);
        }
      const isComment = isDocument || /^\s*(?:\/\/|\*|\/\*|#)/.test(line);
      if (isComment)
        for (const [, mentioned = ""] of line.matchAll(MENTION))
          if (!names.has(mentioned.split("/").at(-1) ?? "")) complain(`${mentioned} is not a document of this repository.`);
    }
  }
  return findings;
}

/** A path from the root, or undefined when it leads out of the repository. */
function resolve(folder: readonly string[], target: string): string | undefined {
  const parts = target.startsWith("/") ? [] : [...folder];
  for (const part of target.split("/")) {
    if (part === "" || part === ".") continue;
    if (part !== "..") parts.push(part);
    else if (parts.pop() === undefined) return undefined;
  }
  return parts.join("/");
}
