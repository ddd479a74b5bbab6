/** What a mode says about a call that no rule decides (rule PO7). PURE. One table: classes and modes. */
import type { PolicyClass } from "../../../protocol/gen/types.ts";
import type { PolicyCall, PolicyMode } from "../ports/policy.ts";
import { parsePath } from "../storage/keys.ts";
import { isMemory, protectionOf } from "../storage/workspace/protection.ts";
import { MAX_DELETED } from "./deleters.ts";
import { deletionOf } from "./deletions.ts";
import { parseTarget, targetName } from "../tools/message-target.ts";
import { isHarmless } from "./harmless.ts";
import { askedHosts, isReadOnly, isWithHosts, LEAVES } from "./hosts.ts";
import { isOrdinaryInside } from "./paths.ts";
import { COMMAND, isShell } from "./rules.ts";

/** A mode with what is left of its time is a matter of its session. */
export type ModeVerdict = { readonly verdict: "allow" | "deny" } | { readonly verdict: "ask"; readonly why: string };

/** What a call does at most, by its tool and its arguments. */
export function classOf({ policyClass, target, tool, args }: PolicyCall): PolicyClass {
  if (target.kind === "native" && policyClass === "write_workspace" && Object.hasOwn(args, "path"))
    return isProtected(args["path"]) ? "write_protected" : policyClass;
  // To look at a running command runs nothing; `write` and `submit` give it input.
  if (target.kind === "node" && tool === "Process" && LOOKS.has(args["action"])) return "read_private";
  if (target.kind === "native" && tool === CRON && LOOKS_AT_JOBS.has(args["action"])) return "read_private";
  return policyClass;
}
const CRON = "gsv__Cron";
/** Jobs that an agent makes or changes without a question: in one run, and in 24 hours (rule SC11). */
const JOBS_PER_RUN = 3;
const JOBS_PER_DAY = 20;
/** What was made or changed before this call. */
export interface JobsMade {
  readonly run: number;
  readonly day: number;
}
/** The call says when a job runs, or what it does. */
export const makesJob = (call: Pick<PolicyCall, "target" | "tool" | "args">): boolean =>
  isOfJobs(call) &&
  (call.args["action"] === "add" || (call.args["action"] === "update" && JOB_PARTS.some((part) => Object.hasOwn(call.args, part))));
const JOB_PARTS = ["at", "every", "cron", "message"] as const;
/** The call adds, changes, removes or runs a job. */
export const isOfJobs = ({ target, tool }: Pick<PolicyCall, "target" | "tool">): boolean => target.kind === "native" && tool === CRON;
/** Why a call of the class `control` needs a word. */
export const controlText = (call: PolicyCall): string =>
  isOfJobs(call) ? "It changes what the agent does by itself." : "It changes the gateway itself.";
export const TRANSFER = "gsv__Transfer";
/** Why a call of the class `egress` needs a word. */
export function egressText({ target, tool, args }: PolicyCall): string {
  if (target.kind !== "native" || tool !== TRANSFER) return "It sends data to others.";
  const end = (name: string): string =>
    (Object.hasOwn(args, name) ? JSON.stringify(args[name])?.slice(0, END_CHARS) : undefined) ?? "nothing";
  return `It copies ${end("source")} to ${end("destination")}.`;
}
const END_CHARS = 200;
const LOOKS_AT_JOBS: ReadonlySet<unknown> = new Set(["list", "runs"]);
const LOOKS: ReadonlySet<unknown> = new Set(["list", "poll", "log"]);
/**
 * A message to the owner's own direct conversation, named in full by `to` (rule PO16). A place that is named in parts may be another one
 * on another account, so it asks.
 */
function isToOwner({ target, name, args }: PolicyCall, ownPlaces: readonly string[]): boolean {
  if (target.kind !== "native" || name !== MESSAGE || PARTS.some((part) => Object.hasOwn(args, part))) return false;
  return isOwnPlace(placeIn(args), ownPlaces);
}
const placeIn = (args: PolicyCall["args"]): unknown => (Object.hasOwn(args, "to") ? args["to"] : undefined);
function isOwnPlace(to: unknown, ownPlaces: readonly string[]): boolean {
  const place = typeof to === "string" ? parseTarget(to) : undefined;
  if (place?.accountId === undefined || place.peer.kind !== "dm") return false;
  return ownPlaces.includes(targetName({ ...place, accountId: place.accountId }));
}
/** A job that is asked for without a place answers where it was asked for. */
const isJobForOwner = ({ args }: PolicyCall, ownPlaces: readonly string[]): boolean => {
  const to = placeIn(args);
  return to === undefined || isOwnPlace(to, ownPlaces);
};
const MESSAGE = "gsv__Message";
const PARTS = ["channel", "account", "peerKind", "peerId"] as const;

/** What a call does to the agent's memory. `kept`: the tool can keep it for the owner's review. Undefined: nothing. */
export function memoryChange({ target, policyClass, tool, args }: PolicyCall): "kept" | "deleted" | undefined {
  if (target.kind !== "native" || policyClass !== "write_workspace") return undefined;
  const { path: given } = args;
  const path = typeof given === "string" ? parsePath(given) : undefined;
  if (!path?.ok || !isMemory(path.value) || protectionOf(path.value) === "quarantine") return undefined;
  return tool === DELETES ? "deleted" : "kept";
}
const DELETES = "gsv__DeleteFile";
/** Adds a line to MEMORY.md, which is in the prompt of each later conversation of the owner. */
export const remembersForLong = ({ target, tool, args }: PolicyCall): boolean =>
  target.kind === "native" && tool === REMEMBERS && args["where"] !== "today";
const REMEMBERS = "gsv__Remember";
function isProtected(given: unknown): boolean {
  if (typeof given !== "string") return true;
  const path = parsePath(given);
  return !path.ok || protectionOf(path.value) !== "plain";
}

const ALLOW: ModeVerdict = { verdict: "allow" };
const DENY: ModeVerdict = { verdict: "deny" };
const place = ({ target }: PolicyCall): string => (target.kind === "node" ? target.nodeId : "the gateway");

export interface ModeFacts {
  /** Only the owner takes part in the session. */
  readonly isOwners: boolean;
  readonly ownPlaces?: readonly string[];
  readonly jobsMade?: JobsMade | undefined;
}
export function modeVerdict(mode: PolicyMode, call: PolicyCall, { isOwners, ownPlaces = [], jobsMade }: ModeFacts): ModeVerdict {
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
      return ask(
        mode === "auto"
          ? `It changes a file on ${place(call)} outside the workspace, or one that other programs run.`
          : `It changes a file on ${place(call)}.`,
      );
    case "exec":
      return mode === "auto" ? (deleting(call) ?? contained(call)) : ask(`It runs a program on ${place(call)}.`);
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

/** Deleting many files asks, also inside the sandbox: what a command deletes cannot be had back (rule PO13). */
function deleting(call: PolicyCall): ModeVerdict | undefined {
  const command = isShell(call) && Object.hasOwn(call.args, COMMAND) ? call.args[COMMAND] : undefined;
  if (typeof command !== "string" || deletionOf(command) === "few") return undefined;
  const number = `It may delete more than ${MAX_DELETED} files on ${place(call)}: it names a folder, a pattern or more files, or runs a program that its text does not name.`;
  const inside = contained(call);
  return { verdict: "ask", why: `${number} What a command deletes cannot be undone.${inside.verdict === "ask" ? ` ${inside.why}` : ""}` };
}

/** The tools that a machine's sandbox is about; another tool that runs programs may run them anywhere. */
const CONFINED: ReadonlySet<string> = new Set(["Bash", "Process"]);
/** A program that stays inside: what the sandbox contains, and what can do no harm. */
export const isContained = (call: PolicyCall): boolean => contained(call).verdict === "allow";
/**
 * A program in a sandbox that lets each command reach the hosts that its machine lists. To whom it belongs is no matter: what a misled
 * run reads could be sent there (rule TA5).
 */
export function mayReachHosts({ args, sandbox, tool }: PolicyCall): boolean {
  if (sandbox !== "workspace+net" || Object.hasOwn(args, LEAVES)) return false;
  if (tool === "Process") return args["action"] !== "kill";
  const command = Object.hasOwn(args, COMMAND) ? args[COMMAND] : undefined;
  return tool === "Bash" && !(typeof command === "string" && isHarmless(command));
}
/** What a sandbox contains runs; what leaves it, or has none, needs a word. */
function contained(call: PolicyCall): ModeVerdict {
  const { args, sandbox, tool } = call;
  const hosts = tool === "Bash" ? askedHosts(args, sandbox) : undefined;
  if (hosts !== undefined)
    return { verdict: "ask", why: `It runs a program on ${place(call)} in the sandbox, with access to ${hosts.join(", ")}.` };
  if (tool === "Process" && isWithHosts(args))
    return { verdict: "ask", why: `It gives input to a program on ${place(call)} that may reach hosts.` };
  const hasSandbox = sandbox !== undefined && sandbox !== "off";
  if (tool === "Bash" && isReadOnly(args) && hasSandbox) return ALLOW;
  if (Object.hasOwn(args, LEAVES))
    return { verdict: "ask", why: `It ${tool === "Process" ? "gives input to" : "runs"} a program on ${place(call)} outside the sandbox.` };
  if (hasSandbox && !CONFINED.has(tool)) return { verdict: "ask", why: `It runs a program on ${place(call)} outside the sandbox.` };
  if (hasSandbox) return ALLOW;
  const command = Object.hasOwn(args, COMMAND) ? args[COMMAND] : undefined;
  if (tool === "Bash" && typeof command === "string" && isHarmless(command)) return ALLOW;
  // To end a command that the agent has started undoes nothing else.
  if (tool === "Process" && args["action"] === "kill") return ALLOW;
  return { verdict: "ask", why: `It runs a program on ${place(call)}, which has no sandbox.` };
}
