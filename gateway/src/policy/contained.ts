/** Whether what a program can do is contained: by a sandbox, or because it only reads (rules PO7, TA5). PURE. */
import type { PolicyCall } from "../ports/policy.ts";
import { isHarmless } from "./harmless.ts";
import { askedHosts, HOSTS, isReadOnly, isWithHosts, SANDBOX, SANDBOXED_TOOLS } from "./hosts.ts";
import { commandText } from "./rules.ts";

export const isContained = (call: PolicyCall): boolean => uncontainedWhy(call) === undefined;
/**
 * A program in a sandbox that lets each command reach the hosts that its machine lists. To whom it belongs is no matter: what a misled
 * run reads could be sent there (rule TA5).
 */
export function mayReachHosts({ args, sandbox, tool }: PolicyCall): boolean {
  if (sandbox !== "workspace+net" || Object.hasOwn(args, SANDBOX)) return false;
  if (tool === "Process") return args["action"] !== "kill";
  const command = commandText(args);
  return tool === "Bash" && !(typeof command === "string" && isHarmless(command));
}
/** A program in a sandbox that gets hosts: by the call's arguments, or by the sandbox of its machine. */
export function isInsideWithHosts(call: PolicyCall): boolean {
  const { args, sandbox, tool } = call;
  const isInput = tool === "Process" && isWithHosts(args) && sandbox !== undefined && sandbox !== "off";
  return isInput || (tool === "Bash" && askedHosts(args, sandbox) !== undefined) || mayReachHosts(call);
}
/** Actions of Process after which the program can do no more than before. */
const NO_INPUT: ReadonlySet<unknown> = new Set(["kill", "list", "log", "poll"]);
/** Where a call does what it does, as the owner names it. */
export const placeOf = ({ target }: PolicyCall): string => (target.kind === "node" ? target.nodeId : "the gateway");

/** Why a program needs a word: it leaves the sandbox, or has none. Undefined: it stays inside, or can do no harm. */
export function uncontainedWhy(call: PolicyCall): string | undefined {
  const { args, sandbox, tool } = call;
  const hosts = tool === "Bash" ? askedHosts(args, sandbox) : undefined;
  if (hosts !== undefined) return `It runs a program on ${placeOf(call)} in the sandbox, with hosts.`;
  if (tool === "Process" && isWithHosts(args)) return `It gives input to a program on ${placeOf(call)} that has hosts.`;
  const hasSandbox = sandbox !== undefined && sandbox !== "off";
  if (tool === "Bash" && isReadOnly(args) && hasSandbox) return undefined;
  if (Object.hasOwn(args, SANDBOX))
    return `It ${tool === "Process" ? "gives input to" : "runs"} a program on ${placeOf(call)} outside the sandbox.`;
  if (hasSandbox && !SANDBOXED_TOOLS.has(tool)) return `It runs a program on ${placeOf(call)} outside the sandbox.`;
  if (hasSandbox) return undefined;
  const command = commandText(args);
  if (tool === "Bash" && typeof command === "string" && isHarmless(command)) return undefined;
  // To end a command that the agent has started undoes nothing else.
  if (tool === "Process" && args["action"] === "kill") return undefined;
  return `It runs a program on ${placeOf(call)}, which has no sandbox.`;
}

/**
 * Ends each question about a program of a machine, whatever asks: the hosts that it may reach by its arguments, by the sandbox of its machine,
 * or because nothing confines it (rule SB17). Empty: it reaches none.
 */
export function reachText(call: PolicyCall): string {
  const { policyClass, target, tool } = call;
  const isOfMachine = target.kind === "node" && policyClass === "exec" && SANDBOXED_TOOLS.has(tool);
  const reached = isOfMachine ? reachOf(call) : undefined;
  return reached === undefined ? "" : ` It may reach ${reached}.`;
}
function reachOf(call: PolicyCall): string | undefined {
  const { args, sandbox, tool } = call;
  const hasSandbox = sandbox !== undefined && sandbox !== "off";
  if (tool === "Process" && NO_INPUT.has(args["action"])) return undefined;
  const listed = sandbox === "workspace+net" ? [`the hosts that ${placeOf(call)} lists in node.toml`] : [];
  if (uncontainedWhy(call) === undefined && !Object.hasOwn(args, HOSTS)) return isReadOnly(args) ? undefined : listed[0];
  if (hasSandbox && tool === "Process" && isWithHosts(args))
    return ["the hosts that were allowed when it was started", ...listed].join(", and ");
  const hosts = askedHosts(args, sandbox);
  // Whatever else the arguments say: without a sandbox that takes them, nothing keeps the program from any host.
  return hosts === undefined ? "every host" : [hosts.join(", "), ...listed].join(", and ");
}
