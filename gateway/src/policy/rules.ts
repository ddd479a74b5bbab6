/**
 * The rules of `toolApproval`, compiled, and whether one applies to a call. PURE. A rule that allows must match for certain. A rule that
 * denies or asks also applies where it cannot be ruled out: otherwise another spelling of the same act would avoid it (rule PO4).
 */
import type { ApprovalCondition, ApprovalDecision, ApprovalRule } from "../../../protocol/gen/types.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { matcherOf } from "../tools/guest-tools.ts";
import { once } from "./once.ts";
import { foldedPath, isPathName, normalPath } from "./paths.ts";
import { compileRegex, MAX_SEARCHED_CHARS, type Regex, type RegexEngine } from "./regex.ts";
import { runsNoArgument } from "./programs.ts";
import { readShell } from "./shell.ts";
import { asGit, GIT_PROGRAM, runsAnother, takesTexts } from "./wrappers.ts";

export type Match = "yes" | "no" | "unsure";
/** One command of a Bash call. */
export interface ShellUnit {
  /** Its argument vector. Absent: the text was not understood. */
  readonly words: readonly string[] | undefined;
  /** That of the whole call. */
  readonly text: string;
  readonly facts: () => Facts;
}
export const unitOf = (text: string, words?: readonly string[]): ShellUnit => ({ text, words, facts: once(() => factsOf(text, words)) });

/** The tool whose argument `command` is a text for a shell. */
export const SHELL_TOOL = "Bash";
export const COMMAND = "command";
export const isBashCall = ({ target, tool }: Pick<PolicyCall, "target" | "tool">): boolean => target.kind === "node" && tool === SHELL_TOOL;

/** The text for a shell in these arguments, if they have one of their own. */
export const commandText = (args: PolicyCall["args"]): unknown => (Object.hasOwn(args, COMMAND) ? args[COMMAND] : undefined);

export interface CompiledCondition {
  readonly path: readonly string[];
  readonly op: ApprovalCondition["op"];
  readonly value: unknown;
  /** For a condition on `command`: the words to compare. */
  readonly vector: readonly string[] | undefined;
  /** The same in one spelling: for a rule that denies or asks, `/bin/RM` is `rm`, as it is on some disks, and `./a//b` is `a/b`. */
  readonly bare: readonly string[] | undefined;
  /** The words by which a command begins that another one may run. Empty: the condition does not name one. */
  readonly named: readonly string[];
  /** Absent for other operators, and for a pattern that is not valid. */
  readonly regex: Regex | undefined;
}
export interface CompiledRule {
  /** `rule:no-rm`. */
  readonly name: string;
  /** Whether it is about the tool with this full name. */
  readonly isFor: (tool: string) => boolean;
  readonly decision: ApprovalDecision;
  /** The owner's words about it: its id, and its reason. */
  readonly about: string;
  readonly when: readonly CompiledCondition[];
}

/** Begins the name of each rule of the owner. */
export const RULE = "rule:";

export const compileRules = (rules: readonly ApprovalRule[], engine: RegexEngine): readonly CompiledRule[] =>
  rules.map(({ id, tool, decision, reason, when = [] }) => ({
    name: `${RULE}${id}`,
    isFor: matcherOf(tool),
    decision,
    about: reason === undefined || reason === "" ? id : `${id} (${reason})`,
    when: when.map((condition) => compileCondition(condition, engine)),
  }));
function compileCondition({ path, op, value, flags }: ApprovalCondition, engine: RegexEngine): CompiledCondition {
  const compiled = op === "regex" ? compileRegex(engine, value, flags) : undefined;
  const vector = path === COMMAND ? vectorOf(op, value) : undefined;
  const isBeginning = path === COMMAND && (op === "startsWith" || op === "equals");
  const named = vector ?? (typeof value === "string" ? value.trim().split(/\s+/) : []);
  return {
    path: path.split("."),
    op,
    value,
    vector,
    bare: vector && bareOf(vector),
    named: isBeginning ? withoutAlias(subcommandsApart(named.filter((word) => word !== ""))) : [],
    regex: compiled?.ok === true ? compiled.regex : undefined,
  };
}
/** A list of words, or, for `equals`, a text that is one plain command. */
export function vectorOf(op: ApprovalCondition["op"], value: unknown): readonly string[] | undefined {
  if (op !== "equals" && op !== "startsWith") return undefined;
  if (Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string")) return value as readonly string[];
  if (op !== "equals" || typeof value !== "string") return undefined;
  const read = readShell(value);
  return read.kind === "plain" && read.commands.length === 1 ? read.commands[0]?.words : undefined;
}

/** Whether a rule names the whole vector of a command: only then it can allow one. */
export const namesCommand = ({ when }: Pick<CompiledRule, "when">): boolean =>
  when.some(({ op, vector }) => op === "equals" && vector !== undefined);

/** Whether all conditions of a rule hold. `unit` is given for a Bash call. */
export function matchRule({ decision, when }: CompiledRule, args: PolicyCall["args"], unit: ShellUnit | undefined): Match {
  let all: Match = "yes";
  for (const condition of when) {
    const isCommand = unit !== undefined && condition.path.length === 1 && condition.path[0] === COMMAND;
    const match = isCommand ? matchCommand(condition, unit, decision === "allow") : matchValue(condition, args, decision === "allow");
    if (match === "no") return "no";
    if (match === "unsure") all = "unsure";
  }
  return decision === "allow" && unit !== undefined && !namesRest(when, args) ? "no" : all;
}

/** They change neither what a command does nor where. */
const HOW_LONG: ReadonlySet<string> = new Set([COMMAND, "timeout", "background", "yieldMs"]);
/**
 * The same words do something else in another folder, where a program of the agent may have put its own settings, and outside the sandbox.
 * So a rule that allows a command names these arguments, too.
 */
const namesRest = (when: CompiledRule["when"], args: PolicyCall["args"]): boolean =>
  Object.entries(args).every(
    ([name, value]) => HOW_LONG.has(name) || (name === "workdir" && isWorkspace(value)) || when.some(({ path: [first] }) => first === name),
  );
const isWorkspace = (folder: unknown): boolean => folder === "" || folder === "." || folder === "./";

/** What every rule asks about a command. */
interface Facts {
  readonly bare: readonly string[];
  /** Most often they are the same text, and a pattern takes its time. */
  readonly texts: readonly string[];
  /** It runs another command. */
  readonly runs: boolean;
  /** It only reads and prints. */
  readonly isPrinter: boolean;
}
function factsOf(text: string, words: readonly string[] | undefined): Facts {
  if (words === undefined) return { bare: [], texts: [text], runs: false, isPrinter: false };
  const bare = bareOf(words);
  const texts = [...new Set([text, words.join(" "), bare.join(" ")])];
  return { bare, texts, runs: runsAnother(words), isPrinter: runsNoArgument(words) };
}
function matchCommand(condition: CompiledCondition, unit: ShellUnit, allows: boolean): Match {
  const { op, value, vector, named, regex } = condition;
  const { words } = unit;
  if (allows) return op === "equals" && vector !== undefined && words !== undefined && isEqual(words, vector) ? "yes" : "no";
  const { bare, texts, runs, isPrinter } = unit.facts();
  const mayBe = (given: readonly string[]): boolean =>
    runs ||
    (!isPrinter && (mayRun(given, named) || isShortened(bare, condition))) ||
    (op === "startsWith" && beginsLike(bare, named, !isPrinter));
  const otherwise = (): Match => (words === undefined || mayBe(words) ? "unsure" : "no");
  if (vector !== undefined) {
    const fits = (given: readonly string[], wanted = vector): boolean =>
      isEqual(op === "equals" ? given : given.slice(0, wanted.length), wanted);
    return words !== undefined && (fits(words) || fits(bare, condition.bare)) ? "yes" : otherwise();
  }
  if (op === "regex" && (regex === undefined || texts.some((given) => given.length > MAX_SEARCHED_CHARS))) return "unsure";
  return texts.some((given) => holds(op, given, value, regex)) ? "yes" : otherwise();
}

/**
 * Whether a later word begins what a rule names, or a text among the words does: a program that no list knows may run it. Those that only read
 * and print run nothing.
 */
function mayRun([program = "", ...args]: readonly string[], named: readonly string[]): boolean {
  const [first, ...others] = named;
  if (first === undefined) return false;
  const wanted = familyIn(first);
  const isIn = (words: readonly string[]): boolean => {
    const given = subcommandsApart(words);
    return given.some((word, at) => familyIn(word) === wanted && others.every((other, index) => isLike(given[at + 1 + index], other)));
  };
  if (isIn(args)) return true;
  const isText = takesTexts(program) ? () => false : (word: string): boolean => /\s|^-.*=/.test(word);
  return args.some((text) => isText(text) && isIn(text.split(/[\s;&|()"'`=]+/)));
}
/**
 * Whether a command may be what a rule names, with options before it, in another order or in other words: `git -C . push`, `rm -r --force`. Only
 * the program knows what its options mean, so each that begins with the same letter counts.
 */
function beginsLike([program = "", ...args]: readonly string[], [first = "", ...wanted]: readonly string[], mayBeShort: boolean): boolean {
  if (wanted.length === 0 || familyIn(program) !== familyIn(first)) return false;
  const letters = new Set(args.flatMap(lettersOf));
  let at = 0;
  return wanted.every((word) => {
    if (word.startsWith("-")) return args.includes(word) || lettersOf(word).every((letter) => letters.has(letter));
    const found = args.findIndex((arg, index) => index >= at && (mayBeShort ? isLike(arg, word) : arg === word));
    at = found + 1;
    return at > 0;
  });
}
/** `-rf` and `--recursive --force` have the same ones. */
function lettersOf(option: string): readonly string[] {
  if (option.startsWith("--")) return option.slice(2, 3).toLowerCase().split("");
  return option.startsWith("-") ? option.slice(1).toLowerCase().split("") : [];
}
/**
 * Whether a word may be the other one. Some programs take the beginning of a subcommand for the whole (`npm pub`), and a path from elsewhere
 * may lead to a file of the workspace.
 */
function isLike(given: string | undefined, wanted: string): boolean {
  if (given === undefined || given === wanted) return given !== undefined;
  if (given.startsWith("-")) return false;
  const [path, other] = [plainPath(given), plainPath(wanted)];
  if (path === other || (isElsewhere(given) && !isElsewhere(wanted) && path.endsWith(`/${other}`))) return true;
  return given.length >= 2 && wanted.startsWith(given);
}
/** Whether a command is what a rule names, with words after the program that are shortened. */
const isShortened = (given: readonly string[], { op, bare = [] }: CompiledCondition): boolean =>
  bare.length > 0 &&
  (op === "equals" ? given.length === bare.length : given.length >= bare.length) &&
  bare.every((wanted, at) => (at === 0 ? familyIn(given[at] ?? "") === familyIn(wanted) : isLike(given[at], wanted)));
/** `git-push` is `git push`, wherever it stands. */
const subcommandsApart = (words: readonly string[]): readonly string[] =>
  words.some((word) => GIT_PROGRAM.test(word)) ? words.flatMap(asGit) : words;
/** `/bin/RM` is `rm`. */
const programIn = (program: string): string => program.slice(program.lastIndexOf("/") + 1).toLowerCase();
/** `pip3.12` is `pip`, or may be. */
function familyIn(program: string): string {
  const name = programIn(program);
  return /[0-9.]$/.test(name) ? name.replace(/(?<=[a-z])[0-9.]+$/, "") : name;
}
function bareOf([program, ...rest]: readonly string[]): readonly string[] {
  return program === undefined ? [] : withoutAlias([...asGit(programIn(program)), ...rest.map(plainPath)]);
}
/** `./a//b` is `a/b`. */
const plainPath = (word: string): string => (word.includes("/") && !word.startsWith("-") && normalPath(word)) || word;
/** Other names of subcommands of some programs, each with the usual name. */
const ALIASES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  npm: {
    ...aliases("run", "run-script rum urn"),
    ...aliases("install", "i in ins inst insta instal isnt isnta isntal isntall add"),
    ...aliases("uninstall", "un unlink remove rm r"),
    ...aliases("test", "t tst"),
    ...aliases("exec", "x"),
    ...aliases("update", "up upgrade udpate"),
    ...aliases("config", "c"),
  },
  git: aliases("add", "stage"),
  cargo: {
    ...aliases("build", "b"),
    ...aliases("check", "c"),
    ...aliases("doc", "d"),
    ...aliases("run", "r"),
    ...aliases("remove", "rm"),
    ...aliases("test", "t"),
  },
};
function aliases(usual: string, others: string): Readonly<Record<string, string>> {
  return Object.fromEntries(others.split(" ").map((other) => [other, usual]));
}
/** The subcommand in its usual name. A word after an option may be the option's value, or the subcommand. */
function withoutAlias(words: readonly string[]): readonly string[] {
  const [program = ""] = words;
  const known = Object.hasOwn(ALIASES, program) ? ALIASES[program] : undefined;
  if (known === undefined) return words;
  const isOption = (at: number): boolean => words[at]?.startsWith("-") === true;
  const last = words.findIndex((_, at) => at > 0 && !isOption(at) && !isOption(at - 1));
  const usual = (word: string): string => (Object.hasOwn(known, word) ? known[word] : undefined) ?? word;
  return words.map((word, at) => (at > 0 && (last < 0 || at <= last) ? usual(word) : word));
}

function matchValue({ path, op, value, regex }: CompiledCondition, args: PolicyCall["args"], allows: boolean): Match {
  const given = valueAt(args, path);
  if (given === undefined) return "no";
  if (op === "equals" && (typeof given !== "string" || typeof value !== "string")) {
    if (isDeepEqual(given, value)) return "yes";
    // `5` is also written "5".
    return !allows && (typeof given === "object" ? typeof value === "string" : String(given) === String(value)) ? "yes" : "no";
  }
  if (typeof given !== "string") return allows ? "no" : "yes";
  if (op === "regex" && (regex === undefined || given.length > MAX_SEARCHED_CHARS)) return allows ? "no" : "unsure";
  const forms = isPathName(path.at(-1) ?? "") ? [given, normalPath(given)] : [given];
  if (allows) return forms.every((form) => holds(op, form, value, regex)) ? "yes" : "no";
  // Some disks take `SOUL.md` and `soul.md` for one file.
  const folded = forms.length > 1 && typeof value === "string" && holds(op, foldedPath(given), foldedPath(value), regex);
  if (folded || forms.some((form) => holds(op, form, value, regex))) return "yes";
  return forms.length > 1 && isElsewhere(given) && beginsInside(op, value) ? "unsure" : "no";
}
/** The path does not begin in the workspace, whose place only the machine knows. It may lead back. */
const isElsewhere = (path: string): boolean => /^(?:[/~\\]|[A-Za-z]:)/.test(path) || normalPath(path).startsWith("..");
/** The condition names paths from the workspace on. */
const beginsInside = (op: ApprovalCondition["op"], value: unknown): boolean =>
  typeof value === "string" && (op === "regex" ? /^\^(?!\(*\/)/ : /^[^/~]/).test(value) && op !== "contains";

function holds(op: ApprovalCondition["op"], given: string, value: unknown, regex: Regex | undefined): boolean {
  if (op === "regex") return regex?.test(given) === true;
  if (typeof value !== "string") return false;
  return op === "equals" ? given === value : op === "startsWith" ? given.startsWith(value) : given.includes(value);
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}
const isEqual = (left: readonly string[], right: readonly string[]): boolean =>
  left.length === right.length && left.every((word, index) => word === right[index]);
function isDeepEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (typeof left !== "object" || typeof right !== "object" || left === null || right === null) return false;
  if (Array.isArray(left) !== Array.isArray(right)) return false;
  const names = Object.keys(left);
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => Object.hasOwn(right, name) && isDeepEqual(Reflect.get(left, name), Reflect.get(right, name)))
  );
}
