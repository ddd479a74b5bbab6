/**
 * Code that deletes what a variable of a loop names, whatever the list is (rule PO13). PURE. It reads statement by statement and follows
 * names that are made of such a variable: `for n in l: path = d + n; os.remove(path)`.
 */

/** Functions of common languages that delete one file. */
export const REMOVES_FILE =
  /\b(?:unlink(?:Sync)?|rmSync|remove_file|rm_f|file\s+del(?:ete)?)\b|\b(?:os|File|Files|Deno|pathname|fs)\s{0,9}\.\s{0,9}(?:remove(?:Sync)?|delete|unlink|rm)\b|\bos\s{0,9}\.\s{0,9}Remove\b/;
const REMOVALS = new RegExp(REMOVES_FILE.source, "g");
/** The function itself is given to the loop: `l.map(fs.unlinkSync)`. */
const GIVEN = new RegExp(
  String.raw`\b(?:forEach|map|each|for_each)\b[\s(&]{0,9}(?:\w{1,40}\.){0,3}(?:${REMOVES_FILE.source})(?!\s{0,9}\()`,
);
/** Statements that are read. Code with more of them may do anything. */
const MAX_STATEMENTS = 5_000;
/** What is written to a file is no part of the code that runs here, though it may be run later. */
const WRITTEN = /^[ \t]*cat\b[^\n|]{0,300}>[^\n|]{0,300}<<-?[ \t]?["']?(\w{1,40})["']?[^\n]*\n(?:(?!\s*\1\s*$)[^\n]*\n){0,2000}\s*\1\s*$/gm;
/** `for a, b in`, `for (const { f } of`, `foreach (l as $k => $f)`, `for i=1`, `while l`. What stands between is names. */
const LOOP_HEADS = [
  /\bfor(?:each)?\b([^;:=\n]{1,200}?)(?:\b(?:in|of)\b|=)/g,
  /\bforeach\b[^;\n]{0,200}?\bas\b([^;)\n]{1,100})/g,
  /\b(?:while|until)\b([^:{;\n]{1,200})/g,
  // Functions of lists, with a function of their items.
  /\b(?:forEach|map|filter|some|every|flatMap|reduce|from)\s{0,9}\([^;\n]{0,40}?(?:function\b\s{0,9})?\(?([^;()\n]{1,60})\)?\s{0,9}(?:=>|\{)/g,
  /\b(?:each\w{0,20}|map|times|upto|downto|step|select|collect|loop)\b[^|\n;]{0,100}\|([^|\n]{1,100})\|/g,
  /\blambda\b([^:\n]{1,100}):/g,
];
const NO_NAMES: ReadonlySet<string> = new Set("const let var my local async function true True in of not and or is None null".split(" "));
const namesIn = (text: string): readonly string[] => text.match(/[A-Za-z_]\w*/g)?.filter((name) => !NO_NAMES.has(name)) ?? [];
const ASSIGNMENT = /([A-Za-z_]\w{0,60})\s{0,9}(?:\+|\|\||\?\?)?=(?![=>~])([^;\n]{1,500})/g;

/** What one statement gives to such a function, or the object whose function it is: `os.remove(f)`, `f.unlink()`. */
const givenIn = (statement: string): string =>
  [...statement.matchAll(REMOVALS)]
    .map(({ 0: found, index }) => {
      const before = /[\w)\]'"]{1,60}\s{0,9}\.\s{0,9}$|\([^()]{0,60}\)\s{0,9}\.\s{0,9}$/.exec(
        statement.slice(Math.max(0, index - 80), index),
      );
      return `${before?.[0] ?? ""} ${statement.slice(index + found.length)}`;
    })
    .join(" ");

/** The names that are written out are no longer in the text. */
export function deletesInLoop(text: string): boolean {
  const code = text.replaceAll(WRITTEN, " ").replaceAll(/\(\s+/g, "(");
  if (GIVEN.test(code)) return true;
  const statements = code.split(/[;\n]/);
  if (statements.length > MAX_STATEMENTS) return true;
  const varying = new Set<string>();
  const varies = (part: string): boolean => namesIn(part).some((name) => varying.has(name));
  for (const statement of statements) {
    for (const head of LOOP_HEADS)
      for (const [, names = ""] of statement.matchAll(head)) for (const name of namesIn(names)) varying.add(name);
    if (varying.size === 0) continue;
    for (const [, name = "", value = ""] of statement.matchAll(ASSIGNMENT)) if (varies(value)) varying.add(name);
    if (varies(givenIn(statement))) return true;
  }
  return false;
}
