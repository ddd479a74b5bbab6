/**
 * Grants: what the owner has allowed for a time by an answer. PURE. A call has one scope, and a grant covers it only when the grant has
 * the same: tool, machine, agent, sandbox, folder, and the same commands or destination. There is no comparison by similarity, so a call
 * that differs in any of them is never covered (rule GR2).
 */
import type { ApprovalRule, SandboxProfile } from "../../../protocol/gen/types.ts";
import type { GrantedCommand, GrantedWhat, GrantScope, Offer } from "../ports/grants.ts";
import type { PolicyCall } from "../ports/policy.ts";
import { isForeign, type Taint } from "../ports/taint.ts";
import type { DeletionReader } from "./deletion/reading.ts";
import { nameOf } from "./wrappers.ts";
import { askedHosts, HOSTS, isOutside, SANDBOX } from "./hosts.ts";
import { classOf, TRANSFER } from "./call-class.ts";
import { isGrantableFolder, isGrantablePath, normalPath } from "./paths.ts";
import { hidesSubcommand, isPlain, sends, subcommandOf, unconfinedGrant } from "./programs.ts";
import { COMMAND, isBashCall } from "./rules.ts";
import { readShell, type SimpleCommand } from "./shell.ts";

export interface GrantContext {
  /** False: the session is another person's. */
  readonly isOwners: boolean;
  readonly agentId: string;
  /** The machine's sandbox profile, as it reported it; `off` when it reported none. */
  readonly sandbox: SandboxProfile;
  /** The folder in which the machine's commands begin, as it reported it. */
  readonly workspace?: string | undefined;
  /** The label of what the conversation has read. Absent: nothing of others. */
  readonly taint?: Taint | undefined;
  readonly deletions: DeletionReader;
}
/** Whether an answer may allow more than one call, as a grant or as a rule (rule GR4). Text of others must not ask for more than once. */
export const mayGrant = ({ isOwners, taint }: Pick<GrantContext, "isOwners" | "taint">): boolean => isOwners && !isForeign(taint);

const GRANT_RULE = "grant:";
/** The rule of a call that grants allow. */
export const grantRule = (ids: readonly string[]): string => ids.map((id) => `${GRANT_RULE}${id}`).join(" ");
/** The grants that allowed a call. Empty: something else did. */
export const grantsOf = (rule: string | undefined): readonly string[] =>
  rule?.startsWith(GRANT_RULE) === true ? rule.split(" ").map((part) => part.slice(GRANT_RULE.length)) : [];

const MAX_COMMANDS = 8;
const MAX_SCOPE_CHARS = 2_048;
const SHELL_ARGUMENTS: ReadonlySet<string> = new Set([COMMAND, "workdir", "timeout", "background", "yieldMs"]);
const HOST_ARGUMENTS: ReadonlySet<string> = new Set([...SHELL_ARGUMENTS, SANDBOX, HOSTS]);
/** Change where the next command of the line runs. */
const MOVES: ReadonlySet<string> = new Set(["cd", "pushd", "popd", "chdir", "z"]);

/** The scope of a call. Undefined: no grant can be made for it, and none covers it. */
export function scopeOf(call: PolicyCall, context: GrantContext): GrantScope | undefined {
  // No grant counts in another person's session.
  if (!context.isOwners) return undefined;
  const what = isBashCall(call) ? (hostsOf(call, context) ?? commandsOf(call, context)) : (filesOf(call) ?? destinationOf(call));
  if (what === undefined) return undefined;
  const { target, tool } = call;
  const { agentId, workspace } = context;
  const place = target.kind === "node" ? { nodeId: target.nodeId, ...(workspace === undefined ? {} : { workspace }) } : {};
  const scope: GrantScope = { agentId, tool, ...place, what };
  return JSON.stringify(scope).length > MAX_SCOPE_CHARS ? undefined : scope;
}

/** Whether a grant covers one command of a call, or the call when it is none of a shell. */
export function covers(granted: GrantScope, wanted: GrantScope, command?: GrantedCommand): boolean {
  if (granted.agentId !== wanted.agentId || granted.tool !== wanted.tool) return false;
  if (granted.nodeId !== wanted.nodeId || granted.workspace !== wanted.workspace) return false;
  const [has, asks] = [granted.what, wanted.what];
  switch (has.kind) {
    case "commands": {
      if (asks.kind !== "commands" || has.sandbox !== asks.sandbox || has.folder !== asks.folder) return false;
      const commands = command === undefined ? asks.commands : [command];
      return commands.length > 0 && commands.every((one) => has.commands.some((other) => sameCommand(one, other)));
    }
    case "line":
      return asks.kind === "line" && has.sandbox === asks.sandbox && has.folder === asks.folder && has.line === asks.line;
    case "hosts":
      return asks.kind === "hosts" && has.sandbox === asks.sandbox && asks.hosts.every((host) => has.hosts.includes(host));
    case "files":
      return asks.kind === "files" && isBelow(asks.folder, has.folder);
    case "destination":
      return asks.kind === "destination" && JSON.stringify(has.to) === JSON.stringify(asks.to);
  }
}
const isBelow = (folder: string, above: string): boolean =>
  above === "" ? !folder.startsWith("/") : folder === above || folder.startsWith(`${above}/`);
const sameCommand = (left: GrantedCommand, right: GrantedCommand): boolean =>
  left.program === right.program &&
  left.subcommand === right.subcommand &&
  JSON.stringify(left.words ?? null) === JSON.stringify(right.words ?? null);

/** What could be granted by an answer to a question about this call. `scopeIn`: the scope of the call, where it is read already. */
export function offerOf(call: PolicyCall, context: GrantContext, scopeIn = () => scopeOf(call, context)): Offer | undefined {
  const scope = mayGrant(context) ? scopeIn() : undefined;
  if (scope === undefined) return undefined;
  const always = ruleFor(call, scope);
  return { scope, ...(always === undefined ? {} : { always }) };
}

/** The sandbox confines the commands; what the answer opens are the hosts. A command that deletes many files asks each time (rule PO13). */
function hostsOf({ args, target }: PolicyCall, { sandbox, deletions }: GrantContext): GrantedWhat | undefined {
  const hosts = target.kind === "node" ? askedHosts(args, sandbox) : undefined;
  const command = args[COMMAND];
  if (hosts === undefined || typeof command !== "string" || deletions.deletionOf(command) !== "few") return undefined;
  return Object.keys(args).some((name) => !HOST_ARGUMENTS.has(name)) ? undefined : { kind: "hosts", sandbox, hosts };
}
function commandsOf({ args }: PolicyCall, { sandbox: reported, deletions }: GrantContext): GrantedWhat | undefined {
  const { command, workdir } = args;
  const leaves = isOutside(args);
  const sandbox = leaves ? "off" : reported;
  // An argument that is not known may change what the command does.
  const isKnown = (name: string): boolean => SHELL_ARGUMENTS.has(name) || (leaves && name === SANDBOX);
  if (typeof command !== "string" || !Object.keys(args).every(isKnown)) return undefined;
  if (workdir !== undefined && !isGrantableFolder(workdir)) return undefined;
  const read = readShell(command);
  if (read.kind !== "plain") return undefined;
  const folder = workdir === undefined ? "" : normalPath(workdir);
  const commands: GrantedCommand[] = [];
  for (const { words } of read.commands) {
    const found = commandOf(words, sandbox, deletions, leaves && reported !== "off");
    if (found === undefined) return undefined;
    if (!commands.some((other) => sameCommand(found, other))) commands.push(found);
  }
  if (commands.length > MAX_COMMANDS) return undefined;
  // The whole line decides whether it deletes: each command alone may delete nothing, and all together do.
  if (deletions.deletionOf(command) === "few") return { kind: "commands", sandbox, folder, commands };
  return namesAll(read.commands, command, deletions) ? { kind: "line", sandbox, folder, line: command } : undefined;
}

/** Delete what their operands name, and take nothing else as a name unless an option says so. */
const DELETES_OPERANDS: ReadonlySet<string> = new Set("rm rmdir unlink shred find gfind rsync git mv trash trash-put".split(" "));
/** Names come from a file (`--files-from`, `--pathspec-from-file`, in short too), another program runs, or a configuration of git's is set. */
const TAKES_MORE = /^(?:--?[a-z0-9-]+-f[a-z-]*(?:=|$)|--?files?0|-(?:exec|ok)|-c|--config)/s;
/** In a question and in lists a line is one line of text. */
const BREAKS_LINE = /[\p{Cc}\u2028\u2029]/u;
/** Whether a line that deletes says itself what it deletes: the same line does not take other names the next time. */
function namesAll(commands: readonly SimpleCommand[], line: string, { deletesMany }: DeletionReader): boolean {
  if (BREAKS_LINE.test(line)) return false;
  const isPiped = line.includes("|");
  return commands.every(({ words }) => {
    if (DELETES_OPERANDS.has(words[0] ?? "")) return !words.some((word) => TAKES_MORE.test(word));
    return isPiped ? isPlain(words) : !deletesMany(words);
  });
}
/** Act on whatever files or processes their arguments name, so another argument is another act (rule PO13). */
const ACTS_ON_ARGUMENTS: ReadonlySet<string> = new Set(
  "rm grm srm rmdir unlink shred truncate wipe rimraf del trash trash-put mv gmv dd chmod chown chgrp kill pkill killall".split(" "),
);
const actsOnArguments = ([program = ""]: readonly string[]): boolean => ACTS_ON_ARGUMENTS.has(nameOf(program));
/** A name with other characters could read as a part of the sentence that says what is allowed. */
const PROGRAM = /^[\w./+@-]+$/;
/** The scope of one command. Undefined: it may be allowed once only. `leaves`: the sandbox that its machine has. */
export function commandOf(
  words: readonly string[],
  sandbox: SandboxProfile,
  { deletesMany }: DeletionReader,
  leaves = false,
): GrantedCommand | undefined {
  const [program = ""] = words;
  if (MOVES.has(program) || !PROGRAM.test(program)) return undefined;
  const possible = sandbox === "off" ? unconfinedGrant(words, leaves) : "any";
  if (possible === undefined) return undefined;
  // Inside a sandbox, too: the same program may delete something else next time (rule PO13).
  if (
    possible === "exact" ||
    actsOnArguments(words) ||
    hidesSubcommand(words) ||
    deletesMany(words) ||
    (sandbox === "workspace+net" && sends(words))
  )
    return { program, words };
  const subcommand = subcommandOf(words);
  return { program, ...(subcommand === undefined ? {} : { subcommand }) };
}

/**
 * Only programs that read and print, or make an empty file or folder, in the answer and in the call: nothing that was read can make them send
 * or run something. An option may (`find -exec`), and so may a program of the workspace with the same name. What leaves the sandbox of its
 * machine reads what the sandbox hides, also through a link in the workspace.
 */
export function onlyReads({ what }: GrantScope, { args }: PolicyCall): boolean {
  if (what.kind !== "commands" || typeof args[COMMAND] !== "string" || isOutside(args)) return false;
  const read = readShell(args[COMMAND]);
  const reads = (words: readonly string[]): boolean => {
    const possible = unconfinedGrant(words);
    return what.sandbox === "off" ? possible === "any" : possible !== undefined && isPlain(words);
  };
  return (
    what.commands.every(({ program, subcommand, words }) => words === undefined && isPlain(namedBy(program, subcommand))) &&
    read.kind === "plain" &&
    read.commands.every(({ words }) => reads(words))
  );
}
const namedBy = (program: string, subcommand: string | undefined): readonly string[] =>
  subcommand === undefined ? [program] : [program, subcommand];

const HOME = /^\/(?:home|Users|var\/home|export\/home)\/[^/]+$/;
function filesOf(call: PolicyCall): GrantedWhat | undefined {
  const { path } = call.args;
  const policyClass = classOf(call);
  if (policyClass !== "write_files" || call.target.kind !== "node" || call.tool === "Delete") return undefined;
  if (!isGrantablePath(path)) return undefined;
  const whole = normalPath(path);
  const folder = whole.slice(0, Math.max(0, whole.lastIndexOf("/")));
  // `/`, `/etc` and the home of a person are too much for one answer.
  return whole.startsWith("/") && (folder.split("/").length < 3 || HOME.test(folder)) ? undefined : { kind: "files", folder };
}

/** Arguments that name where a tool sends something. */
const DESTINATIONS: Readonly<Record<string, readonly string[]>> = {
  gsv__Message: ["to", "channel", "account", "peerKind", "peerId"],
  gsv__SessionSend: ["sessionKey"],
  [TRANSFER]: ["source", "destination"],
};
/** `NODE:report.pdf` is another file when the machine works in another folder: no grant is bound to the folders of both ends. */
const FIXED_PLACE = /^(?:gsv:|[^:]*:[/~])/;
function destinationOf({ target, tool, args }: PolicyCall): GrantedWhat | undefined {
  if (target.kind !== "native" || !Object.hasOwn(DESTINATIONS, tool)) return undefined;
  // The owner allowed a copy, not a replacement.
  if (tool === TRANSFER && Object.hasOwn(args, "force") && args["force"] !== false) return undefined;
  const to: [string, string][] = [];
  for (const name of DESTINATIONS[tool] ?? []) {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    if (value === undefined) continue;
    if (typeof value !== "string" || value === "") return undefined;
    if (tool === TRANSFER && !FIXED_PLACE.test(value)) return undefined;
    to.push([name, value]);
  }
  return to.length === 0 ? undefined : { kind: "destination", to };
}

function ruleFor({ name, args }: PolicyCall, { what }: GrantScope): Omit<ApprovalRule, "id"> | undefined {
  const when = conditionsFor(args, what);
  return when === undefined ? undefined : { tool: name, decision: "allow", when };
}
function conditionsFor(args: PolicyCall["args"], what: GrantedWhat): ApprovalRule["when"] | undefined {
  switch (what.kind) {
    case "line":
      // A rule holds in each workspace of the machine, and there the line deletes something else.
      return undefined;
    case "commands": {
      const read = readShell(String(args[COMMAND]));
      const [only, ...more] = read.kind === "plain" ? read.commands : [];
      // A rule names no sandbox, so what only a sandbox makes harmless is no rule. Nor is what acts on other files in each workspace.
      if (
        only === undefined ||
        more.length > 0 ||
        unconfinedGrant(only.words, isOutside(args)) === undefined ||
        actsOnArguments(only.words)
      )
        return undefined;
      const folder = args["workdir"] === undefined ? [] : [{ path: "workdir", op: "equals" as const, value: args["workdir"] }];
      const outside = isOutside(args) ? [{ path: SANDBOX, op: "equals" as const, value: args[SANDBOX] }] : [];
      return [{ path: COMMAND, op: "equals", value: [...only.words] }, ...folder, ...outside];
    }
    case "hosts":
      // The owner of the machine lists hosts for always, in node.toml.
      return undefined;
    case "files":
      return [{ path: "path", op: "equals", value: args["path"] }];
    case "destination":
      return what.to.map(([path, value]) => ({ path, op: "equals", value }));
  }
}
