/**
 * What git and its companions delete by something they are given (rule PO13). PURE. A difference that takes files away and is applied in the same
 * text, and a program that only deletes in the place of a pager, an editor or a tool.
 */
import { nameOf } from "../wrappers.ts";
import type { Commands } from "./reading.ts";

const SHOWS_DIFFERENCE = /^(?:diff(?:-index|-tree|-files)?|show|log|stash|format-patch)$/;
/** Options of git diff: in the other direction, or of two folders. */
const TAKES_AWAY = /^-[A-Za-z]*R|^--no-ind/;
/** Options of diff: folders, or files that one side does not have. */
const OF_FOLDERS = /^-[A-Za-z]*[rN]|^--(?:rec|new|uni)/;
const ONLY_SHOWS = /^--(?:ch|st|num|su|dr)/;

/** Whether one command shows a difference that takes files away, and another one applies a difference. */
export function appliesTakingAway(text: string, commands: () => Commands): boolean {
  if (!text.includes("diff") && !text.includes("-R")) return false;
  if (!text.includes("apply") && !text.includes("patch")) return false;
  const applies = commands().some((words) => {
    const at = words.findIndex((word) => /^(?:g?patch|apply|am)$/.test(nameOf(word)));
    const isGit = /^(?:apply|am)$/.test(words[at] ?? "");
    return (
      at !== -1 && (!isGit || words.slice(0, at).some((word) => nameOf(word) === "git")) && !words.some((word) => ONLY_SHOWS.test(word))
    );
  });
  return applies && commands().some(takesAway);
}
function takesAway(words: readonly string[]): boolean {
  const at = words.findIndex((word) => /^(?:git|g?diff|interdiff)$/.test(nameOf(word)));
  if (at === -1) return false;
  const rest = words.slice(at + 1);
  if (nameOf(words[at]) !== "git") return rest.some((word) => OF_FOLDERS.test(word));
  return rest.some((word) => SHOWS_DIFFERENCE.test(word)) && rest.some((word) => TAKES_AWAY.test(word));
}

/** Only delete what they are given. */
const REMOVERS: ReadonlySet<string> = new Set("rm grm srm unlink shred truncate wipe rimraf rmdir".split(" "));
const isRemover = (value: string): boolean => value.split(/[\s"'\\;&|()!]+/).some((word) => REMOVERS.has(nameOf(word)));
/** Settings of git whose value is no program. */
const NO_PROGRAM = /^(?:user|author|committer|alias|color|branch|remote|url|commit|init|i18n|gc|http)\./i;
/** Whether a setting of git has a program that deletes for its value. `options`: those before the subcommand. */
export const setsRemover = (options: readonly string[]): boolean =>
  options.some((option, at) => {
    const given = options[at - 1] === "-c" ? option : /^--config=/.test(option) ? option.slice(9) : undefined;
    const end = given?.indexOf("=") ?? -1;
    return given !== undefined && end !== -1 && !NO_PROGRAM.test(given) && isRemover(given.slice(end + 1));
  });
