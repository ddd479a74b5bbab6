/**
 * Texts that only write, change and show files (rule PO13). PURE. They hold lines of a script that is not run: `rm -rf dist` in a
 * here-document, in a replacement of sed, in the name of a test. Such a text deletes nothing. In doubt it is no such text.
 */
import { isOrdinaryInside } from "../paths.ts";
import { readShell } from "../shell.ts";
import { runsAnother } from "../wrappers.ts";

const words = (text: string): ReadonlySet<string> => new Set(text.split(" "));
/** Neither delete nor run anything, whatever their arguments are. */
const COMPANIONS = words("cat chmod ls echo printf mkdir wc head tail grep egrep fgrep true pwd touch tee cd");
/** Those that change no file either. */
const SHOW = words("cat ls echo printf wc head tail grep egrep fgrep true pwd cd");
const GIT = words("add status diff");
/** Modules of Python whose arguments hold no code. */
const CHECKS = words("pytest unittest");
/** Options of these modules that take commands from the input, start an interpreter or delete a folder. */
const MORE_THAN_CHECKS = /^--(?:p[dx]|tr|usep|tx|rsync|bas)|^-o|^--ov/;

const PATH = String.raw`([\w.\/-]{1,300})`;
/** What stands before and after the beginning of a here-document that goes into a file. */
const BEFORE = new RegExp(String.raw`^(?:cat(?:[ \t]*>{1,2}[ \t]*${PATH})?|tee(?:[ \t]+-a)?[ \t]+${PATH}(?:[ \t]*>[ \t]?\/dev\/null)?)$`);
const DOCUMENT = /^<<(-?)[ \t]?(?:'([A-Za-z_]\w{0,40})'|"([A-Za-z_]\w{0,40})"|([A-Za-z_]\w{0,40}))(?=[ \t>;&]|$)/;
const AFTER = new RegExp(String.raw`^[ \t]*(?:>{1,2}[ \t]*${PATH}[ \t]*)?(?:(?:&&|;)(.*))?$`);

/** What the commands of a text do. */
interface Seen {
  changes: boolean;
  checks: boolean;
  goes: boolean;
  git: boolean;
}
export function onlyEdits(text: string): boolean {
  const seen: Seen = { changes: false, checks: false, goes: false, git: false };
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    if (line.trim() === "") continue;
    const written = writtenBy(line);
    if (written === undefined) {
      if (!areEdits(line, seen)) return false;
      continue;
    }
    let end = at + 1;
    while (end < lines.length && (written.isIndented ? lines[end]?.replace(/^\t+/, "") : lines[end]) !== written.end) end++;
    if (end === lines.length || !isOrdinaryFile(written.path) || !written.around.every((part) => areEdits(part, seen))) return false;
    if (!written.isQuoted && lines.slice(at + 1, end).some((other) => /[$`\\]/.test(other))) return false;
    seen.changes = true;
    at = end;
  }
  // A check may run a written file. In another folder the names say less.
  return !(seen.checks && seen.changes) && !(seen.git && seen.goes);
}
interface Written {
  readonly path: string;
  readonly end: string;
  readonly isIndented: boolean;
  readonly isQuoted: boolean;
  readonly around: readonly string[];
}
function writtenBy(line: string): Written | undefined {
  const at = line.indexOf("<<");
  const found = DOCUMENT.exec(line.slice(at));
  if (at === -1 || found === null) return undefined;
  const begin = line.slice(0, at);
  // The end of the commands before it.
  const cut = Math.max(begin.lastIndexOf(";"), begin.lastIndexOf("&&") + 1);
  const command = BEFORE.exec(begin.slice(cut === 0 ? 0 : cut + 1).trim());
  const after = AFTER.exec(line.slice(at + found[0].length));
  if (command === null || after === null) return undefined;
  const [, dash, single, double, bare] = found;
  const paths = [command[1], command[2], after[1]].filter((path) => path !== undefined && path !== "/dev/null");
  const [path] = paths;
  if (path === undefined || paths.length > 1) return undefined;
  const around = [begin.slice(0, Math.max(cut, 0)).replace(/&$/, ""), after[2] ?? ""].filter((part) => part.trim() !== "");
  return { path, end: single ?? double ?? bare ?? "", isIndented: dash === "-", isQuoted: bare === undefined, around };
}
/** A file in the workspace or directly in the folder for temporary files, which makes no other program run something. */
const isOrdinaryFile = (path: string): boolean => isOrdinaryInside(path.replace(/^\/tmp\/(?=[^/]+$)/, "")) && !path.endsWith("/");

function areEdits(line: string, seen: Seen): boolean {
  const read = readShell(line);
  if (read.kind !== "plain") return false;
  return read.commands.every(({ words: command, start }) => {
    // Its input may be commands for a debugger.
    const isFed = line.slice(0, start).trimEnd().endsWith("|");
    return isEdit(command, seen) && !(isFed && command[1] === "-m");
  });
}
function isEdit(command: readonly string[], seen: Seen): boolean {
  const [program = "", first = ""] = command;
  if (program === "sed") {
    const files = filesOfSed(command.slice(1));
    seen.changes ||= command.some((word) => word.startsWith("-") && word.includes("i"));
    return files?.every(isOrdinaryFile) === true;
  }
  if (/^python3?$/.test(program) && first === "-m" && CHECKS.has(command[2] ?? "")) {
    seen.checks = true;
    return !command.some((word) => MORE_THAN_CHECKS.test(word));
  }
  if (runsAnother(command)) return false;
  if (program === "git") seen.git = true;
  if (program === "cd") seen.goes = true;
  if (!SHOW.has(program)) seen.changes ||= program !== "git";
  if (program === "tee") return command.slice(1).every((word) => word === "-a" || isOrdinaryFile(word));
  return program === "git" ? GIT.has(first) : COMPANIONS.has(program);
}

/** The files of a command of sed whose scripts only replace, print and leave out. Undefined: it may do more. */
function filesOfSed(args: readonly string[]): readonly string[] | undefined {
  const scripts: string[] = [];
  const operands: string[] = [];
  let isGiven = false;
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (/^-[nErsz]*e$/.test(arg)) {
      isGiven = true;
      scripts.push(args[++at] ?? "");
    } else if (arg.startsWith("-")) {
      if (!/^-[nErsz]*(?:i(?:\.\w+)?)?$/.test(arg) || arg === "-") return undefined;
    } else operands.push(arg);
  }
  if (!isGiven) scripts.push(operands.shift() ?? "");
  return scripts.every(isPlainScript) ? operands : undefined;
}
const MAX_SCRIPT = 1000;
const ADDRESS = /^(?:\d+|\$|\/(?:[^/\\[\n]|\\[^\n])*\/)/;
/** A script of sed that writes and runs nothing beside its own lines. */
function isPlainScript(script: string): boolean {
  let rest = script.trim();
  if (rest === "" || rest.length > MAX_SCRIPT || rest.includes("\n")) return false;
  while (rest !== "") {
    rest = rest.replace(ADDRESS, "").replace(/^,/, " ").replace(/^ /, "");
    rest = rest.replace(ADDRESS, "").replace(/^ *!? */, "");
    const after = rest.startsWith("s") ? afterReplacement(rest) : /^[pdPDnNgGhHx=q]/.test(rest) ? rest.slice(1) : undefined;
    const next = after === undefined ? undefined : /^ *(?:;[ ;]*|$)/.exec(after)?.[0];
    if (after === undefined || next === undefined) return false;
    rest = after.slice(next.length);
  }
  return true;
}
/** What follows `s/a/b/flags`. With a bracket programs disagree about where it ends. */
function afterReplacement(text: string): string | undefined {
  const delimiter = text.charAt(1);
  if (!/[/|#,:@!%~]/.test(delimiter)) return undefined;
  let at = 2;
  for (let part = 0; part < 2; part++) {
    for (; text.charAt(at) !== delimiter; at++) {
      if (at >= text.length || text.charAt(at) === "[") return undefined;
      if (text.charAt(at) === "\\") at++;
    }
    at++;
  }
  return text.slice(at).replace(/^[gpIi\d]*/, "");
}
