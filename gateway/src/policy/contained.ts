/** Whether what a program can do is contained: by a sandbox, or because it only reads (rules PO7, TA5). PURE. */
import type { PolicyCall } from "../ports/policy.ts";
import { isHarmless } from "./harmless.ts";
import { askedHosts, hasSandbox, isReadOnly, isWithHosts, SANDBOX, SANDBOXED_TOOLS } from "./hosts.ts";
import { commandText } from "./rules.ts";

export const isContained = (call: PolicyCall): boolean => uncontainedWhy(call) === undefined;
/** It ends a command that the agent has started, wherever that runs. */
const isEnd = ({ args, tool }: PolicyCall): boolean => tool === "Process" && args["action"] === "kill";
/**
 * A program in a sandbox that lets each command reach the hosts that its machine lists. Whose session it is does not matter: what a misled
 * run reads could be sent there (rule TA5).
 */
export function mayReachHosts(call: PolicyCall): boolean {
  const { args, sandbox, tool } = call;
  if (sandbox !== "workspace+net" || Object.hasOwn(args, SANDBOX)) return false;
  if (tool === "Process") return !isEnd(call);
  const command = commandText(args);
  return tool === "Bash" && !(typeof command === "string" && isHarmless(command));
}
/** Where a call does what it does, as the owner names it. */
export const placeOf = ({ target }: PolicyCall): string => (target.kind === "node" ? target.nodeId : "the gateway");

/** "runs a program on lap". */
export const programText = (call: PolicyCall): string =>
  `${call.tool === "Process" ? "gives input to" : "runs"} a program on ${placeOf(call)}`;

/** Why a program asks: it leaves the sandbox, or has none. Undefined: it stays inside, or can do no harm. */
export function uncontainedWhy(call: PolicyCall): string | undefined {
  const { args, sandbox, tool } = call;
  if (isEnd(call)) return undefined;
  const does = programText(call);
  if (hasSandbox(sandbox)) {
    if (tool === "Bash" && askedHosts(args, sandbox) !== undefined) return `It ${does} in the sandbox, with hosts.`;
    if (tool === "Process" && isWithHosts(args)) return `It ${does} that has hosts.`;
    const isInside = SANDBOXED_TOOLS.has(tool) && (!Object.hasOwn(args, SANDBOX) || (tool === "Bash" && isReadOnly(args)));
    return isInside ? undefined : `It ${does} outside the sandbox.`;
  }
  const command = commandText(args);
  if (tool === "Bash" && typeof command === "string" && isHarmless(command)) return undefined;
  return `It ${does}, which has no sandbox.`;
}
