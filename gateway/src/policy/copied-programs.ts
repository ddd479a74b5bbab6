/** Commands that copy or link the file of a program that deletes: under another name it deletes as well (rule PO13). PURE. */
import { type Commands, nameOf } from "./deleters.ts";
import { LINKERS, MOVERS } from "./moved-files.ts";
import { withoutQuotes } from "./quotes.ts";

const COPIES: ReadonlySet<string> = new Set("cp gcp mv ln install link cat dd alias hash".split(" "));
/** The file of such a program. */
const PROGRAM = /\/s?bin\/(?:rm|unlink|shred|find|git|rsync|busybox|toybox)$/;
/** Copies or links the file of a program that a substitution finds. */
const COPIES_FOUND = /\b(?:g?cp|g?mv|ln|link|install)\s[^;|&\n]{0,1000}(?:\$\(|`)\s{0,9}(?:which|whereis|type|command|hash)\b/;
/** Goes to a folder. Nothing here is read twice, because a text may have many of them. */
const GOES = /(?:\b(?:cd|pushd|chdir)|\s-C|\s--chdir[= ])\s*(?:-[A-Za-z-]+\s+)*(?=([^\s;&|]{0,300}))/g;
/** A folder of programs, or one whose name the shell makes. */
const isOfPrograms = (folder: string): boolean => folder.length === 300 || /(?:^|\/)s?bin\/?(?:\)|$)|[$*?[`{~]/.test(folder);
const NAMES_PROGRAM: ReadonlySet<string> = new Set("rm unlink shred find git rsync busybox toybox".split(" "));
/** Whether a command of the text copies such a program, or may. */
export const copiesDeleter = (text: string, rough: Commands): boolean => COPIES_FOUND.test(text) || copiesNamed(text, rough);
/** Whether this command copies one by its path. */
export const copiesByPath = ([program, ...args]: readonly string[]): boolean =>
  COPIES.has(nameOf(program)) && args.some((word) => PROGRAM.test(word));
/** Copies or links such a program by its bare name, so that another name deletes: `cd /bin; cp rm ~/q`. */
function copiesNamed(text: string, rough: Commands): boolean {
  const plain = withoutQuotes(text);
  const goes = [...plain.matchAll(GOES)].some(([, folder = ""]) => isOfPrograms(folder));
  if (!goes && !/\b(?:rm|unlink|shred)\b/.test(plain)) return false;
  return rough.some((words) => {
    const at = words.findIndex((word) => isCopier(nameOf(word)));
    const operands = at === -1 ? [] : words.slice(at + 1).filter((word) => !word.startsWith("-"));
    if (goes) return operands.some((word) => NAMES_PROGRAM.has(nameOf(word)) || /[*?[{$`]/.test(word));
    const isLasting = COPIES_AS.has(nameOf(words[at])) && operands.length > 1;
    return isLasting && operands.slice(0, -1).some((word) => /^(?:\.\/)?(?:rm|unlink|shred)$/.test(word));
  });
}
const isCopier = (name: string): boolean => name !== "git" && (COPIES.has(name) || MOVERS.has(name) || LINKERS.has(name));
const NAMES_COPIER = new RegExp(`(?<!\\w)(?:${[...COPIES, ...MOVERS, ...LINKERS].join("|")})(?!\\w)`);
/** Whether any of these names is where a word of the text may begin, as it is written or without quotes. Most commands have none. */
export function mayBring(text: string): boolean {
  const folded = text.toLowerCase();
  return NAMES_COPIER.test(folded) || NAMES_COPIER.test(withoutQuotes(folded));
}
const COPIES_AS: ReadonlySet<string> = new Set("cp gcp mv gmv ln gln install link".split(" "));
