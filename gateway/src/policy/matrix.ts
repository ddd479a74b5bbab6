/**
 * What a conversation that others have written into may not do without a word of the owner (rules TA5, TA6; promise S9). PURE. It only
 * adds questions: what a rule or the mode denies stays denied.
 */
import type { PolicyClass } from "../../../protocol/gen/types.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { isForeign, isUnsure, type Taint, taintText } from "../ports/taint.ts";
import type { DeletionReader } from "./deletion/reading.ts";
import { SANDBOXED_TOOLS } from "./hosts.ts";
import { isOfJobs } from "./call-class.ts";
import { isContained, mayReachHosts, programText, uncontainedWhy } from "./contained.ts";
import { controlText, egressText, executionWhy, fileText } from "./modes.ts";
import { isOrdinaryInside } from "./paths.ts";

export interface MatrixContext {
  readonly taint: Taint | undefined;
  /** The owner's own session: its prompt has the owner's private files. */
  readonly isOwners: boolean;
  readonly deletions: DeletionReader;
}
/** A call that only reads needs no word. */
type Acting = Exclude<PolicyClass, "read_private" | "read_public">;
const isActing = (policyClass: PolicyClass): policyClass is Acting => policyClass !== "read_private" && policyClass !== "read_public";
/** A rule that allows does not spare the question about such a call: what it does cannot be taken back (rule TA6). */
export const isNotSpared = (call: PolicyCall, policyClass: PolicyClass): boolean =>
  NOT_SPARED.has(policyClass) || (policyClass === "write_files" && !isOrdinaryInside(call.args["path"]));
const NOT_SPARED: ReadonlySet<PolicyClass> = new Set<PolicyClass>(["egress", "control", "write_protected", "exec"]);

/** Why the call needs a word. Undefined: the matrix has nothing against it. `policyClass`: what the call does at most. */
export function matrixWhy(call: PolicyCall, policyClass: PolicyClass, { taint, isOwners, deletions }: MatrixContext): string | undefined {
  if (!isForeign(taint) || !isActing(policyClass) || !asks(call, policyClass, taint, isOwners)) return undefined;
  return whyOf(call, policyClass, deletions);
}
function whyOf(call: PolicyCall, policyClass: Acting, deletions: DeletionReader): string {
  switch (policyClass) {
    case "write_workspace":
      return "It writes the agent's workspace.";
    case "write_protected":
      return "It changes a file that defines the agent or its instructions.";
    case "write_files":
      return fileText(call);
    case "exec":
      // A program that stays in the sandbox asks because it may reach hosts.
      return executionWhy(call, uncontainedWhy(call) ?? `It ${programText(call)} in the sandbox, with hosts.`, deletions);
    case "control":
      return controlText(call);
    case "egress":
      return egressText(call);
  }
}
function asks(call: PolicyCall, policyClass: Acting, { label }: Taint, isOwners: boolean): boolean {
  if (policyClass === "exec" && SANDBOXED_TOOLS.has(call.tool) && isContained(call) && !mayReachHosts(call)) return false;
  // The other person's own words may do what the owner opened to guests.
  if (!isOwners) return label === "world";
  if (policyClass === "write_files") return !isOrdinaryInside(call.args["path"]);
  return policyClass !== "write_workspace";
}
/**
 * Why a change of a protected file or of a job needs a word (rules TA9, SC11). Undefined: the owner asked for it, and no one else can have.
 * `byOthers`: the run was not plainly caused by the owner.
 */
export const guardedWhy = (
  call: PolicyCall,
  policyClass: PolicyClass,
  { taint, byOthers, deletions }: Pick<MatrixContext, "taint" | "deletions"> & { readonly byOthers: boolean },
): string | undefined =>
  isGuarded(call, policyClass) && (isUnsure(taint) || byOthers) ? whyOf(call, policyClass, deletions) + unsureText(taint) : undefined;
const isGuarded = (call: PolicyCall, policyClass: PolicyClass): policyClass is "write_protected" | "control" =>
  policyClass === "write_protected" || (policyClass === "control" && isOfJobs(call));
function unsureText(taint: Taint | undefined): string {
  return isUnsure(taint) && !isForeign(taint) ? ` No one knows who wrote what the conversation has read (${taintText(taint)}).` : "";
}

/** In each question of a conversation that has read text of others. */
export const labelText = (taint: Taint | undefined): string =>
  isForeign(taint) ? ` Others may have written what the conversation has read (${taintText(taint)}).` : "";
