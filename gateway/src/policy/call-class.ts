/** What a call does, by its tool and its arguments, whatever the mode is. PURE. */
import type { PolicyClass } from "../../../protocol/gen/types.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { parsePath } from "../storage/keys.ts";
import { isMemory, protectionOf } from "../storage/workspace/protection.ts";

export const TRANSFER = "gsv__Transfer";
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
const LOOKS_AT_JOBS: ReadonlySet<unknown> = new Set(["list", "runs"]);
const LOOKS: ReadonlySet<unknown> = new Set(["list", "poll", "log"]);

/** The call says when a job runs, or what it does. */
export const makesJob = (call: Pick<PolicyCall, "target" | "tool" | "args">): boolean =>
  isOfJobs(call) &&
  (call.args["action"] === "add" || (call.args["action"] === "update" && JOB_PARTS.some((part) => Object.hasOwn(call.args, part))));
const JOB_PARTS = ["at", "every", "cron", "message"] as const;
/** The call adds, changes, removes or runs a job. */
export const isOfJobs = ({ target, tool }: Pick<PolicyCall, "target" | "tool">): boolean => target.kind === "native" && tool === CRON;

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
