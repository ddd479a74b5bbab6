/**
 * The tools that a run offers to the model, and the targets of the model's calls. PURE. A call must use the exact name of an offered
 * tool; any other becomes an error that tells the model what is wrong (rule G4).
 */
import type { NodeEntry } from "../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import { INVALID_ARGUMENTS, MAX_DEPTH } from "../models/invalid-arguments.ts";
import { isAllowed } from "../agents/definition.ts";
import { delegationTools } from "../agents/delegation.ts";
import type { Ask } from "../calls/approval.ts";
import { notOffered } from "../calls/offered-arguments.ts";
import { askedWait, WAIT } from "../calls/wait.ts";
import { decide, POLICY_ERROR, type PolicyContext } from "../policy/decide.ts";
import { SANDBOXED_TOOLS, withoutHosts } from "../policy/hosts.ts";
import type { Grant } from "../ports/grants.ts";
import { CONFINED, isFileTool, resultTaint } from "../policy/taint.ts";
import { isUnsure } from "../ports/taint.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { Decision } from "../ports/policy.ts";
import type { RunContext } from "../ports/run-context.ts";
import type { SessionIdentity } from "../ports/session.ts";
import type { ToolEntry } from "../ports/tool-entry.ts";
import type { ToolTarget } from "../ports/tool-target.ts";
import { callTimes } from "../tools/call-times.ts";
import { machineOf, mayUse, NATIVE_PREFIX, SEPARATOR, ToolRegistry } from "../tools/registry.ts";
import type { CallTarget } from "./machine/event.ts";
import { head } from "./machine/text.ts";

const MAX_PROBLEM_CHARS = 200;

/** The native tools and those of packs that the session may use, and the machines' tools that the gateway gave to this run, as far as the agent may (AD6). */
export function runTools(
  { isOwnersSession }: Pick<SessionIdentity, "isOwnersSession">,
  { entries }: Pick<NativeTools, "entries">,
  { tools, packTools = [], defined }: Pick<RunContext, "tools" | "packTools" | "defined">,
): ToolRegistry {
  const mayCall = ({ definition, needsMachine }: ToolEntry): boolean =>
    isAllowed(defined?.definition, definition.name) && (needsMachine !== true || tools.length > 0);
  return new ToolRegistry(
    isOwnersSession ? delegationTools(defined) : [],
    [...entries, ...packTools].filter((entry) => mayUse(entry, { isOwners: isOwnersSession, isOpened: () => false }) && mayCall(entry)),
    tools.filter(mayCall),
  );
}

export interface ToolTable {
  /** The owner's session. Any other gets the same answer for a forbidden tool and for one that does not exist. */
  readonly isOwners: boolean;
  readonly tools: ToolRegistry;
  readonly nodes: readonly NodeEntry[];
  /** `timeouts.toolMs`. */
  readonly toolMs: number;
  /** `taint`: what the conversation had read when the call was made. */
  readonly policy: Pick<PolicyContext, "policy" | "mode" | "unset" | "taint" | "byOthers" | "ownPlaces" | "jobsMade" | "alwaysAsked">;
  /** How long calls wait for their machines by default (OM1). Absent: not at all. */
  readonly waitMs?: number | undefined;
  readonly grants: { readonly agentId: string; readonly held: readonly Grant[] };
}
export function resolveCall(
  name: string,
  given: unknown,
  { isOwners, tools, nodes, toolMs, policy, grants, waitMs }: ToolTable,
): CallTarget {
  const entry = tools.find(name);
  if (entry === undefined) {
    if (isOwners) return missing(name, nodes);
    return {
      kind: "none",
      reason: "auth.forbidden",
      message: `Not run: this conversation has no tool ${head(name, 128)}. Use one of the tools that you were given; only the owner's own conversation has more.`,
    };
  }
  const problem = argumentsProblem(name, given);
  if (problem !== undefined) return { kind: "none", reason: "tool.bad_args", message: problem };
  const { target, tool, ledger, definition, policyClass } = entry;
  const mayWait = isOwners && target.kind === "node";
  const wait = mayWait ? askedWait(name, given, definition.inputSchema, waitMs) : { ok: true as const, isAsked: false, args: given };
  if (!wait.ok) return { kind: "none", reason: "tool.bad_args", message: wait.problem };
  const { args } = wait;
  if (entry.isAway && wait.waitMs === undefined) return { kind: "none", reason: "node.offline", message: awayText(name, target) };
  const machine = machineAt(target, nodes);
  const sandbox = machine?.sandbox?.profile;
  const asked = { name, tool, target, policyClass, args: args as Readonly<Record<string, unknown>>, sandbox };
  const without = target.kind === "node" && SANDBOXED_TOOLS.has(tool) ? withoutHosts(asked.args, sandbox) : undefined;
  if (without !== undefined) return { kind: "none", reason: "tool.bad_args", message: without };
  const granted = { grants: grants.held, agentId: grants.agentId, sandbox: sandbox ?? "off", workspace: machine?.workspace };
  const decision = decide(asked, { ...policy, isOwners, granted });
  if (decision.verdict === "deny") return denied(decision);
  const refused =
    decision.verdict === "ask"
      ? notOffered({ name, tool, schema: definition.inputSchema, args: asked.args, machine, isAway: entry.isAway })
      : undefined;
  if (refused !== undefined) return { kind: "none", reason: "tool.bad_args", message: refused };
  // The decision of the answer goes by what this one went by.
  const heard = isUnsure(policy.taint) ? { taint: policy.taint } : {};
  const decided = decision.verdict === "ask" ? { ask: { ...askOf(decision), ...heard } } : { rule: decision.rule };
  const taint = resultTaint({ name, tool, target, args, sandbox, isConfined: isConfined(machine) });
  const call = { ...decided, taint, tool, idempotent: definition.idempotent === true, ...callTimes(entry, args, { configuredMs: toolMs }) };
  const depends = policyClass === "exec" && sandbox !== undefined ? { sandbox } : {};
  if (target.kind === "native") return { kind: "native", ...call, ...(entry.isWait === undefined ? {} : { isWait: entry.isWait }) };
  const waits = {
    ...(wait.waitMs === undefined ? {} : { waitMs: wait.waitMs }),
    ...(wait.isAsked ? { withoutWait: true as const } : {}),
    ...(entry.isAway ? { isAway: true as const } : {}),
    ...(isFileTool(tool, machine?.toolCapabilities) ? { isFileTool: true as const } : {}),
  };
  return { kind: "node", nodeId: target.nodeId, ledger, ...depends, ...call, ...waits };
}

const awayText = (name: string, target: ToolTarget): string => {
  const machine = target.kind === "node" ? target.nodeId : "";
  return `The machine ${machine} is not connected, so ${name} was not run. Tell the user to start \`gsv node\` there, use another machine, or make the call again with \`${WAIT}\`, such as "2h": then it runs when ${machine} is back.`;
};

/** The machine of a call, as it has reported itself. */
export const machineAt = (target: ToolTarget, nodes: readonly NodeEntry[]): NodeEntry | undefined =>
  target.kind === "node" ? nodes.find(({ nodeId }) => nodeId === target.nodeId) : undefined;

const isConfined = (machine: NodeEntry | undefined): boolean =>
  machine?.hostCapabilities.some((capability) => capability === CONFINED) === true;

const askOf = ({ rule, why, offer }: Extract<Decision, { verdict: "ask" }>): Ask => ({
  rule,
  why,
  ...(offer === undefined ? {} : { offer }),
});
const denied = ({ rule, text }: Extract<Decision, { verdict: "deny" }>): CallTarget => ({
  kind: "none",
  reason: rule === POLICY_ERROR ? "policy.error" : "policy.denied",
  message: text,
  rule,
});

function argumentsProblem(name: string, args: unknown): string | undefined {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return `Not run: the arguments of ${name} are not a JSON object.`;
  const raw: unknown = Object.hasOwn(args, INVALID_ARGUMENTS) ? Reflect.get(args, INVALID_ARGUMENTS) : undefined;
  return raw === undefined
    ? undefined
    : `Not run: the arguments of ${name} could not be read (${jsonProblem(String(raw))}). Write them again, as one JSON object.`;
}
/** The problem of a text that should be a JSON object. */
function jsonProblem(raw: string): string {
  try {
    const value: unknown = JSON.parse(raw);
    if (isJsonObject(value)) return `they have more than ${MAX_DEPTH} lists and objects in each other`;
    return `they are ${Array.isArray(value) ? "a list" : value === null ? "null" : `a ${typeof value}`}, not an object`;
  } catch (error) {
    return head(error instanceof Error ? error.message : "they are not JSON", MAX_PROBLEM_CHARS);
  }
}

function missing(name: string, nodes: readonly NodeEntry[]): CallTarget {
  const node = machineOf(name, nodes);
  if (node && !node.online)
    return {
      kind: "none",
      reason: "node.offline",
      message: `The machine ${node.nodeId} is not connected, so ${name} was not run. Tell the user to start \`gsv node\` there, or use another machine.`,
    };
  if (node)
    return {
      kind: "none",
      reason: "tool.unknown",
      message: `The machine ${node.nodeId} has no tool ${name.slice(node.nodeId.length + SEPARATOR.length)}. It has: ${node.tools.join(", ") || "none"}.`,
    };
  if (name.startsWith(NATIVE_PREFIX))
    return { kind: "none", reason: "tool.unknown", message: `There is no native tool ${name}. Use one of the tools that you were given.` };
  const online = nodes.filter((node) => node.online).map((node) => node.nodeId);
  return {
    kind: "none",
    reason: "tool.unknown",
    message: `There is no tool ${name}. Names are machine${SEPARATOR}Tool; connected machines: ${online.join(", ") || "none"}.`,
  };
}
