/** What is wrong with the settings of the policy (rule PO6). PURE. Reported when they are set, because a rule that never applies protects nothing. */
import { nearest } from "../../../protocol/runtime/nearest.ts";
import type { ApprovalConfig, ApprovalCondition, ApprovalRule } from "../../../protocol/gen/types.ts";
import type { ToolEntry } from "../ports/tool-entry.ts";
import { matches } from "../tools/guest-tools.ts";
import { NATIVE_PREFIX, SEPARATOR } from "../tools/registry.ts";
import { HOSTS, SANDBOX, WITH_HOSTS } from "./hosts.ts";
import { foldedPath, isPathName } from "./paths.ts";
import { unconfinedGrant } from "./programs.ts";
import { compileRegex, type RegexEngine } from "./regex.ts";
import { COMMAND, SHELL_TOOL, vectorOf } from "./rules.ts";

export interface KnownTools {
  readonly native: readonly ToolEntry[];
  /** The tools of the connected machines. */
  readonly machines: readonly ToolEntry[];
  /** Full names of the tools of all machines, the absent ones included. */
  readonly machineNames: readonly string[];
}
export interface RuleProblem {
  /** `toolApproval.rules[2]`. */
  readonly setting: string;
  readonly problem: string;
  /** The rule can never apply. Otherwise: it does less than it seems to, for now. */
  readonly isFatal: boolean;
}

const SHELL_NAME = `${SEPARATOR}${SHELL_TOOL}`;
const onlyShell = (pattern: string): boolean => pattern.endsWith(SHELL_NAME);
const mayBeShell = (pattern: string): boolean =>
  onlyShell(pattern) || (pattern.includes("*") && SHELL_NAME.endsWith(pattern.slice(pattern.lastIndexOf("*") + 1)));

export function policyProblems(config: ApprovalConfig | undefined, engine: RegexEngine, known: KnownTools): readonly RuleProblem[] {
  const { mode, defaultDecision, rules = [] } = config ?? {};
  const fatal = (setting: string, problem: string): RuleProblem => ({ setting, problem, isFatal: true });
  return [
    ...(mode === "full"
      ? [
          fatal(
            "toolApproval.mode",
            "full is not for the configuration. Set it for one conversation and a time: `gsv chat '/mode full 2h'`",
          ),
        ]
      : []),
    ...(mode !== undefined && defaultDecision !== undefined
      ? [
          fatal(
            "toolApproval.mode",
            "mode and defaultDecision both decide about calls that no rule decides. Remove one: `gsv config unset toolApproval.defaultDecision`",
          ),
        ]
      : []),
    ...(mode === undefined && defaultDecision === "allow"
      ? [
          {
            setting: "toolApproval.defaultDecision",
            problem:
              "allow asks nothing: deletions, commands outside the sandbox and messages to others are made unless a rule denies them. To be asked: `gsv config unset toolApproval.defaultDecision`",
            isFatal: false,
          },
        ]
      : []),
    ...rules.flatMap((rule, index): readonly RuleProblem[] => {
      const setting = ruleName(index);
      const never = neverApplies(rule, engine, known) ?? shadowedBy(rule, rules.slice(0, index)) ?? namedAs(rule, rules.slice(0, index));
      if (never !== undefined) return [fatal(setting, never)];
      return [...cautions(rule, known), ...spellings(rule, rules)].map((problem) => ({ setting, problem, isFatal: false }));
    }),
  ];
}

/** The first problem that a change introduces: problems that were stored before block no change. */
export function newFatalProblem(before: readonly string[], problems: readonly RuleProblem[]): string | undefined {
  const found = problems.find(({ isFatal, problem }) => isFatal && !before.includes(problem));
  return found && `${found.setting}: ${found.problem}`;
}

function neverApplies({ tool, decision, when = [] }: ApprovalRule, engine: RegexEngine, { native }: KnownTools): string | undefined {
  const own = native.find(({ definition }) => definition.name === tool);
  if (own === undefined && !tool.includes("*")) {
    const names = native.map(({ definition }) => definition.name);
    if (tool.startsWith(NATIVE_PREFIX)) {
      const meant = nearest(tool, names);
      return `there is no tool ${tool}${meant === undefined ? "" : `. Did you mean ${meant}?`}`;
    }
    if (!tool.includes(SEPARATOR))
      return `${JSON.stringify(tool)} names no tool. Write machine${SEPARATOR}Tool, with * for any characters, such as *${SEPARATOR}${tool || SHELL_TOOL}`;
  }
  for (const condition of when) {
    const problem = conditionProblem(condition, engine) ?? (own && unknownArgument(condition, [own]));
    if (problem !== undefined) return problem;
  }
  return contradiction(when) ?? (onlyShell(tool) ? shellProblem(decision, when) : undefined);
}
/** Two values that one argument can't have. */
function contradiction(when: readonly ApprovalCondition[]): string | undefined {
  const values = new Map<string, string>();
  for (const { path, op, value } of when) {
    if (op !== "equals" || path === COMMAND) continue;
    const isOfPath = typeof value === "string" && isPathName(path.split(".").at(-1) ?? "");
    const [text, known] = [JSON.stringify(isOfPath ? foldedPath(value) : value), values.get(path)];
    if (known !== undefined && known !== text) return `no call has ${known} and ${text} as its ${path}. Write a rule for each`;
    values.set(path, text);
  }
  return undefined;
}
function shellProblem(decision: ApprovalRule["decision"], when: readonly ApprovalCondition[]): string | undefined {
  const profile = when.find(({ path, op, value }) => path === SANDBOX && op === "equals" && !ASKED_PROFILES.includes(value));
  if (profile !== undefined) return `no call has ${JSON.stringify(profile.value)} as its ${SANDBOX}. It is ${ASKED_PROFILES.join(", ")}`;
  if (decision !== "allow") return undefined;
  const wrong = when.find((condition) => condition.path === COMMAND && !isWholeCommand(condition));
  const namesHosts = when.some(({ path }) => path === HOSTS || path.startsWith(`${HOSTS}.`));
  if (namesHosts && !when.some(isForHosts))
    return `a rule that allows ${SHELL_TOOL} with ${HOSTS} also names the ${SANDBOX} of such a call. Add {"path": "${SANDBOX}", "op": "equals", "value": "${WITH_HOSTS}"}`;
  if (wrong === undefined && when.some(isWholeCommand)) return undefined;
  const why =
    wrong === undefined
      ? `it would allow commands that it does not name: it has no condition on ${COMMAND}`
      : wrong.op === "equals"
        ? `${JSON.stringify(wrong.value)} is no plain command: it has a variable, a pattern, a redirection, or more than one command`
        : `${wrong.op} compares a part of a command`;
  return `${why}. A rule that allows ${SHELL_TOOL} names the whole command: {"path": "command", "op": "equals", "value": ["git", "status"]}`;
}
const ASKED_PROFILES: readonly unknown[] = ["off", WITH_HOSTS, "read-only"];
const isForHosts = ({ path, op, value }: ApprovalCondition): boolean => path === SANDBOX && op === "equals" && value === WITH_HOSTS;
const isWholeCommand = ({ path, op, value }: ApprovalCondition): boolean =>
  path === COMMAND && op === "equals" && vectorOf(op, value) !== undefined;

function conditionProblem({ path, op, value, flags }: ApprovalCondition, engine: RegexEngine): string | undefined {
  if (path.split(".").includes(""))
    return `${JSON.stringify(path)} names no argument. Write a name, such as path, or names with dots between them`;
  if (op !== "regex" && flags !== undefined && flags !== "") return `flags are for regex, not for ${op}`;
  if (op === "regex") {
    const compiled = compileRegex(engine, value, flags);
    return compiled.ok ? undefined : `the regular expression on ${path} is not valid: ${compiled.problem}`;
  }
  const isText = typeof value === "string" && value !== "";
  if (op === "contains" && !isText) return `the value of contains on ${path} is a text`;
  if (op === "startsWith" && !isText && !(path === COMMAND && vectorOf(op, value) !== undefined))
    return `the value of startsWith on ${path} is a text${path === COMMAND ? " or a list of words" : ""}`;
  return undefined;
}
/** Undefined: one of the tools has the argument, or none of them says which it has. */
function unknownArgument({ path }: ApprovalCondition, tools: readonly ToolEntry[]): string | undefined {
  const [name = ""] = path.split(".");
  const lists = tools.map(({ definition }) => Object.keys(Object(definition.inputSchema["properties"])));
  if (lists.length === 0 || lists.some((names) => names.length === 0 || names.includes(name))) return undefined;
  const names = [...new Set(lists.flat())];
  return `${tools[0]?.definition.name} has no argument ${name}. It has ${names.join(", ")}`;
}

const ruleName = (index: number): string => `toolApproval.rules[${index}]`;

/** The audit and the questions name a rule by its id. */
function namedAs({ id }: ApprovalRule, earlier: readonly ApprovalRule[]): string | undefined {
  const index = earlier.findIndex((other) => other.id === id);
  return index < 0 ? undefined : `${ruleName(index)} has the id ${id}, too: give this one another id`;
}

/** An earlier rule that applies to every call that this one applies to. */
function shadowedBy(rule: ApprovalRule, earlier: readonly ApprovalRule[]): string | undefined {
  const conditions = JSON.stringify(rule.when ?? []);
  const index = earlier.findIndex(
    ({ tool, decision, when = [] }) =>
      matches(tool, rule.tool) &&
      (when.length === 0 || JSON.stringify(when) === conditions) &&
      // A rule that allows leaves commands that it does not name to later rules.
      (decision !== "allow" || !mayBeShell(rule.tool) || when.some(isWholeCommand)),
  );
  return index < 0
    ? undefined
    : `it never applies, because ${ruleName(index)} before it applies to the same calls. Put it before that rule, or remove one`;
}

function cautions({ tool, decision, when = [] }: ApprovalRule, { native, machines, machineNames }: KnownTools): readonly string[] {
  const isKnown = machineNames.some((name) => matches(tool, name)) || native.some(({ definition }) => matches(tool, definition.name));
  const found = [...native, ...machines].filter(({ definition }) => matches(tool, definition.name));
  const missing = when.flatMap((condition) => unknownArgument(condition, found) ?? [])[0];
  return [
    ...(isKnown ? [] : [`no machine that is known has a tool ${tool}, so the rule applies to nothing now`]),
    ...(missing === undefined ? [] : [missing]),
    ...(decision === "allow" && mayBeShell(tool) && !when.some(isWholeCommand)
      ? [`it allows no command of ${SHELL_TOOL}: such a rule names one plain command`]
      : []),
    ...(decision === "allow" && mayBeShell(tool) && when.some(({ path, value }) => path === SANDBOX && value === "off")
      ? when.flatMap(changingCommand)
      : []),
  ];
}

/** Warns about a command that is allowed outside the sandbox when a command in the sandbox can change what it does (rule GR3). */
function changingCommand(condition: ApprovalCondition): readonly string[] {
  const words = isWholeCommand(condition) ? vectorOf(condition.op, condition.value) : undefined;
  if (words === undefined || unconfinedGrant(words) !== undefined) return [];
  return [
    `outside the sandbox ${words[0]} may start or write what a file of its folder says, and a command in the sandbox can change that file: the rule gives such commands a way out`,
  ];
}

/** How a condition writes the paths that it names. Undefined: it may name both kinds, or it is about something else. */
function writtenAs({ path, op, value }: ApprovalCondition): "absolute" | "relative" | undefined {
  if (typeof value !== "string" || op === "contains" || !isPathName(path.split(".").at(-1) ?? "")) return undefined;
  const start = op === "regex" ? /^\^\(*(?=[/~\w-])/.exec(value)?.[0] : "";
  if (start === undefined || value === start) return undefined;
  return /^(?:[/~\\]|[A-Za-z]:)/.test(value.slice(start.length)) ? "absolute" : "relative";
}
/** Where the workspace is, only its machine knows: so the gateway cannot compare the two kinds of paths (rule PO4). */
function spellings({ tool, decision, when = [] }: ApprovalRule, rules: readonly ApprovalRule[]): readonly string[] {
  const isWritten = (path: string, as: string): boolean =>
    rules.some(
      (rule) => rule.tool === tool && rule.decision === decision && rule.when?.some((it) => it.path === path && writtenAs(it) === as),
    );
  const texts = when.flatMap((condition) => {
    const { path, op, value } = condition;
    const as = writtenAs(condition);
    if (as === undefined || isWritten(path, as === "absolute" ? "relative" : "absolute")) return [];
    if (as === "absolute")
      return `its ${path} is not compared with relative paths of a call. For a place in the workspace, add a rule with the path from there on, such as "src"`;
    // Paths of the agent's own workspace are all relative, and a question about an absolute path is what such a rule wants.
    if (tool.startsWith(NATIVE_PREFIX) || decision === "ask") return [];
    const [start = "", rest = ""] = op === "regex" ? [String(value).slice(0, 1), String(value).slice(1)] : ["", String(value)];
    const example = JSON.stringify(`${start}/FOLDER/OF/WORKSPACE/${rest}`);
    return decision === "allow"
      ? `it allows no absolute ${path} of a call. To allow it too, add a rule with ${example}`
      : `a call with an absolute ${path} asks instead. To deny it too, add a rule with ${example}`;
  });
  return texts.slice(0, 1);
}
