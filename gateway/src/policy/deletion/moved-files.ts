/**
 * What a command moves or links into a folder for temporary files (rule PO13). PURE. A path there may then lead elsewhere, and what was moved
 * to a folder that ends with the command is gone.
 */
import { normalPath } from "../paths.ts";
import { readShell } from "../shell.ts";
import { runsAnother, nameOf } from "../wrappers.ts";
import { namesFile } from "./file-names.ts";
import { namesDeleter } from "./deleters.ts";
import { type TemporaryTrust, isTemporary } from "./temporary-paths.ts";
import type { Commands } from "./reading.ts";
import { withoutQuotes } from "../quotes.ts";

/** Folders that end with the command in a sandbox: what is moved there is gone. */
const MEMORY = /(?<![\w./-])\/(?:dev\/shm|(?:var\/)?run|var\/tmp)(?![\w-])/;
/** The path of one, or of one that may be. A process has a link to the root folder in /proc. */
const TO_MEMORY = /^(?:\/|(?:\.\.\/)+)(?:dev|run|proc|var\/(?:run|tmp))(?:\/|$)/;
const ROOT = String.raw`\/(?:(?:dev|run|proc|var\/run)(?![\w-])|\.{0,2}(?=[\s;&|)]|$))`;
/** Parts of a path that lead nowhere. */
const NOWHERE = /\/[./]*\//g;
const GOES_TO_MEMORY = new RegExp(String.raw`(?:\b(?:cd|pushd|chdir)\s+(?:-[A-Za-z-]{1,20}\s+){0,9}|\s-C\s*|--chdir[= ]\s*)${ROOT}`);
/** A variable that the text sets to a folder of the system. */
const SET_TO_SYSTEM = /\b([A-Za-z_]\w{0,40})=["']?\/(?!home\b|Users\b|(?:private\/)?tmp\b|opt\b|workspace\b)/g;
/** Whether a move ends in such a folder. */
function isGone(moves: readonly Move[], text: string): boolean {
  const isThere = GOES_TO_MEMORY.test(text.replaceAll(NOWHERE, "/"));
  const systems = text.includes("=") ? new Set([...text.matchAll(SET_TO_SYSTEM)].map(([, name = ""]) => name)) : new Set<string>();
  return moves.some(({ operands }) => {
    const target = operands.at(-1) ?? "";
    const to = normalPath(target);
    const name = /^\$\{?(\w+)/.exec(target)?.[1];
    if (name !== undefined && systems.has(name)) return true;
    return TO_MEMORY.test(to) || (isThere && !to.startsWith("/"));
  });
}
/** Whether a command moves something there, or from elsewhere into a temporary folder: a later deletion there is not asked about. */
export function movesAway(text: string, commands: Commands): boolean {
  const plain = withoutQuotes(text);
  const moves = commands.flatMap(movedBy);
  if (moves.length === 0) return false;
  if (MEMORY.test(plain) || isGone(moves, plain)) return true;
  if (movesOneFile(text)) return false;
  if (!MAY_NAME_TEMPORARY.test(plain.replaceAll(OUTPUT, " "))) return false;
  const home = /\bHOME=/.test(plain) ? "$HOME" : "/~";
  // Those hold a folder that mktemp has made.
  const made = new Set([...plain.matchAll(/\b([A-Za-z_]\w{0,40})=made\b/g)].map(([, name = ""]) => name));
  const mayBeMade = new Set([...plain.matchAll(SET_TO_TEMPORARY)].map(([, name = ""]) => name));
  const isThere = GOES_TO_TEMPORARY.test(plain) || [...plain.matchAll(GOES_TO_NAMED)].some(([, name = ""]) => mayBeMade.has(name));
  const isOut = (word: string): boolean => !isTemporary(word, "all") && !made.has(/^\$\{?(\w+)/.exec(word)?.[1] ?? "");
  return moves.some(({ operands, before }) => {
    // They come from elsewhere, as in `xargs mv`.
    if (operands.length < 2) return true;
    const named = operands.map((word) => word.replace(/^(?:\$HOME|\$\{HOME\}|~)(?=\/|$)/, home));
    const to = normalPath(named.at(-1) ?? "");
    const isInto = TO_TEMPORARY.test(to);
    const isHere = !isInto && !/^(?:\/|\.\.)/.test(to) && (isThere || STARTS_IN_TEMPORARY.test(before));
    return (isInto || isHere) && named.slice(0, -1).some((from) => isOut(from) && (isInto || /^(?:[/~$`]|\.\.)/.test(from)));
  });
}
/** Whether the only thing that a text moves is one file of the workspace, by its name and not as an argument of another program. */
function movesOneFile(text: string): boolean {
  const read = readShell(text);
  if (read.kind !== "plain") return false;
  const bringing = read.commands.filter(({ words }) => words.some((word) => MOVERS.has(nameOf(word)) || LINKERS.has(nameOf(word))));
  const [program, ...args] = bringing[0]?.words ?? [];
  const operands = args.filter((arg) => !/^-[fvn]+$/.test(arg));
  const [file = "", to = ""] = operands;
  // A deletion in the same text may be of a folder with such a name.
  const isAlone = read.commands.every(({ words }) => words[0] === program || !(runsAnother(words) || words.some(namesDeleter)));
  return isAlone && bringing.length === 1 && program === "mv" && operands.length === 2 && /^(?!-)/.test(to) && isFileByName(file);
}
/** By its extension. Some folders have one, too. */
const isFileByName = (path: string): boolean =>
  /^(?:\.\/)?(?:\w[\w.-]{0,200}\/){0,20}\w[\w.-]{0,200}\.(?=\w*[a-z])[a-z\d]{1,5}$/i.test(path) &&
  !/\.(?:git|app|d|old|bak|orig|tmp|xcode\w*|sdk|egg|cache)$/i.test(path);
/** Where output goes is no folder that something is moved to. */
const OUTPUT = /[0-9&]?>{1,2}\s{0,9}[^\s;&|<>]{1,200}/g;
const MAY_NAME_TEMPORARY = /(?<!\.)tmp\b|TMPDIR|mktemp|=made\b|\$UNKNOWN|\/[^\s/]{0,20}[*?[{]/i;
/** The path of a temporary folder, or of one that may be. */
const TO_TEMPORARY =
  /^(?:\/(?:private\/)?(?:var\/)?(?:tmp|[^/]{0,20}[*?[{].*)(?:\/|$)|(?:\.\.\/)+(?:private\/)?(?:var\/)?tmp(?:\/|$)|\/proc\/|[$`]|~[+-])/i;
const FOLDER = String.raw`(?:(?:\/private)?\/+(?:var\/+)?tmp\b|\$\{?(?:TMPDIR|UNKNOWN)|(?:\$\(|\x60)\s{0,9}mktemp\b)`;
const GOES_TO_TEMPORARY = new RegExp(String.raw`\b(?:cd|pushd|chdir)\s+(?:-[A-Za-z-]{1,20}\s+){0,9}${FOLDER}`, "i");
const SET_TO_TEMPORARY = new RegExp(String.raw`\b([A-Za-z_]\w{0,40})=(?:made\b|${FOLDER})`, "g");
const GOES_TO_NAMED = /\b(?:cd|pushd|chdir)\s+(?:-[A-Za-z-]{1,20}\s+){0,9}\$\{?([A-Za-z_]\w{0,40})/g;
const STARTS_IN_TEMPORARY = new RegExp(String.raw`(?:-C|--chdir[= ])\s*${FOLDER}`, "i");
interface Move {
  /** The target last. */
  readonly operands: readonly string[];
  /** The target is an option. */
  readonly hasTarget: boolean;
  /** What stands before the program: `env -C /tmp`. */
  readonly before: string;
}
function movedBy(words: readonly string[]): readonly Move[] {
  const at = words.findIndex((word, place) => /^g?mv$/.test(nameOf(word)) || (word === "rename" && words[place - 1] === "-E"));
  if (at === -1 || (words[at] === "rename" && isFileByName(words[at + 1] ?? ""))) return [];
  const operands: string[] = [];
  let target: string | undefined;
  for (let next = at + 1; next < words.length; next++) {
    const word = words[next] ?? "";
    const option = /^(?:-[A-Za-z]*t|--t[a-z-]*=?)(.*)$/.exec(word);
    if (option !== null) target = option[1] || words[++next];
    else if (!word.startsWith("-")) operands.push(word);
  }
  // The end of `find -exec mv {} folder +`.
  if (operands.at(-1) === "+") operands.pop();
  const hasTarget = target !== undefined;
  const move = { operands: hasTarget ? [...operands, target ?? ""] : operands, hasTarget, before: words.slice(0, at).join(" ") };
  // An exchange moves both ways.
  return words.some((word) => /^--ex/.test(word)) ? [move, { ...move, operands: [...operands].reverse() }] : [move];
}

/** Programs after which a path in a temporary folder may lead out of it. */
export const LINKERS: ReadonlySet<string> = new Set(["ln", "gln", "link", "mount", "bindfs"]);
/** Programs that bring a link with them: a name in a temporary folder may then be one, and what is below it is elsewhere. */
export const MOVERS: ReadonlySet<string> = new Set(
  "mv gmv cp gcp rename install rsync tar gtar bsdtar unzip 7z cpio git rclone scp exch".split(" "),
);
/** The trust in paths of temporary folders when a text names no program of these sets. */
export const trustByWords = (text: string): TemporaryTrust => {
  if (!MAY_MOVE.test(text)) return "all";
  if (/symlink/i.test(text)) return "none";
  if ([...text.matchAll(MOVES_IN_CODE)].some(([, file = ""]) => !namesFile(file))) return "none";
  return /\brename|\bmove/i.test(text) ? "direct" : "all";
};
/** Most texts have none of these. */
const MAY_MOVE = /symlink|rename|move|replace|mv/i;
/** A move by code, with the file's name when it is written out. The file may be a folder, and paths below it lead elsewhere then. */
const MOVES_IN_CODE =
  /(?:\b(?:move|rename(?:s|Sync)?|mv|os\s{0,9}\.\s{0,9}replace)\s{0,9}\(\s{0,9}|\.replace\s{0,9}\(\s{0,9}(?=f?["']\/)|\brename\s{1,9}(?=["'$\\]|q\W)|\.(?:mv|move)\s{1,9}(?=["'])|-E\s{1,9}rename\s{1,9})(?:\\?["'`]?([\w./-]{1,300}))?/g;
export function trustIn(text: string, commands: Commands): TemporaryTrust {
  if (trustByWords(text) === "none") return "none";
  const names = withoutQuotes(text)
    .split(/[\s;&|(){}`]+/)
    .filter((word) => !isTemporary(word, "all"))
    .map((word) => nameOf(word));
  if (names.some((name) => LINKERS.has(name)) || mayDeleteMoved(text, commands)) return "none";
  // It follows a link by which its target is named, and only another command can have made one.
  const isToTarget = names.includes("rsync") && /\s--(?:del|force)/.test(text);
  if (isToTarget && (names.filter((name) => MOVERS.has(name)).length > 1 || trustByWords(text) !== "all")) return "none";
  return names.some((name) => MOVERS.has(name)) ? "direct" : trustByWords(text);
}
/** Whether a command may move what is elsewhere into a temporary folder in a way that `movesAway` does not follow. */
function mayDeleteMoved(text: string, commands: Commands): boolean {
  const goesElsewhere = /\b(?:cd|pushd)\s/.test(text);
  return commands.flatMap(movedBy).some(({ operands, hasTarget }) => {
    const fromElsewhere = !operands.slice(0, -1).every((word) => isTemporary(word, "all"));
    return hasTarget || (fromElsewhere && (goesElsewhere || /^[.$~]/.test(operands.at(-1) ?? "")));
  });
}
export const leastTrust = (one: TemporaryTrust, other: TemporaryTrust): TemporaryTrust =>
  one === "none" || other === "none" ? "none" : one === "direct" ? one : other;
