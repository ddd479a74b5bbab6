/**
 * Subcommands and options that the shell expands (rule PO13). PURE. A program of several modes deletes with some of them, and a word that is expanded
 * by the shell may be one of those: `git $X`, `find src -d{elete,}`.
 */
import type { ReadCommand } from "./command-words.ts";
import { GIT_VALUE } from "./deleters.ts";
import { EXPANSION } from "./prefixed-programs.ts";
import { runsAnother, nameOf } from "../wrappers.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));
/** Delete with an option or a subcommand only. */
const OF_MODES = words(
  "git find gfind bfs rsync tar gtar bsdtar star cmake zip 7z 7za 7zr 7zz rar rclone aws gsutil hg svn bzr fossil zstd gio lha",
);
/** Subcommands of git that delete with an option or another subcommand only. */
const OF_GIT = words(
  "clean rm worktree stash reset checkout switch restore checkout-index read-tree sparse-checkout submodule update-ref gc reflog repack",
);
/** Those that delete by their own first word, which an expansion in quotes may be. */
const BY_FIRST_WORD = words("stash worktree submodule reflog");

/** Whether a command of a program of several modes has a mode that the shell makes. */
export function hasExpandedMode({ words, options }: ReadCommand, isGiven: (name: string) => boolean): boolean {
  if (!options.includes(true) && !words.some((word) => EXPANSION.test(word))) return false;
  const hasAnother = runsAnother(words);
  return words.some(
    (word, at) => (at === 0 || hasAnother) && OF_MODES.has(nameOf(word)) && isModeMade(nameOf(word), words, options, at + 1, isGiven),
  );
}
function isModeMade(
  name: string,
  given: readonly string[],
  options: readonly boolean[],
  from: number,
  isGiven: (name: string) => boolean,
): boolean {
  if (name === "cmake") {
    const mode = given.indexOf("-E", from);
    return options[from] === true || (mode !== -1 && EXPANSION.test(given[mode + 1] ?? ""));
  }
  let at = from;
  if (name === "git") {
    while (given[at]?.startsWith("-") === true && options[at] !== true) at += GIT_VALUE.has(given[at] ?? "") ? 2 : 1;
    const subcommand = given[at] ?? "";
    if (options[at] === true || EXPANSION.test(subcommand)) return true;
    if (!OF_GIT.has(subcommand)) return false;
    if (BY_FIRST_WORD.has(subcommand) && (options[at + 1] === true || EXPANSION.test(given[at + 1] ?? ""))) return true;
    // Its other words name what is shown.
    if (subcommand === "reflog" && !/^(?:expire|delete|drop)$/.test(given[at + 1] ?? "")) return false;
  }
  return options.some((isExpanded, place) => isExpanded && place >= at && !isOperand(name, given, at, place, isGiven));
}
/** Words that are variables as they are, also with plain characters. */
const OF_VARIABLES = /^\$\{(\w{1,60})\}(?:[\w./-]|\$\{\w{1,60}\}){0,60}$/;
const NAMES = /\$\{(\w{1,60})\}/g;
/** Whether a word that begins with a variable is no option: a path, a file or folder of its program, a branch of git. */
function isOperand(name: string, given: readonly string[], from: number, place: number, isGiven: (name: string) => boolean): boolean {
  const word = given[place] ?? "";
  if (!OF_VARIABLES.test(word) || ![...word.matchAll(NAMES)].every(([, of = ""]) => isGiven(of))) return false;
  if (/\}[./]/.test(word)) return true;
  if (FINDS.has(name)) return given.slice(from, place).every((other) => /^-[HLP]$/.test(other));
  if (TARS.has(name)) return /^-?[A-Za-z]*[fC]$/.test(given[place - 1] ?? "");
  return name === "git" && /^(?:switch|checkout)$/.test(given[from] ?? "") && given.length === place + 1 && place === from + 1;
}
const FINDS = words("find gfind bfs");
const TARS = words("tar gtar bsdtar");
