/** Deletions that are mentioned in code, or behind an option, of a program that runs other commands (rule PO13). PURE. */
import { MAX_DELETED } from "./reading.ts";
import { nameOf } from "../wrappers.ts";
import { countOf, namesDeleter } from "./deleters.ts";
import type { TemporaryTrust } from "./temporary-paths.ts";
import { deletesInLoop, REMOVES_FILE } from "./deletion-in-loops.ts";
import type { ReadingSteps } from "./reading-steps.ts";
import { withoutQuotes } from "../quotes.ts";

interface Reading {
  readonly trust: TemporaryTrust;
  readonly steps: ReadingSteps;
}

/** Tokens of a text that are looked at, and how many of them may name a program that deletes. */
const MAX_TOKENS = 20_000;
const MAX_MENTIONS = 200;

/** Whether a command is mentioned anywhere that deletes many files: in code, or behind an option. */
export function mentionsDeletion(words: readonly string[], reading: Reading): boolean {
  const text = words.join(" ");
  // Any quote or backslash may be a spelling of a shell in there.
  const bare = withoutQuotes(text);
  const program = nameOf(words[0]);
  if (MAY_REMOVE.test(text) && (deletesList(words, text) || MOVES_AWAY.test(text) || MOVES_AWAY.test(bare))) return true;
  if (isMentioned(text, program, reading) || (bare !== text && isMentioned(bare, program, reading))) return true;
  return text.includes("\\") && ESCAPE.test(text) && isMentioned(withoutQuotes(withoutEscapes(text)), program, reading);
}
/** Escapes of printf, `echo -e` and the strings of most languages. Several backslashes are one for a shell inside of another. */
const ESCAPE = /\\(?:[abefnrtv]|x[\da-f]|[0-7]|u\{?[\da-f])/i;
const ESCAPES = /(?<!\\)\\{1,64}(?:x([\da-f]{1,2})|u\{?([\da-f]{2,6})\}?|(0?[0-7]{1,3})|([abefnrtv]))/gi;
/** The text that a program makes of one with escapes. A control character may end a word or a line: what follows may begin a command. */
function withoutEscapes(text: string): string {
  return text.replaceAll(ESCAPES, (_, hex?: string, unicode?: string, octal?: string, control?: string) => {
    if (control !== undefined) return "nrNR".includes(control) ? "\n" : " ";
    const code = octal === undefined ? Number.parseInt(hex ?? unicode ?? "", 16) : Number.parseInt(octal, 8);
    return code <= 0x20 ? "\n" : code < 0x7f ? String.fromCharCode(code) : " ";
  });
}
function isMentioned(text: string, program: string, reading: Reading): boolean {
  if (removesFolders(text) || (text.includes("clear") && CLEARS.test(text))) return true;
  const tokens = text.split(/[\s"'`(){}[\];,|&!=<>\\]+/).filter((token) => token !== "");
  if (tokens.length > MAX_TOKENS) return true;
  const isList = program === "parallel";
  let seen = 0;
  return tokens.some((token, at) => {
    // An option with its value: `-xrm`. A line of sed: `1erm`.
    const bare = token.replace(/^-[A-Za-z](?=[a-z])|^[\d,$]+e(?=[a-z])/, "");
    if (!namesDeleter(bare)) return false;
    if ((isList && nameOf(bare) === "rm") || ++seen > MAX_MENTIONS) return true;
    if (reading.steps.takesTooLong((tokens.length - at) / 16)) return true;
    const count = countOf([bare, ...tokens.slice(at + 1)], reading.trust);
    return count === "many" || count > MAX_DELETED;
  });
}
/** Functions of common languages that delete a folder with what is in it. */
const REMOVES_FOLDERS =
  /(?:\b|\s-[a-z]{0,3}e)(?:_{0,2}rmtree(?:_\w{1,20})?|remove_tree|rm_rf|rm_r|remove_dir(?:_all)?|remove_entry(?:_secure)?|deltree|del_dir_r|RemoveAll|deleteRecursively|emptyDir(?:Sync)?)\b|\b(?:deleteDir(?:ectory)?|cleanDirectory)\s{0,9}\(|\([\w:]{0,20}\bdelete-(?:directory|tree|file-recursively)\b|\brmdir\s{0,9}\([^()]{0,300},\s{0,9}["']s["']\s{0,9}\)|\bunlink[\s(]*(?:glob|<|@|for(?:each)?\b)|\b(?:delete|unlink|rm|rm_f|remove)\b[\s(]{0,9}\*[A-Za-z_]|\bfile\s+del(?:e|et|ete)?\s+-f|\bdelete\s*\([^()]{0,300},\s*["']?rf["']?\s*\)|(?<!\bDeno\W{0,9})\bremoveSync\b|\brm\s{0,9}\(\s{0,9}\\?["'`]-[A-Za-z]{0,9}[rR]/;
/** Python that makes an environment in a folder, which it empties first. */
const CLEARS = /\b(?:venv|EnvBuilder|virtualenv)\b[^\n]{0,300}\bclear\s{0,9}=\s{0,9}(?!False|0)/;
/** JavaScript that deletes a folder by an option, which may stand anywhere in the code. `rm` is a function, not the program. */
const REMOVES_WITH_OPTION =
  /\brm(?:dir)?(?:Sync\b|\s{0,9}\(|`?\s{0,9}[\]}:]|\?\.|\.(?:call|apply|bind)\b)|\bDeno\b[^;]{0,20}\bremove|\bremove(?:Sync)?\b[^;]{0,20}\bDeno/;
/** R deletes a folder by an argument of `unlink`, whose name may be cut short, and may give the function another name. */
const REMOVES_IN_R =
  /\bunlink\s{0,9}\([^;]{0,300}(?:[(,]\s{0,9}r\w{0,8}\s{0,9}=(?![>=]|\s{0,9}(?:F(?:ALSE)?\b|0))|,\s{0,9}(?:T(?:RUE)?\b|1\s{0,9}\)|!0))|\bunlink\b[^;]{0,300};?[^;]{0,300}\brecursive\s{0,9}=\s{0,9}(?:T|1|!0)|\bdir_(?:delete|ls)\b|\bfile\.remove\s{0,9}\(\s{0,9}dir\s{0,9}\(/;
const IS_RECURSIVE = /\brecursive\b|\\(?:x|u)/;
/** Functions of several languages that list a folder or get a list from elsewhere; with a function that deletes one file. */
const LISTS =
  /\b(?:walk|fwalk|scandir|listdir|list\.(?:files|dirs)|r?glob|iterdir|readdir(?:Sync)?|opendir|DirectoryIterator|WalkDir|read_dir|each_child|children|entries|stdin)\b|\bDir\s{0,9}[.[]|\bFind\b/i;
/** One of these is in any such name. Most texts have none. */
const MAY_REMOVE = /rm|remove|del|unlink|empty|cleandir|move|mv|rename|replace/i;
const removesFolders = (text: string): boolean =>
  MAY_REMOVE.test(text) &&
  (REMOVES_FOLDERS.test(text) ||
    REMOVES_IN_R.test(text) ||
    (text.includes("fs-extra") && /\bremove\b/.test(text)) ||
    (REMOVES_WITH_OPTION.test(text) && IS_RECURSIVE.test(text)) ||
    (REMOVES_FILE.test(text) && LISTS.test(text)));

/** A function that deletes one file, with its name written out. */
const NAME = String.raw`[\s(]{0,9}(?:"[\w ./-]{1,300}"|'[\w ./-]{1,300}')\s{0,9}\)?`;
/** More is joined to the name: it is not all of it. */
const JOINED = String.raw`(?!\s{0,9}(?:\+|\.\.|%))`;
const REMOVES_NAMED = new RegExp(String.raw`(?:${REMOVES_FILE.source})${NAME}${JOINED}|\bPath${NAME}\.unlink\b`, "g");
/** Arguments of the command, what another one prints, or lines of a file. One argument by its number is no list. */
const LISTS_WITH_LOOP =
  /\bargv\b(?!\s{0,9}\[\s{0,9}-?\d+\s{0,9}\])|\b(?:popen|check_output|getoutput|subprocess|(?:exec|spawn)(?:File)?Sync|readlines?|splitlines|readFile(?:Sync)?|fileinput)\b|\b(?:open|split)\s{0,9}\(|\bqx\b|<[^<>\n]{0,300}\*[^<>\n]{0,300}>|<>/i;
const LOOPS = /\b(?:for|foreach|while|until|map|each|filter|grep|reduce)\b/i;
/** Perl and Ruby read their input line by line. */
const READS_LINES = /^-[A-Za-z0-9]*[np]/;
const HAS_GLOB = /^(?!-)[\w./~$+:@-]*[*?][\w./~$*?+:@-]*$/;
/** Whether code deletes files of a list that comes from elsewhere, or those that a pattern among its arguments names. */
function deletesList(words: readonly string[], text: string): boolean {
  if (!REMOVES_FILE.test(text)) return false;
  const unnamed = text.replaceAll(REMOVES_NAMED, " ");
  if (!REMOVES_FILE.test(unnamed)) return false;
  if (words.some((word) => HAS_GLOB.test(word)) || (LISTS_WITH_LOOP.test(unnamed) && LOOPS.test(unnamed)) || deletesInLoop(unnamed))
    return true;
  return words.some((word) => /^(?:perl|ruby)/.test(nameOf(word))) && words.some((word) => READS_LINES.test(word));
}
/** Code that moves a file to a folder that ends with the command. */
const MOVES_AWAY =
  /\b(?:move|rename(?:s|Sync)?|mv|os\s{0,9}\.\s{0,9}replace)\b(?:\s{0,9}\(|[^\n;]{0,300},)\s{0,9}(?:[\w.]{1,40}\(\s{0,9})?f?["'`]?\/(?:dev\/(?!null\b|std|tty|fd\b|zero\b|u?random\b)|(?:run|proc|var\/(?:run|tmp))\b)/;
