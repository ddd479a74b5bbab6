/** Which hosts the program of a call may reach, in words for the owner (rule SB17). PURE. */
import type { PolicyCall } from "../ports/policy.ts";
import { placeOf, uncontainedWhy } from "./contained.ts";
import { askedHosts, HOSTS, hasSandbox, isReadOnly, isWithHosts, SANDBOXED_TOOLS } from "./hosts.ts";

/** Actions of Process after which the program can do no more than before. */
const NO_INPUT: ReadonlySet<unknown> = new Set(["kill", "list", "log", "poll"]);

/**
 * Ends each question about a program of a machine, whatever asks: the hosts that it may reach by its arguments, by the sandbox of its machine,
 * or because nothing confines it. Empty: it reaches none.
 */
export function reachText(call: PolicyCall): string {
  const { policyClass, target, tool } = call;
  const isOfMachine = target.kind === "node" && policyClass === "exec" && SANDBOXED_TOOLS.has(tool);
  const reached = isOfMachine ? reachOf(call) : undefined;
  return reached === undefined ? "" : ` It may reach ${reached}.`;
}
function reachOf(call: PolicyCall): string | undefined {
  const { args, sandbox, tool } = call;
  if (tool === "Process" && NO_INPUT.has(args["action"])) return undefined;
  const listed = sandbox === "workspace+net" ? [`the hosts that ${placeOf(call)} lists in node.toml`] : [];
  if (uncontainedWhy(call) === undefined && !Object.hasOwn(args, HOSTS)) return isReadOnly(args) ? undefined : listed[0];
  if (tool === "Process" && isWithHosts(args) && hasSandbox(sandbox))
    return ["the hosts that were allowed when it was started", ...listed].join(", and ");
  const hosts = askedHosts(args, sandbox);
  // Whatever else the arguments say: without a sandbox that takes them, nothing keeps the program from any host.
  return hosts === undefined ? "every host" : [hosts.join(", "), ...listed].join(", and ");
}
