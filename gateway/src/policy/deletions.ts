/**
 * Commands that delete many files, or may (rule PO13). PURE. It reads a text and knows no file system: what cannot be counted counts as many.
 * It is no protection against a program that deletes by itself, only against commands whose names say that they delete.
 */
import { readShell } from "./shell.ts";
import { runsAnother } from "./wrappers.ts";

/** Files that a command may delete without a question. */
export const MAX_DELETED = 50;
/** Commands in commands: `sh -c "sh -c ..."`. Deeper ones count as many. */
const MAX_DEPTH = 4;
/** Words of a command that runs another one. */
const MAX_WORDS = 2000;

/** `many`: more than `MAX_DELETED` files, or it cannot be told. */
export type Deletion = "few" | "many";

/** What a text for a shell deletes at most, as far as its words tell. */
export function deletionOf(given: string, depth = 0): Deletion {
  if (depth > MAX_DEPTH) return "many";
  // The command may set the variable, and a program that runs another one may give it other variables.
  const named = depth > 0 || SETS_TMPDIR.test(given) ? given.replaceAll(TMPDIR, "$UNKNOWN") : given;
  const text = makesLinks(named) ? named.replaceAll(TEMPORARY, "/linked/") : named;
  const read = readShell(text);
  const commands = read.kind === "plain" ? read.commands.map(({ words }) => words) : roughCommands(text);
  let count = 0;
  for (const words of commands) {
    for (const part of partsOf(words, depth)) {
      if (part === "many") return "many";
      count += part;
    }
  }
  return count > MAX_DELETED ? "many" : "few";
}

const TMPDIR = /\$TMPDIR\b|\$\{TMPDIR\}/g;
const SETS_TMPDIR = /(?<!\$|\$\{)TMPDIR/;

/** Programs after which a path in a temporary folder may lead out of it. */
const LINKERS: ReadonlySet<string> = new Set(["ln", "gln", "link", "mount", "bindfs"]);
const TEMPORARY = /(?:\/var)?\/tmp\/|\$(?:TMPDIR|\{TMPDIR\})\//g;
/** Whether a text names such a program, or the function of that name in a script. */
const makesLinks = (text: string): boolean =>
  /symlink/i.test(text) ||
  text
    .replaceAll(/["'\\]/g, "")
    .split(/[\s;&|(){}`]+/)
    .some((word) => LINKERS.has(nameOf(word)) && !isTemporary(word));

/** Whether one command deletes many files, or may. */
export function deletesMany(words: readonly string[]): boolean {
  let named = 0;
  for (const part of partsOf(words, 0)) {
    if (part === "many") return true;
    named += part;
  }
  return named > MAX_DELETED;
}

/** Files that each part of a command names for deletion. */
function partsOf(words: readonly string[], depth: number): readonly (number | "many")[] {
  if (!runsAnother(words)) return [countOf(words)];
  if (words.length > MAX_WORDS) return ["many"];
  // The other command is one of the words, or begins at one of them.
  const inner = words.slice(1).filter((word) => /\s/.test(word));
  if (inner.some((word) => deletionOf(word, depth + 1) === "many")) return ["many"];
  return nameOf(words[0]) === "git" ? [countOf(words)] : words.map((_, at) => countOf(words.slice(at)));
}

/** The text of a complex command, cut where another command may begin. Quotes and backslashes are left out: any of them may be a spelling. */
function roughCommands(text: string): readonly (readonly string[])[] {
  return text
    .replaceAll(/\\\n/g, " ")
    .replaceAll(/["'\\]/g, "")
    .split(/[;&|\n\r()`]|(?<!\$)\{(?=\s)/)
    .map((part) => part.split(/\s+/).filter((word) => word !== ""))
    .map((words) => words.slice(words.findIndex((word) => !isBefore(word))))
    .filter((words) => words.length > 0);
}
/** Words of the shell that come before a command. */
const isBefore = (word: string): boolean => BEFORE.has(word) || /^[A-Za-z_]\w*\+?=/.test(word);
const BEFORE: ReadonlySet<string> = new Set([
  "then",
  "do",
  "else",
  "if",
  "elif",
  "while",
  "until",
  "!",
  "{",
  "time",
  "coproc",
  "eval",
  "builtin",
  "trap",
  "noglob",
  "$",
]);

const nameOf = (program = ""): string => program.slice(program.lastIndexOf("/") + 1).toLowerCase();

/** How many files a command names for deletion, without those in temporary folders. */
function countOf([program, ...args]: readonly string[]): number | "many" {
  switch (nameOf(program)) {
    case "rm":
    case "grm":
    case "srm":
      return removed(args, (option) => /^-[A-Za-z]*[rR]|^--r/.test(option));
    case "unlink":
    case "shred":
      return removed(args);
    case "rimraf":
      return removed(["-r", ...args], () => true);
    case "find":
    case "gfind":
      // `-follow` leads through links, as `-L` does, after which there is no root.
      return args.includes("-delete") && (args.includes("-follow") || !areTemporary(rootsOf(args))) ? "many" : 0;
    case "git":
      return byGit(args);
    case "rsync":
      return args.some((arg) => /^--(?:del|remove-s)/.test(arg)) ? "many" : 0;
    case "tar":
      return args.some((arg) => arg.startsWith("--rem")) ? "many" : 0;
    default:
      return 0;
  }
}

function removed(args: readonly string[], isRecursive: (option: string) => boolean = () => false): number | "many" {
  const end = args.indexOf("--");
  const before = end < 0 ? args : args.slice(0, end);
  const options = before.filter((arg) => arg.startsWith("-"));
  // After a name it is another name, for some.
  if (args[0] === "--help" || args[0] === "--version") return 0;
  const paths = [...before.filter((arg) => !arg.startsWith("-")), ...(end < 0 ? [] : args.slice(end + 1))];
  // Its paths come from elsewhere, as in `xargs rm`.
  if (paths.length === 0) return "many";
  const lasting = paths.filter((path) => !isTemporary(path));
  if (lasting.length > 0 && options.some(isRecursive)) return "many";
  return lasting.some((path) => UNNAMED.test(path)) ? "many" : lasting.length;
}
/** What the shell makes out of such a word is not known. */
const UNNAMED = /[*?[\]{}$]/;

const rootsOf = (args: readonly string[]): readonly string[] => {
  const end = args.findIndex((arg) => /^[-(!]/.test(arg));
  return end === -1 ? args : args.slice(0, end);
};
const areTemporary = (paths: readonly string[]): boolean => paths.length > 0 && paths.every(isTemporary);
/** Inside a folder for temporary files, as the path is written. No shell makes `..` of a part of it. */
const isTemporary = (path: string): boolean =>
  !path.slice(2).includes("{") &&
  !path.split("/").some((part) => /^\..*[?*[]/.test(part)) &&
  /^(?:\/private)?\/(?:var\/)?tmp\/[^/$]|^\$(?:TMPDIR|\{TMPDIR\})\/[^/$]/.test(path) &&
  !path.split("/").includes("..") &&
  !path.slice(1).includes("$");

/** Options of git itself that take the next word. */
const GIT_VALUE: ReadonlySet<string> = new Set(["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"]);
function byGit(args: readonly string[]): number | "many" {
  let at = 0;
  while (args[at]?.startsWith("-") === true) at += GIT_VALUE.has(args[at] ?? "") ? 2 : 1;
  const [subcommand, ...rest] = args.slice(at);
  if (subcommand === "clean") return only(rest, /^--dr/) ? 0 : "many";
  if (subcommand !== "rm") return 0;
  return only(rest, /^--(?:dr|ca)/) ? 0 : removed(rest, (option) => /^-[a-zA-Z]*r/.test(option));
}
/** Whether git only shows what it would do (`-n`), or what a long option says. `-e` and `--exclude` take the next text; `--no-` takes back. */
function only(args: readonly string[], long: RegExp): boolean {
  let is = false;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (arg === "--") break;
    if (arg.startsWith("--no-")) return false;
    const value = arg.indexOf("e");
    if (arg.startsWith("--")) is ||= long.test(arg);
    else if (arg.startsWith("-")) is ||= (value < 0 ? arg : arg.slice(0, value)).includes("n");
    if (/^--exc[a-z]*$/.test(arg) || (/^-[^-]/.test(arg) && value === arg.length - 1)) at++;
  }
  return is;
}
