/**
 * Code that deletes what a variable of a loop names, whatever the list is (rule PO13). PURE. It reads statement by statement and follows
 * names that are made of such a variable: `for n in l: path = d + n; os.remove(path)`.
 */

/** Functions of common languages that delete one file. */
export const REMOVES_FILE =
  /\b(?:unlink(?:Sync)?|rmSync|remove_file|rm_f|file\s+del(?:ete)?|file\.remove)\b|\b(?:os|File|Files|Deno|pathname|fs(?:\s{0,9}\.\s{0,9}promises)?)\s{0,9}\.\s{0,9}(?:remove(?:Sync)?|delete|unlink|rm)\b|\bos\s{0,9}\.\s{0,9}Remove\b|\bFileUtils\s{0,9}\.\s{0,9}(?:rm|remove|safe_unlink)\b/;
const REMOVALS = new RegExp(REMOVES_FILE.source, "g");
/** The function itself is given to the loop: `l.map(fs.unlinkSync)`. */
const GIVEN = new RegExp(
  String.raw`\b(?:forEach|map|each|for_each)\b[\s(&]{0,9}(?:\w{1,40}\.){0,3}(?:${REMOVES_FILE.source})(?!\s{0,9}\()`,
);
/** Statements that are read. Code with more of them may do anything. */
const MAX_STATEMENTS = 5_000;
/** Characters of arguments, and of the object whose function is called. Longer ones may name anything. */
const MAX_GIVEN = 300;
/** `for a, b in`, `for (const { f } of`, `foreach (l as $k => $f)`, `for i=1`, `while l`. The names are between the words. */
const LOOP_HEADS = [
  /\bfor(?:each)?\b([^;:=\n]{1,200}?)(?:\b(?:in|of)\b|:?=)/g,
  /\bforeach\b[^;\n]{0,200}?\bas\b([^;)\n]{1,100})/g,
  /\b(?:while|until)\b([^:{;\n]{1,200})/g,
  // Functions of lists, with a function of their items.
  /\b(?:forEach|map|filter|some|every|flatMap|reduce|from)\s{0,9}\([^;\n]{0,40}?(?:function\b\s{0,9})?\(?([^;()\n]{1,60})\)?\s{0,9}(?:=>|\{)/g,
  /\b(?:each\w{0,20}|map|times|upto|downto|step|select|collect|loop)\b[^|\n;]{0,100}\|([^|\n]{1,100})\|/g,
  /\blambda\b([^:\n]{1,100}):/g,
];
const NO_NAMES: ReadonlySet<string> = new Set(
  "const let var my local async function true True in of not and or is None null os fs sys range".split(" "),
);
/** Without those of properties: `path` in `os.path`. */
const namesIn = (text: string): readonly string[] =>
  text.match(/(?<!\w|(?<!\.)\.)[A-Za-z_]\w*/g)?.filter((name) => !NO_NAMES.has(name)) ?? [];
/** A line that is a comment. */
const COMMENT = /^\s*(?:#|\/\/)/;
/** Without a name of its own: the item of a loop (Ruby), or the next one of a list. */
const ITEM = /(?<!\w)_1\b|\.\s{0,9}(?:pop|popleft|pop_front|shift)\s{0,9}\(/;
const LOOPS = /\b(?:for|foreach|while|until|loop|each\w{0,20}|map|times)\b/;
const ASSIGNMENT = /([A-Za-z_]\w{0,60})\s{0,9}(?:\+|\|\||\?\?)?=(?![=>~])([^;\n]{1,500})/g;

/** What one statement gives to such functions, and the objects whose functions they are: `os.remove(f)`, `f.unlink()`. Undefined: it is too long. */
function givenIn(statement: string): string | undefined {
  const given: string[] = [];
  for (const { 0: found, index } of statement.matchAll(REMOVALS)) {
    const args = argumentsAt(statement, index + found.length);
    if (args === undefined) return undefined;
    given.push(objectBefore(statement, index), args);
  }
  return given.join(" ");
}
/** To the bracket that closes the first one; without a bracket, the next characters. */
function argumentsAt(text: string, from: number): string | undefined {
  const rest = text.slice(from, from + MAX_GIVEN);
  if (!/^\s*\(/.test(rest)) return rest;
  let depth = 0;
  for (let at = 0; at < rest.length; at++) {
    if (rest[at] === "(") depth++;
    else if (rest[at] === ")" && --depth === 0) return rest.slice(0, at);
  }
  return text.length > from + MAX_GIVEN ? undefined : rest;
}
/** `Path(str(f) + ".bak")` of `Path(str(f) + ".bak").unlink`. */
function objectBefore(text: string, to: number): string {
  const before = text.slice(Math.max(0, to - MAX_GIVEN), to).trimEnd();
  if (!before.endsWith(".")) return "";
  let depth = 0;
  let at = before.length - 1;
  while (at > 0) {
    const char = before[at - 1] ?? "";
    if (")]".includes(char)) depth++;
    else if ("([".includes(char) && --depth < 0) break;
    else if (depth === 0 && !/[\w.$?!'"]/.test(char)) break;
    at--;
  }
  return before.slice(at);
}

const LINES = /[^\n]*(?:\n|$)/g;
const FILE = String.raw`>>?[ \t]*(?!["']?\/dev\/)[^\s|;&<>()]{1,300}`;
const HEREDOC = String.raw`<<-?[ \t]?(["']?)(\w{1,40})\1`;
const WRITES = [`${FILE}[ \\t]*${HEREDOC}`, `${HEREDOC}[ \\t]*${FILE}`].map((rest) => new RegExp(`^[ \\t]*cat[ \\t]*${rest}[ \\t]*\\n?$`));
/** Without what `cat` writes to a file: that is no part of the code that runs here, though it may be run later. */
function withoutWritten(text: string): string {
  if (!text.includes("<<")) return text;
  const lines = text.match(LINES) ?? [];
  const kept: string[] = [];
  // No later line is the end of these either.
  const endless = new Set<string>();
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] as string;
    const end = line.includes("<<") ? WRITES.map((writes) => writes.exec(line)?.[2]).find((found) => found !== undefined) : undefined;
    const closes = end === undefined || endless.has(end) ? -1 : lines.findIndex((other, place) => place > at && other.trim() === end);
    if (end !== undefined && closes === -1) endless.add(end);
    if (closes === -1) kept.push(line);
    else at = closes;
  }
  return kept.join("");
}

/** The names that are written out are no longer in the text. */
export function deletesInLoop(text: string): boolean {
  const code = withoutWritten(text).replaceAll(/\(\s+/g, "(");
  if (GIVEN.test(code)) return true;
  const statements = code.split(/[;\n]/);
  if (statements.length > MAX_STATEMENTS) return true;
  const loops = LOOPS.test(code);
  const varying = new Set<string>();
  const varies = (part: string): boolean => namesIn(part).some((name) => varying.has(name));
  for (const statement of statements) {
    if (COMMENT.test(statement)) continue;
    for (const head of LOOP_HEADS)
      for (const [, names = ""] of statement.matchAll(head)) for (const name of namesIn(names)) varying.add(name);
    if (varying.size > 0) for (const [, name = "", value = ""] of statement.matchAll(ASSIGNMENT)) if (varies(value)) varying.add(name);
    const given = givenIn(statement);
    if ((given === undefined && varying.size > 0) || (loops && ITEM.test(given ?? "")) || varies(given ?? "")) return true;
  }
  return false;
}
