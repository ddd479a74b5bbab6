/** What a mode says about a call that no rule decides (rule PO7). PURE. One table: classes and modes. */
import type { PolicyCall, PolicyMode } from "../ports/policy.ts";
import { classOf, isOfJobs, makesJob, TRANSFER } from "./call-class.ts";
import { placeOf, uncontainedWhy } from "./contained.ts";
import { type DeletionReader, MAX_DELETED } from "./deletion/reading.ts";
import { isJobForOwner, isToOwner } from "./own-places.ts";
import { isOrdinaryInside } from "./paths.ts";
import { commandText, isBashCall } from "./rules.ts";

/** A mode with what is left of its time is a matter of its session. */
export type ModeVerdict = { readonly verdict: "allow" | "deny" } | { readonly verdict: "ask"; readonly why: string };

/** Jobs that an agent makes or changes without a question: in one run, and in 24 hours (rule SC11). */
const JOBS_PER_RUN = 3;
const JOBS_PER_DAY = 20;
/** Jobs that were made or changed before this call. */
export interface JobsMade {
  readonly run: number;
  readonly day: number;
}
/** Why a call of the class `control` asks. */
export const controlText = (call: PolicyCall): string =>
  isOfJobs(call) ? "It changes what the agent does by itself." : "It changes the gateway itself.";
/** Why a call of the class `egress` asks. */
export function egressText({ target, tool, args }: PolicyCall): string {
  if (target.kind !== "native" || tool !== TRANSFER) return "It sends data to others.";
  const place = (name: string): string => (Object.hasOwn(args, name) ? placeText(args[name]) : "nothing");
  return `It copies ${place("source")} to ${place("destination")}.`;
}
const PLACE_CHARS = 200;
/** Cuts the middle out of a long place: its machine and its end say more. */
function placeText(place: unknown): string {
  if (typeof place !== "string") return JSON.stringify(place)?.slice(0, PLACE_CHARS) ?? "nothing";
  const chars = Array.from(place);
  const half = PLACE_CHARS / 2;
  return JSON.stringify(chars.length > PLACE_CHARS ? `${chars.slice(0, half).join("")} \u2026 ${chars.slice(-half).join("")}` : place);
}
/** Why a change of a file of a machine asks. */
export function fileText(call: PolicyCall): string {
  const { path } = call.args;
  if (isOrdinaryInside(path)) return `It changes a file on ${placeOf(call)}.`;
  const isInside = typeof path === "string" && /^(?![~/\\]|[A-Za-z]:)/.test(path) && !path.split("/").includes("..");
  return isInside
    ? `It changes a file on ${placeOf(call)} that other programs run, or read their settings from.`
    : `It changes a file on ${placeOf(call)} that may be outside the workspace.`;
}
const ALLOW: ModeVerdict = { verdict: "allow" };
const DENY: ModeVerdict = { verdict: "deny" };

export interface ModeFacts {
  /** Only the owner takes part in the session. */
  readonly isOwners: boolean;
  readonly ownPlaces?: readonly string[];
  readonly jobsMade?: JobsMade | undefined;
  readonly deletions: DeletionReader;
}
export function modeVerdict(mode: PolicyMode, call: PolicyCall, { isOwners, ownPlaces = [], jobsMade, deletions }: ModeFacts): ModeVerdict {
  if (mode === "full") return ALLOW;
  const ask = (why: string): ModeVerdict => ({ verdict: "ask", why });
  const policyClass = classOf(call);
  if (policyClass === "read_private" || policyClass === "read_public") return ALLOW;
  if (mode === "plan") return DENY;
  switch (policyClass) {
    case "write_workspace":
      return ALLOW;
    case "write_protected":
      // Its earlier versions are kept, and a run that has read other people's texts is asked about before the mode decides.
      if (mode === "auto" && isOwners) return ALLOW;
      return ask("It changes a file that defines the agent or its instructions.");
    case "write_files":
      if (mode === "auto" && isOrdinaryInside(call.args["path"])) return ALLOW;
      return ask(fileText(call));
    case "exec":
      return mode === "auto"
        ? running(call, deletions)
        : ask(executionWhy(call, uncontainedWhy(call) ?? `It runs a program on ${placeOf(call)}.`, deletions));
    case "egress":
      if (mode === "auto" && isOwners && isToOwner(call, ownPlaces)) return ALLOW;
      return ask(egressText(call));
    case "control":
      // The owner can ask for a job in words; a run that has read other people's texts is asked about before the mode decides.
      if (mode !== "auto" || !isOwners || !isOfJobs(call)) return ask(controlText(call));
      if (!isJobForOwner(call, ownPlaces)) return ask("It makes a job that sends its answers to others.");
      return manyJobs(call, jobsMade);
  }
}

function manyJobs(call: PolicyCall, made: JobsMade | undefined): ModeVerdict {
  if (made === undefined || !makesJob(call)) return ALLOW;
  if (made.run >= JOBS_PER_RUN) return { verdict: "ask", why: `This run has made or changed ${made.run} jobs already.` };
  if (made.day < JOBS_PER_DAY) return ALLOW;
  return { verdict: "ask", why: `The agent has made or changed ${made.day} jobs in the last 24 hours.` };
}

/** Deleting many files asks, also inside the sandbox: what a command deletes cannot be restored (rule PO13). */
function running(call: PolicyCall, deletions: DeletionReader): ModeVerdict {
  const why = executionWhy(call, uncontainedWhy(call), deletions);
  return why === "" ? ALLOW : { verdict: "ask", why };
}
/** Why a program asks: `where` it runs, then what it may delete. Empty: it does not. */
export const executionWhy = (call: PolicyCall, where: string | undefined, deletions: DeletionReader): string =>
  [where, deletingWhy(call, deletions)].filter((why) => why !== undefined).join(" ");
/** Why a command asks that may delete many files. Undefined for every other call. */
function deletingWhy(call: PolicyCall, { deletionOf, deleterIn }: DeletionReader): string | undefined {
  const command = isBashCall(call) ? commandText(call.args) : undefined;
  if (typeof command !== "string" || deletionOf(command) === "few") return undefined;
  const deleter = deleterIn(command);
  const [what, why] =
    deleter === undefined
      ? ["It", "its text does not tell for certain what it runs, or what that deletes"]
      : [`The command \`${deleter}\``, "its arguments do not name each of them, or name more"];
  return `${what} may delete more than ${MAX_DELETED} files on ${placeOf(call)}: ${why}. What a command deletes cannot be undone.`;
}
