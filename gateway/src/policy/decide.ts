/**
 * Decides whether a tool call may be made now (rule PO1). PURE. Asked in this order: the rules of `toolApproval`, what others have
 * written into the conversation (matrix.ts), the mode; a grant answers a question of the last two, and the agent's definition may turn an
 * allowance into a question. Hard denials come before: a caller has no entry for a tool that it may not use. The node's own policy may
 * tighten the decision.
 */
import type { ApprovalConfig, PolicyClass } from "../../../protocol/gen/types.ts";
import type { Decision, PolicyCall, PolicyMode } from "../ports/policy.ts";
import { isListed } from "../agents/definition.ts";
import type { Grant } from "../ports/grants.ts";
import { commandOf, covers, type GrantContext, grantRule, grantsOf, offerOf, onlyReads, scopeOf } from "./grants.ts";
import type { DeletionReader } from "./deletion/reading.ts";
import { hasSandbox, isOutside } from "./hosts.ts";
import { isForeign, isUnsure, type Taint } from "../ports/taint.ts";
import { guardedWhy, labelText, isNotSpared, matrixWhy } from "./matrix.ts";
import { classOf, memoryChange, remembersForLong } from "./call-class.ts";
import { type JobsMade, modeVerdict } from "./modes.ts";
import { complexityText } from "./complexity-text.ts";
import { once } from "./once.ts";
import { isPlain, namesGit } from "./programs.ts";
import { reachText } from "./reach-text.ts";
import type { RegexEngine } from "./regex.ts";
import {
  commandText,
  type CompiledRule,
  compileRules,
  isBashCall,
  matchRule,
  namesCommand,
  RULE,
  type ShellUnit,
  unitOf,
} from "./rules.ts";
import { type Complexity, readShell } from "./shell.ts";

export interface Policy {
  readonly rules: readonly CompiledRule[];
  /** The configured mode. Absent: `defaultDecision`, else everything is allowed. */
  readonly mode: PolicyMode | undefined;
  readonly defaultDecision: ApprovalConfig["defaultDecision"];
  readonly deletions: DeletionReader;
}
/** The parts that are loaded on first use (load.ts). */
export interface PolicyParts {
  readonly regex: RegexEngine;
  readonly deletions: DeletionReader;
}
export interface PolicyContext {
  readonly policy: Policy;
  /** The session's own mode, while it holds. */
  readonly mode?: PolicyMode | undefined;
  /** False: the session is another person's. */
  readonly isOwners: boolean;
  /** The mode where the configuration says nothing: for calls of a model, not for those that a client makes itself. */
  readonly unset?: PolicyMode | undefined;
  /** What the conversation has read when the call is made. Absent: nothing of others. */
  readonly taint?: Taint | undefined;
  /** The run was not plainly caused by the owner: by another conversation, a machine, or in a group. */
  readonly byOthers?: boolean;
  /** The owner's own direct conversations on channels (rule PO16). */
  readonly ownPlaces?: readonly string[];
  /** The jobs that the agent has made before this call (rule SC11). Absent: a client's call, which nothing counts. */
  readonly jobsMade?: JobsMade | undefined;
  /** Tools of which the agent's definition asks about each call (rule AD7). */
  readonly alwaysAsked?: readonly string[];
  /** What the owner has allowed by earlier answers and still holds. Absent: a client's call, which no grant is for. */
  readonly granted?: Granted | undefined;
}
export interface Granted extends Omit<GrantContext, "isOwners" | "taint" | "deletions"> {
  readonly grants: readonly Grant[];
}
/** The mode of a model's calls without any setting. */
export const DEFAULT_MODE: PolicyMode = "auto";

/** The rule of a denial whose cause is an error of the policy. */
export const POLICY_ERROR = "policy.error";
const FAILED: Decision = {
  verdict: "deny",
  rule: POLICY_ERROR,
  text: "Not run: the policy could not decide about this call, so it was denied. Tell the user; `gsv config get toolApproval` shows the rules.",
};

export const policyOf = (config: ApprovalConfig | undefined, { regex, deletions }: PolicyParts): Policy => ({
  rules: compileRules(config?.rules ?? [], regex),
  mode: config?.mode,
  defaultDecision: config?.defaultDecision,
  deletions,
});

/** Never throws: an error is a denial. */
export function decide(call: PolicyCall, context: PolicyContext): Decision {
  try {
    return decideUnits(call, unitsOf(call), context);
  } catch {
    return FAILED;
  }
}
function decideUnits(call: PolicyCall, units: readonly Unit[], context: PolicyContext): Decision {
  const grants = grantsFor(call, context);
  const general: General = { byMode: once(() => byMode(call, context)), byMatrix: once(() => byMatrix(call, context)) };
  const rules = context.policy.rules.filter((rule) => rule.isFor(call.name));
  const decisions = units.map((unit) => decideUnit(call, unit, context, { ...general, rules, grants }));
  const decision = strictest(decisions);
  if (decision.verdict !== "deny" && isListed(context.alwaysAsked, call.name)) {
    const why = [ALWAYS_WHY, ...(decision.verdict === "ask" ? [decision.why] : [])].join(" ");
    const onlyOnce = grants === undefined ? "" : ` ${onceText(call, context, true)}`;
    return {
      verdict: "ask",
      rule: ALWAYS_ASKED,
      why: why + reachText(call) + gitText(call) + labelText(context.taint) + onlyOnce,
    };
  }
  if (decision.verdict !== "ask") return decision;
  const { taint, ...ownWords } = context;
  // Without what others have written, or may have, the call would not need a word.
  const offersTrust =
    isUnsure(taint) && context.isOwners && context.byOthers !== true && decideUnits(call, units, ownWords).verdict === "allow";
  const why = decision.why + reachText(call) + gitText(call) + labelText(taint) + (offersTrust ? TRUST : "");
  if (grants === undefined) return { ...decision, why };
  // A rule that asks is the owner's word about every such call: an answer does not overrule it.
  const isRules = decisions.some(({ verdict, rule }) => verdict === "ask" && !isRest(rule));
  const offer = isRules ? undefined : offerOf(call, grants, grants.wanted);
  if (offer !== undefined) return { ...decision, why, offer };
  return { ...decision, why: `${why} ${offersTrust ? UNTIL_TRUST : onceText(call, context, isRules)}` };
}
/** What is decided about a call as a whole, whichever of its commands asks first. */
interface General {
  readonly byMode: () => Decision;
  readonly byMatrix: () => ReturnType<typeof byMatrix>;
}
/** Outside a sandbox git starts what a command in the sandbox may have planted (rule GR3). */
function gitText(call: PolicyCall): string {
  const command = isBashCall(call) ? commandText(call.args) : undefined;
  const isConfined = !isOutside(call.args) && hasSandbox(call.sandbox);
  return isConfined || typeof command !== "string" || !namesGit(command) ? "" : GIT_WHY;
}
const GIT_WHY =
  " Git runs the hooks and programs that the repository's configuration names, and an earlier command may have changed which.";
/** No answer is offered that would hold for later calls. */
export const ALWAYS_ASKED = "autonomy.requires_approval";
const ALWAYS_WHY = "The agent's definition asks about each call of this tool.";
/** Without a sandbox such a program would be granted: it only opens what its arguments name (rule GR3). */
function opensFilesOutside(call: PolicyCall): boolean {
  const command = isBashCall(call) && isOutside(call.args) && hasSandbox(call.sandbox) ? commandText(call.args) : undefined;
  const read = typeof command === "string" ? readShell(command) : undefined;
  return read?.kind === "plain" && read.commands.every(({ words }) => isPlain(words));
}
const TRUST = " If you have checked it, send /trust in that conversation, and the next such calls do not ask.";
const UNTIL_TRUST = "Until then such calls ask each time.";
/** Why a question offers no more than the one call (rule GR4). */
function onceText(call: PolicyCall, { isOwners, taint }: PolicyContext, isRules: boolean): string {
  const onlyOnce = "It can be allowed once only";
  if (!isOwners) return `${onlyOnce}: the conversation is another person's.`;
  if (isForeign(taint)) return `${onlyOnce}, because of what the conversation has read.`;
  if (isRules) return `${onlyOnce}: such calls ask each time.`;
  if (opensFilesOutside(call)) return `${onlyOnce}: a command in the sandbox can make its name a link to any other file.`;
  return `${onlyOnce}: what a later call like it does is not known.`;
}
const isRest = (rule: string): boolean => rule === DEFAULT_RULE || rule.startsWith(MODE_RULE);
const MODE_RULE = "mode:";
const DEFAULT_RULE = "toolApproval.defaultDecision";

const grantsFor = (call: PolicyCall, { isOwners, taint, granted, policy: { deletions } }: PolicyContext): Grants | undefined =>
  granted && { ...granted, isOwners, taint, deletions, wanted: once(() => scopeOf(call, { ...granted, isOwners, deletions })) };
interface Grants extends Granted, GrantContext {
  /** The scope of the call. Most calls ask nothing, and it takes a reading of the whole command. */
  readonly wanted: () => ReturnType<typeof scopeOf>;
}
/** A question of the mode needs no answer when a grant has given it. A denial of the mode stays (rule GR5). */
function byGrant(decision: Decision, unit: Unit, grants: Grants | undefined, counts = (_: Grant) => true): Decision {
  if (decision.verdict !== "ask" || grants === undefined || grants.grants.length === 0) return decision;
  const wanted = grants.wanted();
  if (wanted === undefined) return decision;
  const { what } = wanted;
  const command = unit?.words === undefined || what.kind !== "commands" ? undefined : commandOf(unit.words, what.sandbox, grants.deletions);
  const grant = grants.grants.find((one) => counts(one) && covers(one.scope, wanted, command));
  return grant === undefined ? decision : { verdict: "allow", rule: grantRule([grant.id]) };
}

/** A call with several commands is decided command by command; the strictest decision holds. */
type Unit = (ShellUnit & { readonly why?: Complexity }) | undefined;
function unitsOf(call: PolicyCall): readonly Unit[] {
  if (!isBashCall(call)) return [undefined];
  const text = commandText(call.args);
  if (typeof text !== "string") return [{ ...unitOf(JSON.stringify(text) ?? ""), why: "character" }];
  const read = readShell(text);
  return read.kind === "plain" ? read.commands.map(({ words }) => unitOf(text, words)) : [{ ...unitOf(text), why: read.why }];
}
const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const;
function strictest(decisions: readonly Decision[]): Decision {
  const [first, ...others] = decisions;
  if (first === undefined) return FAILED;
  const worst = others.reduce((known, other) => (STRICTNESS[other.verdict] > STRICTNESS[known.verdict] ? other : known), first);
  if (worst.verdict !== "allow") return worst;
  // Every grant that was used is named: each of them must hold when the call is made.
  const used = new Set(decisions.flatMap(({ rule }) => grantsOf(rule)));
  return used.size === 0 ? worst : { verdict: "allow", rule: grantRule([...used]) };
}

function decideUnit(
  call: PolicyCall,
  unit: Unit,
  context: PolicyContext,
  { rules, grants, byMode, byMatrix }: General & Pick<Policy, "rules"> & { readonly grants: Grants | undefined },
): Decision {
  let asked: Extract<Decision, { verdict: "ask" }> | undefined;
  for (const rule of rules) {
    const match = matchRule(rule, call.args, unit);
    if (match === "no") continue;
    if (rule.decision === "allow") {
      if (unit !== undefined && !namesCommand(rule)) continue;
      // For another person's session a rule only takes away; and an earlier one may have asked or denied.
      if (!context.isOwners || asked !== undefined) break;
      // For programs, a rule spares the question only of a shell command that the rule names as a whole.
      const isSpared = unit !== undefined || !isNotSpared(call, classFor(call, context.taint));
      return (isSpared ? undefined : byMatrix()) ?? { verdict: "allow", rule: rule.name };
    }
    if (match === "unsure") {
      // A later rule may deny the call for certain.
      asked ??= { verdict: "ask", rule: rule.name, why: unsureText(rule, unit) };
      continue;
    }
    if (rule.decision === "ask") {
      asked ??= { verdict: "ask", rule: rule.name, why: `The owner's rule ${rule.about} asks about it.` };
      break;
    }
    return {
      verdict: "deny",
      rule: rule.name,
      text: `Not run: the owner's rule ${rule.about} denies this call. Do it in another way that the owner accepts, or tell the user.`,
    };
  }
  const decided = byMode();
  // No question opens what the mode denies.
  if (decided.verdict === "deny") return decided;
  if (asked !== undefined) return asked;
  const labelled = byMatrix();
  // Also for what the mode asks about in a sandbox, such as a deletion: what the owner allowed was before the text of others.
  if (labelled === undefined && !isForeign(context.taint)) return byGrant(decided, unit, grants);
  return byGrant(labelled ?? decided, unit, grants, (grant) => holdsWithForeignText(grant, call));
}
/**
 * Grants of hosts and of programs that only read hold for this conversation also when it has read text of others: the output of the first
 * such command is such a text, so the answer would allow one command only (rule GR3).
 */
const holdsWithForeignText = ({ scope, sessionId }: Grant, call: PolicyCall): boolean =>
  sessionId !== undefined && (scope.what.kind === "hosts" || onlyReads(scope, call));

/** The mode that holds. Undefined: none is set. */
const modeOf = ({ policy, mode, isOwners, unset }: PolicyContext): PolicyMode | undefined =>
  (isOwners ? mode : undefined) ?? policy.mode ?? (policy.defaultDecision === undefined ? unset : undefined);

/**
 * A deletion of a memory cannot wait in quarantine, so it counts as one of a protected file. So does a line for MEMORY.md after text by any
 * author: with text of others it would wait in quarantine (rules TA9, TA12).
 */
function classFor(call: PolicyCall, taint: Taint | undefined): PolicyClass {
  const isGuarded = isForeign(taint) ? memoryChange(call) === "deleted" : isUnsure(taint) && remembersForLong(call);
  return isGuarded ? "write_protected" : classOf(call);
}

/** Rules TA5 and TA9. As long as no mode is set only protected files are guarded, and in mode full the owner has taken it on themselves. */
function byMatrix(call: PolicyCall, context: PolicyContext): Extract<Decision, { verdict: "ask" }> | undefined {
  const { taint, isOwners, byOthers = false } = context;
  const { deletions } = context.policy;
  const mode = modeOf(context);
  if (mode === "full") return undefined;
  // A memory of such a conversation waits for the owner in quarantine (rule TA12), so that nothing has to be asked.
  if (isForeign(taint) && memoryChange(call) === "kept") return undefined;
  const policyClass = classFor(call, taint);
  // In another person's session no such call is offered.
  const guarded = isOwners ? guardedWhy(call, policyClass, { taint, byOthers, deletions }) : undefined;
  const why = guarded ?? (mode === undefined ? undefined : matrixWhy(call, policyClass, { taint, isOwners, deletions }));
  if (why === undefined) return undefined;
  return { verdict: "ask", rule: isForeign(taint) ? `taint:${taint.label}` : "protected", why };
}

function unsureText({ about }: CompiledRule, unit: Unit): string {
  if (unit === undefined) return `A path of this call may be one that the rule ${about} names, written in another way.`;
  const cause =
    unit.why === undefined ? "it may be what the rule names in other words, or it runs another command" : complexityText(unit.why);
  return `The command can't be compared with the rule ${about}: ${cause}.`;
}

function byMode(call: PolicyCall, context: PolicyContext): Decision {
  const valid = modeOf(context);
  if (valid === undefined) return byDefault(call, context.policy);
  const rule = `${MODE_RULE}${valid}`;
  const said = modeVerdict(valid, call, { ...context, deletions: context.policy.deletions });
  switch (said.verdict) {
    case "allow":
      return { verdict: "allow", rule };
    case "ask":
      return { verdict: "ask", rule, why: said.why };
    case "deny":
      return {
        verdict: "deny",
        rule,
        text: "Not run: in mode plan only calls that read are made. Write down what you would do; the owner leaves the mode with /mode, or sends the message without `--mode plan`.",
      };
  }
}
/** No mode is set. */
function byDefault({ name }: PolicyCall, { defaultDecision = "allow" }: Policy): Decision {
  const rule = DEFAULT_RULE;
  if (defaultDecision === "allow") return { verdict: "allow", rule };
  if (defaultDecision === "ask") return { verdict: "ask", rule, why: `No rule of the owner allows ${name}.` };
  return {
    verdict: "deny",
    rule,
    text: `Not run: no rule of the owner allows ${name}. Do it in another way, or tell the user.`,
  };
}

/** For a client's call, which no question waits for: it is a denial that says how the owner can allow the call. */
export const unanswered = ({ rule, why }: Extract<Decision, { verdict: "ask" }>): Extract<Decision, { verdict: "deny" }> => ({
  verdict: "deny",
  rule,
  text: `Not run: this call needs your approval. ${why} ${howToAllow(rule)}`,
});
function howToAllow(rule: string): string {
  if (rule.startsWith(RULE)) return "Change or remove that rule: `gsv config get toolApproval` shows it.";
  return `Allow such calls with a rule (\`toolApproval.rules\`) or another \`${rule === DEFAULT_RULE ? DEFAULT_RULE : "toolApproval.mode"}\`.`;
}
