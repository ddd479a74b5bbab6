/** Whether a shell reads its commands from its input (rule PO13). PURE. It goes by the words of the command alone and knows no files. */
import { normalPath } from "../paths.ts";
import { SHELLS, nameOf } from "../wrappers.ts";
import { withoutQuotes } from "../quotes.ts";

/** `unsure`: the shell makes the name of the script, which may be that of its input. */
export type ReadsInput = "yes" | "unsure" | "no";

/** Have the options of sh. Others have options with values. */
const LIKE_SH: ReadonlySet<string> = new Set("sh bash rbash dash ash zsh ksh mksh yash osh ysh csh tcsh . source".split(" "));
/** Long options of those that take the next word. */
const TAKES_NEXT = /^--?(?:rcfile|init-file|emulate)$/;
const IS_COMMAND = /^(?:-[A-Za-z]*c|--?[Cc]ommands?|--?[Ee]ncoded[Cc]ommand|--?[Ff]ile)$/;
/** The input, and what stands for an open file. The folder may be the working directory. */
const IS_INPUT = /(?:^|\/)(?:stdin|\d+)$/i;
/** The shell makes this word out of something. */
const IS_MADE = /[$`*?[{\\]|<\(/;
/** The shell makes this word out of what may be nothing. */
const MAY_BE_NOTHING = /^\$\{?[@*]|\[[@*]\]/;

/** `program`: the name of the shell. `args`: what follows it. */
export function readsItsInput(program: string, args: readonly string[]): ReadsInput {
  const command = args.findIndex((arg) => IS_COMMAND.test(arg));
  if (!LIKE_SH.has(nameOf(program))) {
    if (command !== -1) return ofCommand(args[command + 1]);
    const script = args.findIndex((arg, at) => !arg.startsWith("-") && args[at - 1]?.startsWith("-") !== true);
    return ofScript(args[script]);
  }
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? "";
    if (arg === "-" || arg === "--") return ofScript(args[at + 1]);
    if (!/^[-+]/.test(arg)) return ofScript(arg);
    if (at === command) return ofCommand(args[at + 1]);
    // The rest are arguments of the commands, unless a later option is a command.
    if (/^-[A-Za-z]*s/.test(arg) && command === -1) return "yes";
    if (TAKES_NEXT.test(arg)) at++;
    else if (!arg.startsWith("--")) at += arg.replaceAll(/[^oO]/g, "").length;
  }
  return "yes";
}
/** A command in the arguments may start a shell that reads the same input. */
const ofCommand = (text = "-"): ReadsInput =>
  text === "-" || text.split(/[^\w./-]+/).some((word) => SHELLS.has(nameOf(word))) ? "yes" : "no";
function ofScript(path: string | undefined): ReadsInput {
  if (path === undefined || path === "" || path === "-" || IS_INPUT.test(normalPath(path)) || MAY_BE_NOTHING.test(path)) return "yes";
  return IS_MADE.test(path) ? "unsure" : "no";
}

/** Whether a shell may stand behind a pipe. */
export const isPipedToShell = (text: string): boolean =>
  text
    .replaceAll("||", ";")
    .split("|")
    .slice(1)
    .some((part) => {
      const command = /[({]|\b(?:do|then)\b/.test(part) ? part : part.replace(/^&/, "").split(/[;&\n]/, 1)[0];
      return command?.split(/[\s(){}`"'\\;&]+/).some((word) => SHELLS.has(nameOf(word))) === true;
    });
/** A name that may lead to the input: of a link to it, or in its folder. */
export const namesInput = (text: string): boolean => /stdin\b|\/fd\b|\/proc\b/i.test(withoutQuotes(text));
