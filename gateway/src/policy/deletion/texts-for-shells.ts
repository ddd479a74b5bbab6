/**
 * Texts in the arguments of known programs that are given to a shell, and whether that shell forms a program's name by expansion: `system("/bin/r? -rf d")`
 * (rule PO13). PURE. A program that is written out is found elsewhere.
 */
import { nameOf } from "../wrappers.ts";
import { readCommands } from "./command-words.ts";
import { runsExpanded } from "./prefixed-programs.ts";
import type { ReadingSteps } from "./reading-steps.ts";

/** Most texts have none of them. */
const MAY_MAKE = /[$`*?[{]/;
/** Whether the shell makes a program in a text that it gets. */
export function makesProgram(text: string, steps: ReadingSteps): boolean {
  if (!MAY_MAKE.test(text)) return false;
  if (steps.takesTooLong(1 + text.length / 10)) return true;
  return readCommands(text).commands.some(({ words, isUnknown }) => (isUnknown && words[0] !== "[") || runsExpanded(words));
}

/** `inWord`: the text is the rest of such a word. `behind`: it is the word behind one. `rest`: it is all words behind one. */
interface TextPositions {
  readonly inWord?: RegExp;
  readonly behind?: RegExp;
  readonly rest?: RegExp;
}
const SETTING =
  /^(?:core\.(?:pager|editor|fsmonitor|sshcommand|askpass|gitproxy)|sequence\.editor|(?:diff|difftool|merge|mergetool|filter|pager|interactive|credential|gpg|trailer|browser|man)\.\S+?)=!?/i;
const POSITIONS: ReadonlyMap<string, TextPositions> = new Map(
  (
    [
      ["split gsplit", { inWord: /^--f[a-z]*=/ }],
      [
        "tar gtar bsdtar",
        {
          inWord: /^(?:--(?:to-|us|checkpoint-|inf|new-|rs)[a-z-]*=(?:exec=)?|-[A-Za-z]*[IF](?=.))/,
          behind: /^(?:--(?:to-|us|checkpoint-|inf|new-|rs)[a-z-]*|-[A-Za-z]*[IF])$/,
        },
      ],
      ["zip", { inWord: /^(?:-TT|--un[a-z-]*=)/, behind: /^(?:-TT|--un[a-z-]*)$/ }],
      [
        "git",
        {
          inWord: /^--(?:exec|extcmd)=/,
          behind: /^(?:-x|--exec|--extcmd|--(?:env|tree|index|parent|msg|commit|tag-name)-filter)$/,
          rest: /^(?:foreach|run)$/,
        },
      ],
      ["vi vim nvim ex view rvim vimdiff", { inWord: /^\+?:?(?:sil[a-z]*!?\s{1,9})?[%\d,$.]{0,9}!/ }],
      ["ed", { inWord: /^[%\d,$.]{0,9}!/ }],
      ["sqlite3", { inWord: /^\s*\.(?:sh[a-z]*|sy[a-z]*|o[a-z]*\s{1,9}\|)\s*/ }],
      ["gdb lldb", { inWord: /^(?:shell|!|platform shell|pi[a-z]*\s[^|]{0,100}\|)\s*/ }],
      ["npm npx", { inWord: /^--call=/, behind: /^(?:-c|--call)$/ }],
      ["nodemon watchexec", { inWord: /^(?:--exec=|(?=\S+\s))/, behind: /^(?:-x|--exec)$/ }],
    ] satisfies [string, TextPositions][]
  ).flatMap(([names, positions]) => names.split(" ").map((name): [string, TextPositions] => [name, positions])),
);
/** The texts of such a program, also when other programs run it. */
function textsIn(words: readonly string[]): readonly string[] {
  const begin = words.findIndex((word) => POSITIONS.has(nameOf(word)));
  const positions = POSITIONS.get(nameOf(words[begin]));
  if (positions === undefined) return [];
  const found: string[] = [];
  for (let at = begin + 1; at < words.length; at++) {
    const word = words[at] ?? "";
    const before = words[at - 1] ?? "";
    const start = positions.inWord?.exec(word)?.[0] ?? (before === "-c" && begin !== -1 ? SETTING.exec(word)?.[0] : undefined);
    if (start !== undefined) found.push(word.slice(start.length));
    if (positions.behind?.test(before)) found.push(word.replace(/^exec=/, ""));
    if (positions.rest?.test(before)) {
      found.push(words.slice(at).join(" "));
      break;
    }
  }
  return found;
}

/** A function of a common language that gives a text to a shell, with the text written out. */
const CALLS =
  /\b(?:system|popen\d?|exec(?:Sync)?|spawn(?:Sync)?|getoutput|getstatusoutput|check_output|check_call|run|call|Popen|shell_exec|passthru|proc_open|capture2e?|qx)\s{0,9}\(?\s{0,9}(?:q[qx]?\s?\(([^)]{0,1000})\)|q?[qx]?\{((?:[^{}]|\{[^{}]{0,100}\}){0,1000})\}|(?:"""|''')([^"']{1,1000})|"((?:[^"\\]|\\.){0,1000})"|'((?:[^'\\]|\\.){0,1000})'|`((?:[^`\\]|\\.){0,1000})`)/g;
/** Texts that Perl, Ruby and PHP run as they stand. */
const RUN = /`([^`]{1,1000})`|%x\s?[({[]([^)}\]]{1,1000})/g;
/** Commands that awk writes to or reads from. */
const PIPES = /\|\s{0,9}"((?:[^"\\]|\\.){1,1000})"|"((?:[^"\\]|\\.){1,1000})"\s{0,9}\|/g;
/** What these languages put into a text in double quotes, and JavaScript into a template. */
const INTERPOLATED = /(?<!\\)[$@](?:\w{1,60}|\{\w{1,60}\})/g;
const OF_TEMPLATE = /(?<!\\)\$\{[^}]{0,300}\}/g;
/** Whether code gives a text to a shell that makes the program there. */
export function callsMade(code: string, program: string, steps: ReadingSteps): boolean {
  if (!MAY_MAKE.test(code)) return false;
  const isInterpolated = /^(?:perl|ruby|php)/.test(program);
  for (const [, round, curly, triple, double, single, template] of code.matchAll(CALLS)) {
    const inDouble = isInterpolated ? double?.replaceAll(INTERPOLATED, "x") : double;
    const text = round ?? curly ?? triple ?? inDouble ?? single ?? template?.replaceAll(OF_TEMPLATE, "x") ?? "";
    if (makesProgram(text.replaceAll(/\\(?=[$`"'])/g, ""), steps)) return true;
  }
  if (isInterpolated) {
    const run = [...code.matchAll(RUN)].map(([, tick, other]) =>
      (tick ?? other ?? "").replaceAll(INTERPOLATED, "x").replaceAll(/#\{[^}]{0,300}\}/g, "x"),
    );
    return run.some((text) => makesProgram(text, steps));
  }
  if (!/^[gmn]?awk$/.test(program)) return false;
  return [...code.matchAll(PIPES)].some(([, to, from]) => makesProgram(to ?? from ?? "", steps));
}
/** Whether a program that reads its commands from its input gets one that gives such a text to a shell: `sqlite3 x <<< ".shell r?"`. */
export const takesMade = (program: string, input: string, steps: ReadingSteps): boolean =>
  callsMade(input, program, steps) ||
  (POSITIONS.has(program) && input.split("\n", 1000).some((line) => textsIn([program, line]).some((text) => makesProgram(text, steps))));
/** Recipes and values of make: two dollars are one of the shell, and what follows one is a variable of make. */
const OF_MAKE = /\$\$|\$(?:\([^()]{0,300}\)|\{[^{}]{0,300}\}|.)/g;
export const makesInMake = (text: string, steps: ReadingSteps): boolean =>
  text.includes("$$") &&
  makesProgram(text.replaceAll(OF_MAKE, (found) => (found === "$$" ? "$" : "x")).replace(/^[\w.-]{1,60}[:+?]?=/, ""), steps);

/** Whether a command gives a text to a shell that makes the program there. */
export function givesMade(words: readonly string[], steps: ReadingSteps): boolean {
  if (textsIn(words).some((text) => makesProgram(text, steps))) return true;
  const program = nameOf(words.find((word) => /^(?:perl|ruby|php|[gmn]?awk)/.test(nameOf(word))) ?? words[0]);
  const hasMake = words.some((word) => /^g?make$/.test(nameOf(word)));
  return words.some((word, at) => at > 0 && (callsMade(word, program, steps) || (hasMake && makesInMake(word, steps))));
}

/** Programs that git and others give to a shell. */
const OF_COMMAND = /^(?:[A-Z_]{0,40}(?:EDITOR|PAGER|VISUAL|BROWSER|ASKPASS)|GIT_(?:SSH_COMMAND|EXTERNAL_DIFF)|LESSOPEN|LESSCLOSE)$/;
/** Whether a value that the text sets is such a text. `value`: as it is written, with its quotes. */
export function setsMade(name: string, value: string, hasMake: boolean, steps: ReadingSteps): boolean {
  if (!MAY_MAKE.test(value)) return false;
  const isOfMake = hasMake && value.includes("$$");
  if (!isOfMake && !OF_COMMAND.test(name)) return false;
  const text = literalOf(value);
  return isOfMake ? makesInMake(text, steps) : makesProgram(text, steps);
}
const QUOTED = /'([^']*)'|"((?:[^"\\]|\\.)*)"/g;
/** What the program gets: outside of single quotes the shell has replaced its variables. */
const literalOf = (value: string): string =>
  value.replaceAll(
    QUOTED,
    (_, single?: string, double?: string) => single ?? (double ?? "").replaceAll(INTERPOLATED, "x").replaceAll("\\$", "$"),
  );
