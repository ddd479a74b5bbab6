/**
 * Commands that delete many files, or may (rule PO13). PURE. It reads a text and knows no file system: what cannot be counted counts as many.
 * It is no protection against a program that deletes by itself, only against commands whose names say that they delete.
 */
import { type Deletion, MAX_DELETED, type Commands } from "./reading.ts";
import { givesCommand } from "./command-givers.ts";
import { type ReadCommand, readCommands } from "./command-words.ts";
import { copiesByPath, copiesDeleter, givesName, mayCopyOrMove } from "./copied-programs.ts";
import { countOf, namesDeleter, subcommandAt } from "./deleters.ts";
import type { TemporaryTrust } from "./temporary-paths.ts";
import { hasExpandedMode } from "./expanded-options.ts";
import { givenVariables } from "./given-variables.ts";
import { maySetAnyVariable, withKnownVariables } from "./known-variables.ts";
import { mentionsDeletion } from "./mentioned-deletions.ts";
import { trustByWords, trustIn, leastTrust, movesAway } from "./moved-files.ts";
import { onlyEdits } from "./only-edits.ts";
import { once } from "../once.ts";
import { isExpanded, isShellProgram, PREFIXES, runsItsInput, runsExpanded } from "./prefixed-programs.ts";
import { withPlainParts } from "./plain-parts.ts";
import { ReadingSteps } from "./reading-steps.ts";
import { assignsDeletion } from "./assigned-values.ts";
import { appliesTakingAway } from "./given-to-git.ts";
import { setsCleaned } from "./set-folders.ts";
import { pipesToUnknown } from "./awk-pipes.ts";
import { commandsOfSed } from "./sed-script.ts";
import { isPipedToShell, namesInput, readsItsInput } from "./shell-input.ts";
import { readShell } from "../shell.ts";
import { asGit, runsAnother, nameOf } from "../wrappers.ts";
import { withoutQuotes } from "../quotes.ts";
import { callsMade, givesMade, takesMade } from "./texts-for-shells.ts";
import { commandInArguments } from "./unknown-programs.ts";

/** Commands in commands: `sh -c "sh -c ..."`. Deeper ones count as many. */
const MAX_DEPTH = 4;
/** Characters of a text that is read. A longer one may do anything. */
const MAX_TEXT = 50_000;
/** Words of a command that runs another one. */
const MAX_WORDS = 2000;

interface Scope {
  readonly depth: number;
  /** The text is a program of another language than that of the shell, or may be. */
  readonly isCode?: boolean;
  readonly trust: TemporaryTrust;
  readonly steps: ReadingSteps;
}

/** The last answer: rules, the mode and grants ask about the same command. */
let last: { readonly text: string; readonly found: Deletion } | undefined;
/** What a text for a shell deletes at most, as far as its words tell. */
export function deletionOf(given: string): Deletion {
  if (last?.text === given) return last.found;
  const found = deletionIn(given, { depth: 0, trust: "all", steps: new ReadingSteps() });
  last = { text: given, found };
  return found;
}
function deletionIn(given: string, { depth, trust: outer, isCode = false, steps }: Scope): Deletion {
  if (depth > MAX_DEPTH || given.length > MAX_TEXT || steps.takesTooLong(1 + given.length / 10)) return "many";
  if (depth === 0 && onlyEdits(given)) return "few";
  // The command may set the variable, and a program that runs another one may give it other variables.
  const shown = depth > 0 ? given : withKnownVariables(withPlainParts(given));
  const text = given.includes("TMPDIR") && (depth > 0 || setsFolder(given)) ? shown.replaceAll(TMPDIR, "$UNKNOWN") : shown;
  const split = once(() => splitCommands(text));
  if (givesName(text) || (maySetGit(text) && setsGit(text))) return "many";
  const copiesOrMoves = mayCopyOrMove(text);
  if (copiesOrMoves && (copiesDeleter(text, split()) || movesAway(text, split()))) return "many";
  const scope: Scope = { depth, trust: leastTrust(outer, copiesOrMoves ? trustIn(text, split()) : trustByWords(text)), steps };
  if (assignsDeletion(text, scope) || setsCleaned(text, scope.trust) || appliesTakingAway(text, split)) return "many";
  const read = readShell(text);
  if (read.kind === "plain") {
    const commands = read.commands.map(({ words }) => words);
    return isMany(commands, scope, !isCode) || runsInput({ text, commands, inputs: [] }, scope) ? "many" : "few";
  }
  // Two readings: one goes by the text alone, the other by what a shell makes of it.
  if (isMany(split(), scope)) return "many";
  const { isCertain, commands, inputs } = readCommands(text);
  // Another command may set a variable of a text that it runs.
  const isGiven = depth === 0 ? givenVariables(text) : () => false;
  if (
    !isCode &&
    ((!isCertain && split().some(([program]) => isExpanded(program) && program !== "$")) ||
      commands.some((command) => hasExpandedMode(command, isGiven)))
  )
    return "many";
  const named = commands.map(({ words }) => words);
  if ((!isCode && commands.some(isUnknown)) || isMany(named, scope, !isCode) || runsInput({ text, commands: named, inputs }, scope))
    return "many";
  // A shell gets a text that variables of this one have a part in.
  if (named.some((words) => textsForShell(words).some((given) => given.includes("$"))) && mentionsDeletion([text], scope)) return "many";
  // Code comes as an input: `python3 - <<'E'`.
  const interpreter = inputs.length === 0 ? undefined : named.find((words) => runsAnother(words));
  if (interpreter !== undefined && inputs.some((input) => takesMade(nameOf(interpreter[0]), input, steps))) return "many";
  const runs = named.some((words) => isShellProgram(words[0]));
  return runs && inputs.some((input) => deletionIn(input, { ...scope, depth: depth + 1 }) === "many") ? "many" : "few";
}
/** `isRead`: the words are those that a shell makes, so that no text in quotes is a word. */
function isMany(commands: Commands, scope: Scope, isRead = false): boolean {
  let count = 0;
  for (const words of commands) {
    if (scope.steps.takesTooLong(1)) return true;
    for (const part of partsOf(words, scope, isRead)) {
      if (part === "many") return true;
      count += part;
    }
  }
  return count > MAX_DELETED;
}

/** Variables that are a configuration of git, with an alias for any subcommand, and a pager that deletes what it is given. */
const GIT_VARIABLE =
  /(?<![\w$]|\$\{)(?:GIT_CONFIG_(?:COUNT|KEY|VALUE|PARAMETERS)[^\s=:]{0,40}[=:]|(?:GIT_[A-Z_]{0,40}|MAN)?(?:PAGER|COMMAND|DIFF|EDITOR|CMD|VISUAL)=(?:[^\s;&|]{0,300}\/)?(?:rm|unlink|shred|truncate|rimraf)\b)|(?:\bread|\bset|\bsetenv|-v)\s[^;|&\n]{0,100}\bGIT_CONFIG_(?:COUNT|KEY|VALUE|PARAMETERS)/;
const maySetGit = (text: string): boolean =>
  text.includes("GIT_") || (text.includes("=") && ["PAGER", "EDITOR", "VISUAL"].some((name) => text.includes(name)));
const setsGit = (text: string): boolean => GIT_VARIABLE.test(withoutQuotes(text));
const TMPDIR = /\$TMPDIR\b|\$\{TMPDIR\}/g;
const SETS_TMPDIR = /(?<!\$|\$\{)TMPDIR/;
const setsFolder = (text: string): boolean => SETS_TMPDIR.test(withoutQuotes(text)) || maySetAnyVariable(text);

/** Whether one command deletes many files, or may. */
export function deletesMany(words: readonly string[]): boolean {
  return isMany([words], { depth: 0, trust: "all", steps: new ReadingSteps() }, true);
}

/** The program that deletes many files by itself in a text, of git with the subcommand. Undefined: another one runs it, or none is certain. */
export function deleterIn(text: string): string | undefined {
  const read = readShell(text);
  const { commands } = read.kind === "plain" ? read : readCommands(text);
  const words = commands.map((command) => command.words).find((words) => namesDeleter(words[0]) && deletesMany(words));
  const name = nameOf(words?.[0]);
  const args = words?.slice(1) ?? [];
  const subcommand = args[subcommandAt(args)] ?? "";
  return name === "git" && PLAIN.test(subcommand) ? `git ${subcommand}` : name || undefined;
}
const PLAIN = /^[a-z-]+$/;

/** Files that each part of a command names for deletion. */
function partsOf(command: readonly string[], scope: Scope, isRead: boolean): readonly (number | "many")[] {
  const words = [...asGit(command[0] ?? ""), ...command.slice(1)];
  const name = nameOf(words[0]);
  const count = (from: readonly string[]): number | "many" => countOf(from, scope.trust);
  const runs = runsAnother(words) || MORE_RUNNERS.has(name) || givesCommand(name, words);
  if (copiesByPath(words, runs)) return ["many"];
  if (!runs) {
    const begin = isRead ? commandInArguments(name, words) : undefined;
    return begin === undefined ? [count(words)] : partsOf(words.slice(begin), scope, false);
  }
  const deleters = words.filter(namesDeleter).length;
  if (scope.steps.takesTooLong(4 + words.length + (words.length * deleters) / 16)) return ["many"];
  if (words.length > MAX_WORDS || runsUnknown(words) || runsItsInput(words, textsForShell)) return ["many"];
  const ofSed = runBySed(words);
  if (ofSed === "unknown" || ofSed.some((text) => deletionIn(text, { ...scope, depth: scope.depth + 1 }) === "many")) return ["many"];
  // The other command is one of the words, or begins at one of them.
  const inner = innerOf(words);
  const isCode = !words.some((word) => isShellProgram(word) || TAKES_SHELL.has(nameOf(word)));
  if (inner.some((word) => deletionIn(word, { ...scope, depth: scope.depth + 1, isCode }) === "many")) return ["many"];
  if (isRead && givesMade(words, scope.steps)) return ["many"];
  if (name !== "git") return mentionsDeletion(words, scope) ? ["many"] : words.map((_, at) => count(words.slice(at)));
  return RUN_BY_GIT.test(words.join(" ")) && mentionsDeletion(words.slice(1), scope) ? ["many"] : [count(words)];
}
/** Give a text in their arguments to a shell. */
const TAKES_SHELL: ReadonlySet<string> = new Set(
  "eval trap history compgen complete mapfile readarray watch su script flock parallel ssh hyperfine entr git busybox tmux screen at".split(
    " ",
  ),
);
/** Take commands in their arguments, beside those that always do (wrappers.ts). */
const MORE_RUNNERS: ReadonlySet<string> = new Set(
  "eval alias trap history fc mapfile readarray hash abbr shx bfs git-bisect . source compgen complete".split(" "),
);
/** Subcommands and options of git after which a shell runs the rest, or git works in other folders. */
const RUN_BY_GIT = /\s(?:foreach|bisect|rebase|filter-branch|difftool|mergetool|for-each-repo|config|hook|-c\S*|--config\S*)\s/;

/** Texts in the arguments that may be commands. */
function innerOf(words: readonly string[]): readonly string[] {
  const [program, ...args] = words;
  const inner = [...args.filter((word) => /\s/.test(word)), ...textsForShell(words)];
  if (nameOf(program) === "git") return [...inner, ...aliasesOf(args)];
  if (args.some((word) => SPLITS.test(word))) return [...inner, ...args.map((word) => word.replace(SPLITS, ""))];
  if (args.some((word) => ADDRESS.test(word))) return [...inner, ...args.flatMap((word) => word.split(ADDRESS))];
  return ["eval", "."].includes(nameOf(program)) ? [...inner, args.join(" ")] : inner;
}
/** The option of env whose value is a command with its arguments. */
const SPLITS = /^(?:-[A-Za-z0-9]*S|--split-string=?)/;
/** Addresses of socat whose rest is a command. */
const ADDRESS = /(?:^|!!)(?:exec|system|shell):/i;
/** Texts that a command gives to a shell: `sh -c TEXT`. */
const textsForShell = (words: readonly string[]): readonly string[] =>
  words.some((word) => isShellProgram(word)) ? words.filter((_, at) => /^-[A-Za-z]*c$/.test(words[at - 1] ?? "")) : [];
/** What an alias stands for that the command itself sets: `-c alias.x=clean x -fdx`. */
const aliasesOf = (args: readonly string[]): readonly string[] =>
  args.flatMap((arg, at) => {
    const found = /^(?:-c|--config=)?alias\.[^=\s]*(?:=(.*))?$/is.exec(arg);
    if (found === null) return [];
    const value = found[1] ?? args[at + 1] ?? "";
    // With its own arguments the word could be any subcommand's.
    return [value.startsWith("!") ? value.slice(1) : `git ${value} ${args.slice(at + 2).join(" ")}`];
  });

/** What the scripts of sed run: any argument may be one. */
function runBySed(words: readonly string[]): readonly string[] | "unknown" {
  const at = words.findIndex((word) => /^g?sed$/.test(nameOf(word)));
  if (at === -1) return [];
  const found = words.slice(at + 1).map((arg) => commandsOfSed(arg.replace(/^-[A-Za-z]*?e|^--e[a-z]*=/, "")));
  return found.includes("unknown") ? "unknown" : found.flat();
}
/** Code of awk that runs lines of its input, or texts that it joins, as commands. */
const RUNS_LINES =
  /system\s*\(\s*(?:[^"\s)]|"(?:[^"\\]|\\.)*"\s*[^)\s])|\|\s*"[^"]*\bsh\b|\|\s*\(?\s*"(?:[^"\\]|\\.)*"\s*"|"\s*"[^|"]*"\s*\)?\s*\|\s*getline/;
/** Whether what a command runs is made by the shell: `sh -c "$X"`, `env $X`, `find -exec $X`. */
function runsUnknown(words: readonly string[]): boolean {
  const [program = "", ...args] = words;
  const name = nameOf(program);
  const isBegun = (word = ""): boolean => /^(?:[$`]|<\(|\{\}$)/.test(word) && !/^\$\{?(?:HOME|PWD)\}?\//.test(word);
  if (name === "eval" || name === "trap") return args.some((arg) => isBegun(arg));
  if (name === "git") return args.some((arg) => arg.startsWith("--config-env"));
  // It runs an earlier command again.
  if (name === "fc") return args.some((arg) => /^-[a-z]*[es]/.test(arg));
  if (/^[gmn]?awk$/.test(name)) return args.some((arg) => RUNS_LINES.test(arg) || pipesToUnknown(arg, args));
  // Its library of commands has one that deletes.
  if (name === "ruby") return args.some((arg) => /^(?:-e)?\s*rm$/.test(arg)) && args.some((arg) => /^-r?un$/.test(arg) || arg === "un");
  const isOfShell = words.some((word) => isShellProgram(word));
  if (isOfShell && args.some((arg, at) => arg.startsWith("<(") || (/^-[a-z]*c$/.test(arg) && isBegun(args[at + 1] ?? "{}")))) return true;
  const isFd = name === "fd" || name === "fdfind";
  const runs = args.some((arg, at) => {
    if (!(isFd ? /^-[xX]$|^--exec/ : /^-(?:exec|execdir|ok|okdir)$/).test(arg) || args[at + 1] === "{}") return false;
    return isExpanded(args[at + 1]) || runsExpanded(args.slice(at + 1));
  });
  return runs || runsExpanded(words);
}

/** Whether a program gets commands as its input, and they delete many files or are not in the text. */
function runsInput(
  { text, commands, inputs }: { readonly text: string; readonly commands: Commands; readonly inputs: readonly string[] },
  { trust, steps }: Scope,
): boolean {
  const isPiped = once(() => isPipedToShell(text));
  const mayBeInput = once(() => namesInput(text));
  const isFed = commands.some((words) => {
    const shell = words.findIndex((word) => isShellProgram(word));
    if (shell === -1 || (shell > 0 && (!PREFIXES.has(nameOf(words[0])) || nameOf(words[0]) === "xargs"))) return false;
    const reads = readsItsInput(words[shell] ?? "", words.slice(shell + 1));
    return reads === "yes" || ((reads === "unsure" || mayBeInput()) && isPiped());
  });
  if (text.includes("<(") && /(?:^|[\s;&|(])(?:\.|source|[\w./-]*sh)\s+(?:-\w+\s+){0,9}<\(/.test(text)) return true;
  if (SETS_COMMAND.test(text) && mentionsDeletion([text], { trust: "none", steps })) return true;
  if (!/[|<>]/.test(text)) return false;
  const isShown = commands.every((words) => isPrinted(words) || isShellProgram(words[0])) && !EXPANDED.test(text);
  if (isFed && !isShown && (inputs.length === 0 || isPiped())) return true;
  const mayMake = text.includes("make");
  const takes = commands.some(
    (words) =>
      isShellProgram(words[0]) ||
      /^\.{1,2}\//.test(words[0] ?? "") ||
      (runsAnother(words) && !NO_INPUT.has(nameOf(words[0]))) ||
      (mayMake && makesGiven(words, text)),
  );
  return takes && (mentionsDeletion([text], { trust, steps }) || callsMade(text, "", steps));
}
/** Variables whose values other programs run. */
const SETS_COMMAND = /\b(?:[A-Z_]{0,40}(?:EDITOR|PAGER|COMMAND|ENV|BROWSER|ASKPASS)|GIT_[A-Z_]{1,40}|LESSOPEN|SHELL)=/;
/** Run others, but not what stands in their input. */
const NO_INPUT: ReadonlySet<string> = new Set(
  "sed gsed awk gawk mawk find gfind git tar rsync sort xargs make cargo npm yarn pnpm go rg zip install less more man time timeout nice env curl wget fzf".split(
    " ",
  ),
);
/** Whether make runs what the text writes, or what it reads from its input. */
const makesGiven = (words: readonly string[], text: string): boolean =>
  /^g?make$/.test(nameOf(words[0])) && (WRITES_MAKEFILE.test(text) || words.some((word) => INPUT_OF_MAKE.test(word)));
const WRITES_MAKEFILE = /(?:>|\btee\b)[^;|&<>\n]{0,300}(?:makefile\b|\.mk\b|\.mak\b)/i;
const INPUT_OF_MAKE = /^(?:-[A-Za-z]*f|--(?:fi|ma)[a-z]*=)?(?:-|\/dev\/(?:stdin|fd\/\d+)|\/proc\/.*)$/;
/** Marks of a printed text that the command changes: its output is another text. */
const EXPANDED = /\\[0-7xu]|[${*?[~%]/;
const isPrinted = (words: readonly string[]): boolean => SHOWN.has(nameOf(words[0])) && !(words[0] === "printf" && words.length > 2);
/** Print what their arguments say. */
const SHOWN: ReadonlySet<string> = new Set(["echo", "printf", "cat", "cd", "set", "true"]);

/** A command whose program is not written out. */
const isUnknown = ({ isUnknown, words }: ReadCommand): boolean => isUnknown && words[0] !== "[";

/** The text of a complex command, cut where another command may begin. Quotes and backslashes are left out: any of them may be a spelling. */
function splitCommands(text: string): Commands {
  return withoutQuotes(text.replaceAll(/\\\n/g, " "))
    .replaceAll(/&>>?|>[&|]|<&/g, ">")
    .split(/[;&|\n\r()`]|(?<!\$)\{(?=\s)/)
    .map((part) => withoutRedirections(part).filter((word) => word !== ""))
    .map((words) => words.slice(words.findIndex((word) => !isBefore(word))))
    .filter((words) => words.length > 0);
}
/** A redirection is no word of the command, but a text that the command gets as its input may be one. */
function withoutRedirections(part: string): readonly string[] {
  if (!/[<>]/.test(part)) return part.trim().split(/\s+/);
  const words = part
    .replaceAll(/(?<=^|\s)(?:\d+|\{\w+\})(?=[<>])/g, "")
    .replaceAll(/[<>]+/g, " $& ")
    .trim()
    .split(/\s+/);
  return words.filter((word, at) => !/^[<>]+$/.test(word) && !/^(?:>{1,2}|<|<>)$/.test(words[at - 1] ?? ""));
}
/** Words of the shell that come before a command. */
const isBefore = (word: string): boolean => BEFORE.has(word) || /^[A-Za-z_]\w*\+?=/.test(word) || /^-(?:\w*|-)$/.test(word);
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
