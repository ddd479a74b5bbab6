/**
 * Variables that a text sets for the programs it runs (rule PO13). PURE. A program may take the value for options, as tar does with TAR_OPTIONS,
 * or for a command, as make does with CC.
 */
import { countOf, namesDeleter } from "./deleters.ts";
import type { TemporaryTrust } from "./temporary-paths.ts";
import { evaluates, keepsSubstitution } from "./evaluated-values.ts";
import { mentionsDeletion } from "./mentioned-deletions.ts";
import type { ReadingSteps } from "./reading-steps.ts";
import { setsMade } from "./texts-for-shells.ts";
import { withoutQuotes } from "../quotes.ts";

const SETS = /(?<![\w$])([A-Za-z_]\w{0,60})\+?=/g;
/** Options whose values are texts or patterns. */
const OF_TEXT = /^(?:grep|regexp|author|title|body|message|notes|description|subject|pattern|search|label|comment|summary|reason)$/;
/** The name of the program whose options the variable has. */
const OPTIONS_OF = /^([A-Z\d]{1,20}?)_?(?:OPTIONS|OPTS|OPTION|OPT|FLAGS)?$/;

/** Whether a value that the text sets is a command that deletes many files, or options with which its program does. */
export function assignsDeletion(text: string, reading: { readonly trust: TemporaryTrust; readonly steps: ReadingSteps }): boolean {
  if (!text.includes("=")) return false;
  const sets = new RegExp(SETS);
  const hasMake = text.includes("make");
  const mayGrow = text.includes("+=");
  let isKept = false;
  for (let found = sets.exec(text); found !== null; found = sets.exec(text)) {
    const isOption = text.startsWith("--", found.index - 2) && OF_TEXT.test(found[1] ?? "");
    const value = text.slice(sets.lastIndex, endOfWord(text, sets.lastIndex));
    sets.lastIndex += value.length;
    const isText = /\s|^["']?-/.test(value);
    if (isOption) continue;
    isKept ||= !text.startsWith("-", found.index - 1) && keepsSubstitution(value, mayGrow);
    if (setsMade(found[1] ?? "", value, hasMake, reading.steps)) return true;
    if (!isText && !value.includes("$")) continue;
    if (
      reading.steps.takesTooLong(1) ||
      setsOptions(found[1] ?? "", value, reading.trust) ||
      (isText && mentionsDeletion([value], reading))
    )
      return true;
  }
  return isKept && evaluates(text);
}
/** Where a word ends that may have quotes. A quote without an end is a part of it. */
function endOfWord(text: string, from: number): number {
  let at = from;
  while (at < text.length && !/[\s;&|]/.test(text.charAt(at))) {
    const char = text.charAt(at);
    const end = char === '"' || char === "'" ? text.indexOf(char, at + 1) : at;
    if (end === -1) return text.length;
    at = end + 1;
  }
  return at;
}
/** Such options of a program, or ones that the shell makes. */
function setsOptions(name: string, value: string, trust: TemporaryTrust): boolean {
  if (name === "PYTEST_ADDOPTS") return countOf(["pytest", ...withoutQuotes(value).split(/\s+/)], trust) === "many";
  const [, program = ""] = OPTIONS_OF.exec(name) ?? [];
  if (!namesDeleter(program) || program === "RM") return false;
  const options = withoutQuotes(value).split(/\s+/);
  if (options.some((option) => /^-?[^=]{0,300}[$`*?[{]/.test(option))) return program !== name || options[0]?.startsWith("-") === true;
  return program.toLowerCase() !== "git" && countOf([program, ...options], "none") === "many";
}
