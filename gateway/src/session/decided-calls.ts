/**
 * The model's calls with their targets, and what an answer of the owner is bound to where a call needs one. Used when the model has
 * replied, and again when the answer comes: only what would be done now can be allowed.
 */
import type { Directives } from "../../../protocol/gen/types.ts";
import { isJsonObject } from "../../../protocol/runtime/json-object.ts";
import { isAllowed } from "../agents/definition.ts";
import { type Binding, bindingText, canonicalJson, sameCallText } from "../calls/approval.ts";
import { DEFAULT_MODE } from "../policy/decide.ts";
import { makesJob } from "../policy/call-class.ts";
import { unifiedDiff } from "../calls/diff.ts";
import { shownText } from "../calls/shown-call.ts";
import { grantsOf } from "../policy/grants.ts";
import type { Policies } from "../policy/load.ts";
import { type SessionAudit, TOOL_CALL } from "../ports/audit.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import { isPlainlyOwner, type Origin, originText } from "../ports/origin.ts";
import { type GsvError, sentence } from "../ports/result.ts";
import type { RunContext } from "../ports/run-context.ts";
import { isUnsure, type Taint, taintMark } from "../ports/taint.ts";
import type { AwaitingCall, WaitingCall } from "../calls/open-call.ts";
import type { CallTarget, CurrentDecision, ReplyCall } from "./machine/event.ts";
import { targetOf } from "./machine/phase/approving.ts";
import { callIdOf } from "./machine/ids.ts";
import { activeRun, type RunCore, type State } from "./machine/state.ts";
import { runModeAt } from "./mode.ts";
import { head } from "./machine/text.ts";
import { machineAt, resolveCall, runTools, type ToolTable } from "./tools.ts";

export interface DecidePorts {
  readonly native: Pick<NativeTools, "entries" | "problem" | "preview">;
  readonly sha256: (text: string) => Promise<string>;
  readonly policies: Policies;
  /** Records denials (rule PO9). */
  readonly audit: (entry: SessionAudit) => Promise<unknown>;
  /** Those of these grants that hold now. */
  readonly useGrants: (sessionKey: string, ids: readonly string[]) => Promise<readonly string[]>;
  readonly wall: () => number;
  readonly failed: (what: string, error: unknown) => void;
}
type Asked = Pick<ReplyCall, "providerId" | "name" | "arguments">;

export async function decideCalls(
  ports: DecidePorts,
  state: State,
  context: RunContext,
  run: Pick<RunCore, "ordinal" | "step" | "origin" | "directives" | "runId">,
  calls: readonly Asked[],
): Promise<readonly ReplyCall[]> {
  if (calls.length === 0) return [];
  const plain = await tableOf(ports, state, context, {
    taint: state.taint,
    origin: run.origin,
    directives: currentDirectives(state, run),
    runId: run.runId,
  });
  const table = await tableWithGrants(ports, state, plain, calls);
  // Only what the owner is asked is bound to it, and most calls ask nothing.
  let version: Promise<string> | undefined;
  const decided = await Promise.all(
    calls.map(async (call, index): Promise<ReplyCall> => {
      const current = afterOthers(table, calls.slice(0, index));
      const { target, fileSha256 } = await shown(ports, state, call, resolveCall(call.name, call.arguments, current));
      if (target.kind === "none" || target.ask === undefined) return { ...call, target };
      const bound = { ...call, callId: callIdOf(state.identity.ref, run, index), fileSha256 };
      version ??= policyVersion(ports, context, table);
      return { ...call, target, binding: await bind(ports, bound, target, atTarget(await version, target, table)) };
    }),
  );
  await recordDenied(
    ports,
    state,
    run,
    decided.map((call, index) => ({ ...call, index })),
  );
  return decided;
}
/** The calls before this one in the same reply are made before it: the jobs that they make count. */
function afterOthers(table: ToolTable, before: readonly Asked[]): ToolTable {
  const { policy } = table;
  const made = before.filter(
    ({ name, arguments: args }) => isJsonObject(args) && makesJob({ target: { kind: "native" }, tool: name, args }),
  ).length;
  if (made === 0 || policy.jobsMade === undefined) return table;
  const { run, day } = policy.jobsMade;
  return { ...table, policy: { ...policy, jobsMade: { run: run + made, day: day + made } } };
}
/** Why the run ends: the model has named a tool that the agent's definition does not allow (rule AD6). Undefined: it has not. */
export async function boundary(
  ports: Pick<DecidePorts, "audit" | "failed">,
  state: State,
  { defined }: Pick<RunContext, "defined">,
  run: Pick<RunCore, "ordinal" | "step" | "origin">,
  calls: readonly Asked[],
): Promise<GsvError | undefined> {
  const outside = calls.flatMap((call, index) => (isAllowed(defined?.definition, call.name) ? [] : [{ ...call, index }]));
  const [first] = outside;
  if (first === undefined) return undefined;
  const name = head(first.name, SHOWN_NAME);
  const message = `The agent tried to use ${name}, which its definition does not allow, so the run was ended. Nothing of this answer was done.`;
  const target = { kind: "none", reason: "policy.denied", message, rule: "tools.allowed" } as const;
  await recordDenied(
    ports,
    state,
    run,
    outside.map((call) => ({ ...call, target })),
  );
  return { reason: "autonomy.boundary", message };
}
const SHOWN_NAME = 128;
/**
 * A grant is asked about once more before it counts: it may have been revoked since the run got it (rule GR5). One that does not hold,
 * or that cannot be asked about, is left out, so that the call asks.
 */
async function tableWithGrants(
  { useGrants, failed }: Pick<DecidePorts, "useGrants" | "failed">,
  { identity }: State,
  table: ToolTable,
  calls: readonly Pick<Asked, "name" | "arguments">[],
): Promise<ToolTable> {
  let held = table.grants.held;
  const confirmed = new Set<string>();
  // Without a grant that was revoked, another one may allow the call. Each round leaves one out at least.
  while (held.length > 0) {
    const current: ToolTable = { ...table, grants: { ...table.grants, held } };
    const used = new Set(
      calls.flatMap((call) => {
        const target = resolveCall(call.name, call.arguments, current);
        return target.kind === "none" ? [] : grantsOf(target.rule);
      }),
    );
    const open = [...used].filter((id) => !confirmed.has(id));
    if (open.length === 0) return current;
    const holding = await useGrants(identity.key, open).catch((error: unknown) => {
      failed("asking about grants", error);
      return [];
    });
    for (const id of holding) confirmed.add(id);
    const gone = open.filter((id) => !confirmed.has(id));
    held = held.filter(({ id }) => !gone.includes(id));
  }
  return { ...table, grants: { ...table.grants, held } };
}
/** Refusals without a rule that are denials too: a tool that the conversation does not have, or that does not exist. */
const REFUSED: Readonly<Record<string, string | undefined>> = { "auth.forbidden": "tool.guest", "tool.unknown": "tool.unknown" };
/** Never rejects: a denial stands without its entry, because the call and its result are in the session's own log. */
async function recordDenied(
  { audit, failed }: Pick<DecidePorts, "audit" | "failed">,
  { identity, taint }: State,
  run: Pick<RunCore, "ordinal" | "step" | "origin">,
  calls: readonly (Pick<ReplyCall, "name" | "arguments" | "target"> & { readonly index: number })[],
): Promise<void> {
  for (const { index, name, arguments: args, target } of calls) {
    const rule = target.kind === "none" ? (target.rule ?? REFUSED[target.reason]) : undefined;
    if (rule === undefined) continue;
    const entry: SessionAudit = {
      actor: `session:${identity.key}`,
      origin: originText(run.origin) + taintMark(taint),
      action: TOOL_CALL,
      target: name.slice(0, 512),
      decision: "denied",
      rule,
      detail: callIdOf(identity.ref, run, index),
      args,
    };
    await audit(entry).catch((error: unknown) => failed("recording a denied call", error));
  }
}
/** The denials among decisions about calls that waited for their machines (OM3). Never rejects. */
export async function recordLooked(
  ports: DecidePorts,
  state: State,
  decided: readonly { readonly call: WaitingCall; readonly current: CurrentDecision }[],
): Promise<void> {
  if (state.run.phase !== "acting") return;
  const calls = decided.map(({ call: { name, index }, current: { args, target } }) => ({ name, index, arguments: args, target }));
  await recordDenied(ports, state, state.run, calls);
}
/** What would be decided now about a call that waits. */
export async function currentDecision(
  ports: DecidePorts,
  state: State,
  context: RunContext,
  call: AwaitingCall | WaitingCall,
  args: Readonly<Record<string, unknown>>,
): Promise<CurrentDecision> {
  const asked = { name: call.name, arguments: args };
  const { origin, directives, runId } = state.run.phase === "acting" ? state.run : {};
  // The label of the moment at which the model made the call: what came later is not in its arguments.
  const taint = call.status === "awaiting_node" ? call.heard : call.approval.taint;
  const plain = await tableOf(ports, state, context, { taint, origin, directives, runId });
  // No one has answered for a call that waited for its machine: a grant must hold.
  const table = call.status === "awaiting_node" ? await tableWithGrants(ports, state, plain, [asked]) : plain;
  const resolved = resolveCall(asked.name, args, table);
  const change = call.status === "awaiting_approval" && call.approval.change !== undefined ? call.approval : undefined;
  // The owner has read a change. It may need no word by now, but that is what they have allowed.
  if (change !== undefined && resolved.kind === "native" && resolved.ask === undefined)
    return sameChange(ports, state, { ...asked, callId: call.callId }, resolved, change, args);
  const { target, fileSha256 } = await shown(ports, state, asked, resolved);
  const bound = { ...asked, callId: call.callId, fileSha256 };
  const version = atTarget(await policyVersion(ports, context, table), target, table);
  return { target, binding: await bind(ports, bound, target, version), args };
}
/** The call as it was asked about, while its file is as it was; else with the question of the other change. */
async function sameChange(
  ports: DecidePorts,
  state: State,
  asked: Omit<Bound, "fileSha256">,
  resolved: Extract<CallTarget, { readonly kind: "native" }>,
  { rule, why, taint, policy, hash }: AwaitingCall["approval"],
  args: Readonly<Record<string, unknown>>,
): Promise<CurrentDecision> {
  const ask = { rule, why, ...(taint === undefined ? {} : { taint }) };
  const { target, fileSha256 } = await shown(ports, state, asked, { ...resolved, ask });
  const binding = await bind(ports, { ...asked, fileSha256 }, target, policy);
  if (binding.hash !== hash || target.kind === "none") return { target, binding, args };
  const { ask: _asked, ...allowed } = target;
  return { target: allowed, binding, args };
}

/** Those of this moment: the owner may have changed the mode while the model wrote. */
const currentDirectives = ({ run }: State, asked: Pick<RunCore, "ordinal" | "directives">): Directives => {
  const active = activeRun(run);
  return active?.ordinal === asked.ordinal ? active.directives : asked.directives;
};
/** What the decision needs of the run. */
interface Caused {
  readonly taint: Taint | undefined;
  readonly origin: Origin | undefined;
  readonly directives: Directives | undefined;
  readonly runId: string | undefined;
}
async function tableOf(
  { native, policies, wall }: DecidePorts,
  { identity, sessionId, settings }: State,
  context: RunContext,
  { taint, origin, directives, runId }: Caused,
): Promise<ToolTable> {
  const { config, nodes, defined, jobsMadeBy = [] } = context;
  return {
    isOwners: identity.isOwnersSession,
    tools: runTools(identity, native, context),
    nodes,
    toolMs: config.timeouts.toolMs,
    waitMs: origin?.kind === "schedule" ? origin.waitMs : undefined,
    policy: {
      policy: await policies.of(config.toolApproval),
      mode: runModeAt(directives, settings, wall()),
      unset: DEFAULT_MODE,
      taint,
      byOthers: origin === undefined || !isPlainlyOwner(origin),
      ownPlaces: context.ownPlaces ?? [],
      jobsMade: { run: jobsMadeBy.filter((by) => by === runId).length, day: jobsMadeBy.length },
      alwaysAsked: defined?.definition.autonomy?.requires_approval ?? [],
    },
    grants: {
      agentId: identity.agentId,
      held: (context.grants ?? []).filter((grant) => grant.expiresAt > wall() && (grant.sessionId ?? sessionId) === sessionId),
    },
  };
}
async function bind(
  { sha256 }: DecidePorts,
  { callId, name, arguments: args, fileSha256 }: Bound,
  target: CallTarget,
  policy: string,
): Promise<Binding> {
  const on = target.kind === "none" ? { kind: "native" as const } : targetOf(target);
  const [hash, argsHash] = await Promise.all([
    sha256(bindingText({ callId, name, target: on, args, fileSha256 }, policy)),
    sha256(sameCallText({ name, args })),
  ]);
  return { hash, argsHash, policy };
}
interface Bound extends Omit<Asked, "providerId"> {
  readonly callId: string;
  readonly fileSha256: string | undefined;
}
interface Shown {
  readonly target: CallTarget;
  readonly fileSha256?: string;
}
/**
 * A call that is refused in any case, such as a change that cannot be made, is not asked about (rule AP17). A question about a change of a
 * file shows the change, and is bound to the file as it is (rule TA10).
 */
async function shown(
  { native, sha256 }: DecidePorts,
  { identity }: State,
  { name, arguments: args }: Omit<Asked, "providerId">,
  target: CallTarget,
): Promise<Shown> {
  if (target.kind !== "native" || target.ask === undefined) return { target };
  const problem = native.problem?.(name, args, identity.agentId);
  if (problem !== undefined) return { target: notRun(problem) };
  const preview = await native.preview?.(name, args, identity);
  if (preview === undefined) return { target };
  if (!preview.ok) return { target: notRun(preview.error) };
  const { path, before, after, etag } = preview.value;
  if (before === after)
    return { target: { kind: "none", reason: "tool.bad_args", message: `Not run: ${path} has exactly this content already. Go on.` } };
  const { text, bytes, whole } = shownText(unifiedDiff(path, before, after));
  const change = { text, bytes, ...(whole === undefined ? {} : { sha256: await sha256(whole) }) };
  return {
    target: { ...target, ask: { ...target.ask, change }, expect: etag },
    fileSha256: before === undefined ? "absent" : await sha256(before),
  };
}
const notRun = (error: GsvError): CallTarget => ({ kind: "none", reason: "tool.bad_args", message: `Not run: ${sentence(error)}` });
/** Everything that the decision about a call depends on, beside the call. */
async function policyVersion({ sha256 }: DecidePorts, { config }: RunContext, { policy, isOwners }: ToolTable): Promise<string> {
  const heard = isUnsure(policy.taint) ? { taint: policy.taint } : {};
  const always = policy.alwaysAsked?.length ? { alwaysAsked: policy.alwaysAsked } : {};
  const parts = { toolApproval: config.toolApproval ?? null, mode: policy.mode ?? null, isOwners, ...heard, ...always };
  return (await sha256(canonicalJson(parts))).slice(0, 16);
}
/** With the sandbox and the folder of the target: on a machine that has lost it, or works in another one, an answer no longer holds. */
function atTarget(version: string, target: CallTarget, { nodes }: ToolTable): string {
  if (target.kind === "none") return version;
  const machine = machineAt(targetOf(target), nodes);
  return [version, machine?.sandbox?.profile, machine?.workspace].filter((part) => part !== undefined).join("/");
}
