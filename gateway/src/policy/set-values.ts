/**
 * Variables that a text sets for the programs it runs (rule PO13). PURE. A program may take the value for options, as tar does with TAR_OPTIONS,
 * or for a command, as make does with CC.
 */
import { type Believed, countOf, namesDeleter } from "./deleters.ts";
import { mentionsDeletion } from "./mentioned-deletions.ts";
import type { ReadingSteps } from "./reading-steps.ts";
import { withoutQuotes } from "./quotes.ts";

const SETS = /(?<![\w$])([A-Za-z_]\w{0,60})\+?=(["']?)/g;
/** The name of the program whose options the variable has. */
const OPTIONS_OF = /^([A-Z\d]{1,20}?)_?(?:OPTIONS|OPTS|OPTION|OPT|FLAGS)?$/;

/** Whether a value that the text sets is a command that deletes many files, or options with which its program does. */
export function setsDeletion(text: string, reading: { readonly believed: Believed; readonly steps: ReadingSteps }): boolean {
  if (!text.includes("=")) return false;
  const sets = new RegExp(SETS);
  for (let found = sets.exec(text); found !== null; found = sets.exec(text)) {
    const [, name = "", quote = ""] = found;
    const from = sets.lastIndex;
    const end = quote === "" ? -1 : text.indexOf(quote, from);
    const value = end === -1 ? (/^[^\s;&|]{0,500}/.exec(text.slice(from, from + 500))?.[0] ?? "") : text.slice(from, end);
    sets.lastIndex = from + value.length;
    if (!/\s|^-|^\\?\$/.test(value) && quote === "") continue;
    if (reading.steps.takesTooLong(1) || setsOptions(name, value) || (/\s|^-/.test(value) && mentionsDeletion([value], reading)))
      return true;
  }
  return false;
}
/** Such options of a program, or ones that the shell makes. */
function setsOptions(name: string, value: string): boolean {
  const [, program = ""] = OPTIONS_OF.exec(name) ?? [];
  if (!namesDeleter(program) || program === "RM") return false;
  const options = withoutQuotes(value).split(/\s+/);
  if (options.some((option) => /^-?[^=]{0,300}[$`*?[{]/.test(option))) return program !== name || value.startsWith("-");
  return program.toLowerCase() !== "git" && countOf([program, ...options], "none") === "many";
}
