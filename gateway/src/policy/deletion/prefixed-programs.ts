/**
 * Programs that run the command behind their own options (rule PO13). PURE. It finds where that command begins, and whether the shell, or the
 * input of xargs, makes a part of it.
 */
import { countOf, namesDeleter, subcommandAt } from "./deleters.ts";
import { SHELLS, runsAnother, nameOf } from "../wrappers.ts";

export const PREFIXES: ReadonlySet<string> = new Set(
  (
    "env busybox toybox coreutils command exec builtin nohup nice ionice setsid stdbuf timeout sudo doas xargs watch chronic time strace caffeinate eatmydata " +
    "setarch linux32 linux64 x86_64 i386 i486 i586 i686 uname26 uclampset systemd-inhibit chrt taskset prlimit choom numactl fakeroot unshare setpriv " +
    "flock chroot runuser ssh-agent xvfb-run dbus-run-session unbuffer rlwrap torsocks proxychains tini dumb-init catatonit debconf enosys valgrind faketime parallel"
  ).split(" "),
);
/** Short options that take no word. After any other the next word may be its value. */
const FLAGS: Readonly<Record<string, RegExp>> = {
  command: /^-[pvV]+$/,
  env: /^-[i0v]*$/,
  exec: /^-[cl]+$/,
  setsid: /^-[wcf]+$/,
  sudo: /^-[EnHSisbkAKP]+$/,
  time: /^-[pvaqlh-]+$/,
  xargs: /^-[0rtpxo]+$/,
};
/** The option has its value in the same word. */
const WITH_VALUE = /^--[^=]*=|^-[A-Za-z][^-A-Za-z]/;
const ASSIGNMENT = /^[A-Za-z_]\w*\+?=/;

export const isShellProgram = (program = ""): boolean => SHELLS.has(nameOf(program)) || program === "." || program === "source";

/** The shell makes the word, or the name at its end. */
const LEADS = /^(?:[$`]|<\(|\{\}$)/;
const HOME = /^\$\{?(?:HOME|PWD)\}?\//;
/** A part of a word that the shell replaces. A long brace counts as one. */
export const EXPANSION = /[$`*?[]|\{(?:[^\s}]{0,300}(?:,|\.\.)|[^\s}]{300})/;
export function isExpanded(word = ""): boolean {
  const rest = word.replace(HOME, "");
  // A text with blanks is no name of a program, unless a variable begins it.
  return rest === word && LEADS.test(word) ? true : !/^\[{1,2}$/.test(word) && EXPANSION.test(rest) && !/\s/.test(rest);
}

/** Have an operand before the command: a time, a file, a folder. */
const WITH_OPERAND: ReadonlySet<string> = new Set(["flock", "chroot", "faketime"]);
const hasOperand = ([program, ...args]: readonly string[]): boolean =>
  WITH_OPERAND.has(nameOf(program)) || (nameOf(program) === "timeout" && !args.some((word) => /^\d/.test(word)));
/** Where the command may begin that a prefix runs. There are several places when an option may take the next word. */
function beginningsOf(words: readonly string[]): readonly number[] {
  const name = nameOf(words[0]);
  const flags = Object.hasOwn(FLAGS, name) ? FLAGS[name] : undefined;
  const hasFirst = hasOperand(words);
  const found: number[] = [];
  for (let at = 1; at < words.length; at++) {
    const word = words[at] ?? "";
    if (word.startsWith("-") || ASSIGNMENT.test(word) || /^(?:\d|\{\}$)/.test(word)) continue;
    found.push(at);
    const before = words[at - 1] ?? "";
    const mayBeValue = at > 1 && before.startsWith("-") && before !== "--" && !flags?.test(before) && !WITH_VALUE.test(before);
    if (!mayBeValue && !(hasFirst && found.length === 1)) break;
  }
  return found;
}
const MAX_PREFIXES = 20;
/** Whether the shell makes the program that a prefix runs: `env $X`, `nice r{m,}`. */
export function runsExpanded(words: readonly string[], left = MAX_PREFIXES): boolean {
  if (!PREFIXES.has(nameOf(words[0]))) return false;
  const hasFirst = hasOperand(words);
  return beginningsOf(words).some((at, place) => {
    if (hasFirst && place === 0) return false;
    return isExpanded(words[at]) || (left === 0 ? PREFIXES.has(nameOf(words[at])) : runsExpanded(words.slice(at), left - 1));
  });
}

/** Options of xargs that take the next word. */
const XARGS_VALUE = /^-[aEILnPsdJRS]$/;
/** Show or change what their input names, and delete nothing. Their words are texts. */
const READERS: ReadonlySet<string> = new Set("grep egrep fgrep rg ag sed awk ls cat wc head tail echo printf git jq".split(" "));
/** Delete what they are given. */
const REMOVERS: ReadonlySet<string> = new Set("rm grm srm wipe unlink shred truncate rimraf premove rmrf del del-cli".split(" "));
/** What the input holds. */
const INPUT = "$INPUT";
/** Whether words of its input become a command, or a part of one: `xargs sh`, `xargs -I{} sh -c "{}"`, `xargs rm -f x`. */
export function runsItsInput(words: readonly string[], textsForShell: (words: readonly string[]) => readonly string[]): boolean {
  let at = words.findIndex((word) => nameOf(word) === "xargs") + 1;
  if (at === 0) return false;
  let place: string | undefined;
  for (; words[at]?.startsWith("-") === true; at++) {
    const option = words[at] ?? "";
    const [, given] = /^(?:-[Ii]|--replace=?)(.*)$/s.exec(option) ?? [];
    if (given !== undefined) place = given || (option === "-I" ? words[at + 1] : "{}");
    if (XARGS_VALUE.test(option)) at++;
  }
  const command = words.slice(at);
  const last = command.at(-1);
  if (last !== undefined && (isShellProgram(last) || runsAnother([last]) || (command.length === 1 && namesDeleter(last)))) return true;
  if (place !== undefined && textsForShell(command).some((text) => text.includes(place))) return true;
  return deletesInput(command, place);
}
/** Subcommands of git that an option turns into a deletion. */
const TAKES_MODE: ReadonlySet<string> = new Set("reset stash worktree read-tree checkout-index submodule update-ref gc reflog".split(" "));
/** Whether a word more may make another mode of the program: it finds, or it is git without a subcommand or with such a one. */
function takesMode([program, ...args]: readonly string[]): boolean {
  if (nameOf(program) !== "git") return /^(?:g?find|bfs)$/.test(nameOf(program));
  const subcommand = args[subcommandAt(args)];
  return subcommand === undefined || TAKES_MODE.has(subcommand);
}
/** Whether the words of the input are operands, or options, of a program that deletes. */
function deletesInput(command: readonly string[], place: string | undefined, left = MAX_PREFIXES): boolean {
  const given = place === undefined ? [...command, INPUT] : command.map((word) => word.replaceAll(place, () => INPUT));
  const begin = command.findIndex((word) => READERS.has(nameOf(word)) || namesDeleter(word) || PREFIXES.has(nameOf(word)));
  const name = nameOf(command[begin]);
  if (place === undefined && takesMode(command.slice(begin))) return true;
  if (begin !== -1 && countOf(given.slice(begin), "none") === "many") return true;
  if (begin === 0 && READERS.has(name)) return false;
  if (PREFIXES.has(name) && left > 0) return deletesInput(command.slice(begin + 1), place, left - 1);
  return command.some((word) => REMOVERS.has(nameOf(word)));
}
