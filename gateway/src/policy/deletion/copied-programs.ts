/** Commands that copy or link the file of a program that deletes: under another name it deletes as well (rule PO13). PURE. */
import { nameOf } from "../wrappers.ts";
import type { Commands } from "./reading.ts";
import { arePlainFiles } from "./file-names.ts";
import { givenVariables } from "./given-variables.ts";
import { LINKERS, MOVERS } from "./moved-files.ts";
import { withoutQuotes } from "../quotes.ts";

const COPIES: ReadonlySet<string> = new Set("cp gcp mv ln install link cat dd alias hash strip objcopy".split(" "));
const NAMES_PROGRAM: ReadonlySet<string> = new Set("rm unlink shred find git rsync busybox toybox".split(" "));
const NAMES = [...NAMES_PROGRAM].join("|");
/** The file of such a program, also in a folder whose name the shell makes. */
const PROGRAM = new RegExp(`\\/s?bin\\/(?:${NAMES})$|[$*?[{\`][^\\s]{0,300}\\/(?:${NAMES})$`);
/** A name that the shell makes in a folder of programs. */
const MADE_PROGRAM = /(?:^|\/)s?bin\/[^/]{0,300}[$*?[{`]/;
/** A folder of the workspace or of the home folder has other programs. */
const OWN_FOLDER = /^(?:~|\$HOME|\$\{HOME\}|\$PWD|\$\{PWD\}|\/home|\/Users)\/|^(?!\/)[\w.-]/;
const isFile = (given: string): boolean => {
  const path = given.replace(/^[a-z]{2}=/, "");
  return PROGRAM.test(path) || (MADE_PROGRAM.test(path) && (!OWN_FOLDER.test(path) || path.includes("..")));
};
/** The file is the input of a command, or the shell gets another table of programs. */
const BY_INPUT = /<\s{0,9}\/(?:usr\/(?:local\/)?)?s?bin\/|BASH_(?:CMDS|ALIASES)/;
/** Whether a text names such a program in another way than as an operand. */
export const givesName = (text: string): boolean =>
  (text.includes("bin/") || text.includes("BASH")) && (BY_INPUT.test(withoutQuotes(text)) || BY_CODE.test(text));
/** Code copies, links or reads the file. */
const BY_CODE = new RegExp(
  String.raw`\b(?:copy\w{0,20}|cp|link|symlink\w{0,10}|rename\w{0,10}|move|open|read_?[Ff]ile\w{0,10}|Path)\s{0,9}\(?\s{0,9}\\?["'\`]\/(?:usr\/(?:local\/)?)?s?bin\/(?:${NAMES})\\?["'\`]`,
);
/** Copies or links the file of a program that a substitution finds. */
const COPIES_FOUND = /\b(?:g?cp|g?mv|ln|link|install)\s[^;|&\n]{0,1000}(?:\$\(|`)\s{0,9}(?:which|whereis|type|command|hash)\b/;
/** Goes to a folder. Nothing here is read twice, because a text may have many of them. */
const GOES = /(?:\b(?:cd|pushd|chdir)|\s-C|\s--chdir[= ])\s*(?:-[A-Za-z-]+\s+)*(?=([^\s;&|]{0,300}))/g;
const BIN_OR_MADE = /(?:^|\/)s?bin\/?(?:\)|$)|[$*?[`{~]/;
/** A variable as it is, and the home folder. */
const VARIABLE = /\$(?:([A-Za-z_]\w{0,60})|\{([A-Za-z_]\w{0,60})\})|^~(?=\/|$)/g;
/** A folder of programs, or one whose name the shell makes. A variable that comes from outside the text names none by itself. */
function isOfPrograms(folder: string, isGiven: (name: string) => boolean): boolean {
  if (folder.length === 300) return true;
  if (!BIN_OR_MADE.test(folder)) return false;
  let isKnown = true;
  // It may be empty.
  const [empty, filled] = ["", "x"].map((value) =>
    folder.replaceAll(VARIABLE, (_, bare?: string, braced?: string) => {
      isKnown &&= isGiven(bare ?? braced ?? "HOME");
      return value;
    }),
  );
  return !isKnown || BIN_OR_MADE.test(empty ?? "") || BIN_OR_MADE.test(filled ?? "");
}
/** Whether a command of the text copies such a program, or may. */
export const copiesDeleter = (text: string, commands: Commands): boolean => COPIES_FOUND.test(text) || copiesNamed(text, commands);
/** Whether this command, or one that it runs, copies one by its path. What is only made in a target is not copied. */
export function copiesByPath(words: readonly string[], runsAnother: boolean): boolean {
  const at = runsAnother ? words.findIndex((word) => isCopier(nameOf(word))) : 0;
  if (at === -1 || !isCopier(nameOf(words[at]))) return false;
  const operands = words.slice(at + 1).filter((word) => !word.startsWith("-"));
  const hasTarget = operands.length > 1 && COPIES_AS.has(nameOf(words[at])) && !words.some((word) => /^-[A-Za-z]*t|^--t/.test(word));
  return (hasTarget ? operands.slice(0, -1) : operands).some(isFile);
}
/** Copies or links such a program by its bare name, so that another name deletes: `cd /bin; cp rm ~/q`. */
function copiesNamed(text: string, commands: Commands): boolean {
  const plain = withoutQuotes(text);
  const isGiven = givenVariables(text);
  const goes = [...plain.matchAll(GOES)].some(([, folder = ""]) => isOfPrograms(folder, isGiven));
  if (!goes && !/\b(?:rm|unlink|shred)\b/.test(plain)) return false;
  return commands.some((words) => {
    const at = words.findIndex((word) => isCopier(nameOf(word)));
    const operands = at === -1 ? [] : words.slice(at + 1).filter((word) => !word.startsWith("-"));
    if (goes) return operands.some((word) => NAMES_PROGRAM.has(nameOf(word)) || (/[*?[{$`]/.test(word) && !arePlainFiles(word)));
    const isLasting = COPIES_AS.has(nameOf(words[at])) && operands.length > 1;
    return isLasting && operands.slice(0, -1).some((word) => /^(?:\.\/)?(?:rm|unlink|shred)$/.test(word));
  });
}
const isCopier = (name: string): boolean => name !== "git" && (COPIES.has(name) || MOVERS.has(name) || LINKERS.has(name));
const NAMES_COPIER = new RegExp(`(?<!\\w)(?:${[...COPIES, ...MOVERS, ...LINKERS].join("|")})(?!\\w)`);
/** Whether any of these names is where a word of the text may begin, as it is written or without quotes. Most commands have none. */
export function mayCopyOrMove(text: string): boolean {
  const folded = text.toLowerCase();
  return NAMES_COPIER.test(folded) || NAMES_COPIER.test(withoutQuotes(folded));
}
const COPIES_AS: ReadonlySet<string> = new Set("cp gcp mv gmv ln gln install link".split(" "));
