/** What a grant allows, in words for the owner. PURE. Everything that limits the grant is named, and nothing in it can hide from the eye. */
import type { ApprovalCondition, ApprovalRule } from "../../../protocol/gen/types.ts";
import { TRANSFER } from "./call-class.ts";
import { SANDBOX } from "./hosts.ts";
import { COMMAND } from "./rules.ts";
import type { GrantChoice, GrantedCommand, GrantedWhat, GrantScope } from "../ports/grants.ts";

const HOUR_MS = 3_600_000;
/** `session`: at most. It also ends with the conversation. */
export const GRANT_MS: Readonly<Record<Exclude<GrantChoice, "always">, number>> = {
  session: 24 * HOUR_MS,
  "1h": HOUR_MS,
  "8h": 8 * HOUR_MS,
  "30d": 30 * 24 * HOUR_MS,
};

type Visible = (text: string) => string;

/** Of hosts: what becomes of the answer when a conversation has read what one of them says (rule SB17). `open`: no answer is chosen yet. */
const HEARD = {
  open: "; in a conversation that has read an answer of such a host, only `session` holds",
  timed: "; it does not hold in a conversation that has read an answer of such a host",
  session: "",
} as const;

/** "`git push` with any further arguments, in the workspace of laptop, in the sandbox workspace, by the agent main". */
export function scopeText(
  { agentId, tool, nodeId, workspace, what }: GrantScope,
  visible: Visible,
  choice: keyof typeof HEARD = "open",
): string {
  const on =
    nodeId === undefined ? "" : ` of ${visible(nodeId)}${workspace === undefined ? "" : ` (${visible(JSON.stringify(workspace))})`}`;
  const by = `by the agent ${visible(agentId)}`;
  switch (what.kind) {
    case "commands": {
      const commands = what.commands.map((command) => grantedCommandText(command, what.sandbox === "off", visible)).join(" and ");
      return `${commands}, ${placeText(what, on, visible)}, ${by}`;
    }
    case "line":
      return `exactly \`${visible(inTicks(what.line))}\`, whatever it finds then, ${placeText(what, on, visible)}, ${by}`;
    case "hosts":
      return `any command in the sandbox ${what.sandbox}${on}, ${by}; it may reach ${what.hosts.map(visible).join(", ")}, and send there what it reads${HEARD[choice]}`;
    case "files":
      return `${visible(tool)} of files in ${what.folder === "" ? `the workspace${on}` : `the folder ${visible(what.folder)}${on}`} and below, ${by}`;
    case "destination":
      return `${visible(tool)} with ${what.to.map(([name, value]) => `${name} = ${visible(value)}`).join(", ")}${tool === TRANSFER ? "" : " and any text and files"}, ${by}`;
  }
}
function placeText({ folder, sandbox }: Pick<GrantedWhat & { kind: "line" }, "folder" | "sandbox">, on: string, visible: Visible): string {
  const where = folder === "" ? `the workspace${on}` : `the folder ${visible(folder)}${on}`;
  return `in ${where}, ${sandbox === "off" ? "without a sandbox" : `in the sandbox ${sandbox}`}`;
}
function grantedCommandText({ program, subcommand, words }: GrantedCommand, isUnconfined: boolean, visible: Visible): string {
  if (words !== undefined) return `exactly \`${visible(words.map(quoted).join(" "))}\``;
  if (subcommand !== undefined) return `\`${visible(`${program} ${subcommand}`)}\` with any further arguments`;
  return `\`${visible(program)}\` with any arguments${isUnconfined ? " that name no other folder (a link there can lead to one)" : ""}`;
}
const quoted = (word: string): string => (/^[A-Za-z0-9_./,:+@%=-]+$/.test(word) ? word : inTicks(JSON.stringify(word)));
/** A backtick would end the part that is shown as code. */
const inTicks = (text: string): string => text.replaceAll("`", "\\u0060");

/** What an answer allows beside the call. For how long is in its name. */
export function choiceText(choice: GrantChoice, scope: GrantScope, always: Omit<ApprovalRule, "id"> | undefined, visible: Visible): string {
  if (choice !== "always") return scopeText(scope, visible, choice === "session" ? choice : "timed");
  const rule = always === undefined ? "nothing" : ruleText(always, visible);
  return `a rule that allows ${rule}, for every agent and in each of your own conversations, in each mode, until you remove it; \`gsv approval grants\` lists it`;
}

/** What a rule that allows is about, in words: "`lap__Write` where path begins with "web"". */
export function ruleText({ tool, when = [] }: Pick<ApprovalRule, "tool" | "when">, visible: Visible): string {
  const conditions = when.map((condition) => visible(conditionText(condition))).join(" and ");
  return `\`${visible(tool)}\`${conditions === "" ? "" : ` where ${conditions}`}${tool.endsWith("Bash") ? shellText(when) : ""}`;
}
/** What holds for a command beside the rule's conditions (rule PO3). */
function shellText(when: readonly ApprovalCondition[]): string {
  if (!when.some(({ path, op }) => path === COMMAND && op === "equals")) return ", which allows nothing, because it names no whole command";
  const isNamed = (name: string): boolean => when.some(({ path }) => path === name);
  const places = [
    ...(isNamed("workdir") ? [] : ["in the folder of the workspace"]),
    ...(isNamed(SANDBOX) ? [] : ["in the sandbox of the machine, or without one where it has none"]),
  ];
  return places.map((place) => `, ${place}`).join("");
}
const OPERATORS: Readonly<Record<ApprovalCondition["op"], string>> = {
  equals: "is",
  contains: "contains",
  startsWith: "begins with",
  regex: "matches the regular expression",
};
function conditionText({ path, op, value, flags }: ApprovalCondition): string {
  const isWords = path === COMMAND && Array.isArray(value) && value.every((word) => typeof word === "string");
  const shown = isWords ? `\`${value.map(quoted).join(" ")}\`` : (JSON.stringify(value) ?? "nothing");
  return `${path} ${OPERATORS[op]} ${shown}${flags === undefined || flags === "" ? "" : ` with the flags ${flags}`}`;
}
