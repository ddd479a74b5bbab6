/**
 * Which label a source has (rules TA1, TA4). PURE. A source without a row here is `world`: it fails closed. Knows no content and no
 * state: a label follows from who sent a message, and from which tool gave a result.
 */
import type { SandboxProfile, ToolResultParams } from "../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import type { MediaBlock } from "../ports/messages.ts";
import type { Origin } from "../ports/origin.ts";
import { higher, isUnsure, OWNER, SOURCE_CHARS, type Taint, type TaintLabel } from "../ports/taint.ts";
import type { ToolTarget } from "../ports/tool-target.ts";
import { REMEMBER } from "../tools/memory-tools.ts";
import { isHarmless } from "./harmless.ts";
import { SANDBOX, SANDBOXED_TOOLS } from "./hosts.ts";
import { foldedPath } from "./paths.ts";

/** A name that others chose, as a part of a sentence that the owner reads: with quotes it cannot continue the sentence. */
const named = (name: string): string => (/^[\w.:@+-]{1,80}$/.test(name) ? name : JSON.stringify(Array.from(name).slice(0, 80).join("")));
const PATH_CHARS = 60;
/** Control, bidi and zero-width characters, and those that break a line. */
const HIDDEN = /[\p{C}\p{Zl}\p{Zp}]/gu;
/** Short enough that what was read before the file was written stays readable behind it. */
function namedPath(path: string): string {
  const chars = Array.from(path);
  const shown = chars.length > PATH_CHARS ? `\u2026${chars.slice(-PATH_CHARS).join("")}` : path;
  if (/^[\w./:@+-]+$/.test(shown)) return shown;
  return JSON.stringify(shown.replace(HIDDEN, "\ufffd"));
}
function taint(label: TaintLabel, source: string): Taint {
  return { label, source: source.length > SOURCE_CHARS ? `${source.slice(0, SOURCE_CHARS - 1)}\u2026` : source };
}

/** `stated`: what the sender's side says about the content: quotes, forwarded text, the label of another conversation. */
export function messageTaint(origin: Origin, stated: Taint | undefined): Taint {
  switch (origin.kind) {
    case "client":
      return higher(OWNER, stated);
    case "task":
      if (origin.delegation !== undefined) return higher(taint("self", `a task of ${origin.delegation.sessionKey}`), stated);
      return higher(origin.event === undefined ? OWNER : taint("self", `the event ${origin.event.id}`), stated);
    case "gateway":
      return higher(taint("self", "a note of the gateway"), stated);
    case "schedule":
      return higher(taint("self", `the job ${origin.jobId}`), stated);
    case "channel":
      if (origin.role === "owner") return higher(OWNER, stated);
      return higher(
        taint("peer", `a message of ${origin.senderId === undefined ? "another person" : named(origin.senderId)} on ${origin.channel}`),
        stated,
      );
    case "session":
      return stated ?? taint("world", `a message of the conversation ${origin.sessionKey}`);
    case "node_event":
      return stated ?? taint("world", `the output of a process on ${origin.nodeId}`);
  }
}

/** What a platform says about a message. */
export interface MessageFacts {
  readonly channel: string;
  readonly senderId: string | undefined;
  /** The owner let the sender in by name. */
  readonly isKnown: boolean;
  readonly forwarded: boolean;
  /** The quoted text is of someone else than the sender and the agent. */
  readonly quotesOther: boolean;
}
/** The label of a message on a channel, whatever the sender's role gives. Undefined: others wrote nothing in it. */
export function channelTaint({ channel, senderId, isKnown, forwarded, quotesOther }: MessageFacts): Taint | undefined {
  if (!isKnown)
    return taint("world", `a message of the stranger ${senderId === undefined ? "without an id" : named(senderId)} on ${channel}`);
  if (forwarded) return taint("world", `a forwarded message on ${channel}`);
  return quotesOther ? taint("world", `a quoted message on ${channel}`) : undefined;
}
/** A document has an author whom no one knows; pictures and recordings are as trusted as their sender. */
export function filesTaint(files: readonly Pick<MediaBlock, "type" | "filename">[]): Taint | undefined {
  const document = files.find(({ type }) => type === "document");
  return document && taint("world", `the document ${document.filename === undefined ? "without a name" : named(document.filename)}`);
}

// ---------------------------------------------------------------- tools

/** A command that reaches no network: what it prints comes from the machine. */
const hasNoNetwork = (sandbox: SandboxProfile | undefined, args: unknown): boolean =>
  (sandbox === "workspace" || sandbox === "strict") && argument(args, SANDBOX) === undefined;
/** A command with words of its own output only, such as `uname -a`. */
const saysLittle = (tool: string, args: unknown): boolean => {
  const command = argument(args, "command");
  return tool === "Bash" && typeof command === "string" && argument(args, SANDBOX) === undefined && isHarmless(command);
};

export interface ResultOf {
  /** As the model knows the tool: `laptop__Bash`. */
  readonly name: string;
  readonly tool: string;
  readonly target: ToolTarget;
  readonly args: unknown;
  /** What the machine's commands run in, as it reported it. Absent: a node of an earlier version. */
  readonly sandbox?: SandboxProfile | undefined;
  /** The machine's file tools stay in its workspace. */
  readonly isConfined?: boolean;
}
/** What a machine reports whose file tools stay in its workspace. */
export const CONFINED = "filesystem.confined";
/** The label of what a call gives back. A native tool may say it more exactly with its result. */
export function resultTaint({ name, tool, target, args, sandbox, isConfined = false }: ResultOf): Taint {
  const label = target.kind === "node" ? machineLabel(tool, args, sandbox, isConfined) : nativeLabel(name, args);
  return taint(label, `the output of ${name}${pathRead(tool, args)}`);
}
/** The file or folder that the call names, so that a person can look at what was read. */
function pathRead(tool: string, args: unknown): string {
  const path = FILE_READS.has(tool) || tool === READ_FILE ? argument(args, "path") : undefined;
  return typeof path === "string" && path !== "" ? ` of ${namedPath(path)}` : "";
}
/** For a call of which nothing more is known. */
export const unknownResult = (name: string): Taint => taint("world", `the output of ${name}`);

const READ_FILE = "gsv__ReadFile";
const FILE_READS: ReadonlySet<string> = new Set(["Read", "Glob", "Grep"]);
const FILE_WRITES: ReadonlySet<string> = new Set(["Write", "Edit", "Delete"]);
function machineLabel(tool: string, args: unknown, sandbox: SandboxProfile | undefined, isConfined: boolean): TaintLabel {
  if (FILE_WRITES.has(tool)) return "self";
  // Where file tools may leave the workspace, they do so only by a path that says it.
  if (FILE_READS.has(tool)) return isConfined || isInside(argument(args, "path")) ? "files" : "world";
  if (saysLittle(tool, args)) return "self";
  if (SANDBOXED_TOOLS.has(tool)) return hasNoNetwork(sandbox, args) ? "files" : "world";
  return "world";
}
const isInside = (path: unknown): boolean =>
  path === undefined || (typeof path === "string" && !/^[/~\\]|^[A-Za-z]:|[\p{Cc}]/u.test(path) && !path.split(/[/\\]/).includes(".."));

/** Native tools whose results have only what the owner or the agent wrote, or what the gateway says itself. */
const OWN_RESULTS: ReadonlySet<string> = new Set([
  "gsv__WriteFile",
  "gsv__EditFile",
  "gsv__DeleteFile",
  "gsv__ListFiles",
  "gsv__Remember",
  REMEMBER,
  "emit_event",
  "report_low_confidence",
  "gsv__Attach",
  "gsv__Message",
  "gsv__ConfigGet",
  "gsv__SessionsList",
  "gsv__Transfer",
]);
/** Native tools whose refusals GSV writes itself, from its own words and the call's arguments, and those reasons (rule TA17). */
const OWN_REFUSALS: ReadonlySet<string> = new Set([READ_FILE, "gsv__Channels", "gsv__Cron", "gsv__Search"]);
const REFUSED: ReadonlySet<string> = new Set([
  "auth.forbidden",
  "channel.unknown",
  "cron.bad_schedule",
  "cron.exists",
  "cron.not_found",
  "cron.running",
  "cron.too_many",
  "file.binary",
  "file.too_large",
  "gateway.stopped",
  "path.invalid",
  "path.not_a_file",
  "path.not_found",
  "protocol.invalid_params",
  "tool.bad_args",
]);
/** The label of a native call that GSV has refused. Undefined: its text may be of others, so the call's label holds. */
export const refusalTaint = (name: string, reason: string): Taint | undefined =>
  OWN_REFUSALS.has(name) && REFUSED.has(reason) ? nothingRead(name) : undefined;
/** For a result without a word of others. */
export const nothingRead = (name: string): Taint => taint("self", `the output of ${name}`);

/** A machine's own tools for files, by what the machine reports: tools of other programs have no capability. */
export const isFileTool = (tool: string, capabilities: Readonly<Record<string, readonly string[]>> | undefined): boolean =>
  FILE_READS.has(tool) &&
  capabilities !== undefined &&
  Object.hasOwn(capabilities, tool) &&
  capabilities[tool]?.some((one) => one.startsWith("filesystem.") || one === "text.search") === true;
/** Errors whose texts those tools write from the call's arguments. Others may name a link's target or what a program said. */
const FILE_ERRORS: ReadonlySet<string> = new Set([
  "file.binary",
  "file.too_large",
  "path.not_a_file",
  "path.not_found",
  "path.outside_workspace",
  "tool.bad_args",
]);
/** A result in which a file tool of a machine gives nothing that it has read: an error, or a search that found nothing. */
export function gaveNothing({ outcome, reason, result }: Omit<ToolResultParams, "callId">): boolean {
  if (outcome === "error") return result === undefined && reason !== undefined && FILE_ERRORS.has(reason);
  return (outcome === undefined || outcome === "ok") && foundNothing(result);
}
/** Fields of a result of Glob and Grep that repeat the call's arguments; others may have written any other text. */
const ASKED_FIELDS: ReadonlySet<string> = new Set(["pattern", "basePath"]);
function foundNothing(result: unknown): boolean {
  if (!isJsonObject(result)) return false;
  const { count, matches, ...rest } = result;
  const isOther = ([name, value]: [string, unknown]): boolean =>
    typeof value === "number" || typeof value === "boolean" || (ASKED_FIELDS.has(name) && typeof value === "string");
  return count === 0 && Array.isArray(matches) && matches.length === 0 && Object.entries(rest).every(isOther);
}
function nativeLabel(name: string, args: unknown): TaintLabel {
  if (OWN_RESULTS.has(name)) return "self";
  if (name === READ_FILE) return fileLabel(argument(args, "path"));
  return "world";
}
/** The label of a file of the agent's workspace, by its folder: only these folders keep what others said. */
export function fileLabel(path: unknown): TaintLabel {
  if (typeof path !== "string" || path.startsWith("media:")) return "world";
  const folded = foldedPath(path);
  const isIn = (folder: string): boolean => folded === folder || folded.startsWith(`${folder}/`);
  if (FOREIGN_FOLDERS.some(isIn)) return "world";
  return isIn(SKILLS) ? "files" : "self";
}
/** The label of a file that was read: by its folder, or as it was written with (rule TA14). Undefined: others wrote nothing in it. */
export function fileTaint(path: string, stored: Taint | undefined): Taint | undefined {
  if (!isUnsure(stored)) return undefined;
  const { label } = higher(stored, taint(fileLabel(path), path));
  return taint(label, `the file ${namedPath(path)}, written after ${stored.source}`);
}
/** The label of listed names, from the labels of their files: a name can be a sentence. Undefined: others wrote none of them. */
export function namesTaint(labels: readonly (Taint | undefined)[]): Taint | undefined {
  const highest = labels.reduce((known, next) => (known === undefined ? next : higher(known, next)), undefined);
  return isUnsure(highest) ? taint(highest.label, `the name of a file, written after ${highest.source}`) : undefined;
}
/** Skills come from anywhere; that the owner lets the agent use one does not make its author the owner. */
const SKILLS = "skills";
const FOREIGN_FOLDERS = ["media", "results", "sessions", "memory/quarantine"] as const;

const argument = (args: unknown, name: string): unknown =>
  typeof args === "object" && args !== null && Object.hasOwn(args, name) ? Reflect.get(args, name) : undefined;
