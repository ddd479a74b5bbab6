/**
 * The model's calls with their targets, and what an answer of the owner is bound to where a call needs one. Used when the model has
 * replied, and again when the answer comes: only what would be done now can be allowed.
 */
import { type Binding, bindingText, canonicalJson, sameCallText } from "../calls/approval.ts";
import { DEFAULT_MODE } from "../policy/decide.ts";
import type { Policies } from "../policy/load.ts";
import { type SessionAudit, TOOL_CALL } from "../ports/audit.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import { originText } from "../ports/origin.ts";
import type { RunContext } from "../ports/run-context.ts";
import type { AwaitingCall } from "../calls/open-call.ts";
import type { CallTarget, PresentDecision, ReplyCall } from "./machine/event.ts";
import { targetOf } from "./machine/phase/approving.ts";
import { callIdOf, type RunCore, type State } from "./machine/state.ts";
import { modeAt } from "./mode.ts";
import { resolveCall, runTools, sandboxAt, type ToolTable } from "./tools.ts";

export interface DecidePorts {
  readonly native: Pick<NativeTools, "entries">;
  readonly sha256: (text: string) => Promise<string>;
  readonly policies: Policies;
  /** Of the denials (rule PO9). */
  readonly audit: (entry: SessionAudit) => Promise<void>;
  readonly wall: () => number;
  readonly failed: (what: string, error: unknown) => void;
}
type Asked = Pick<ReplyCall, "providerId" | "name" | "arguments">;

export async function decideCalls(
  ports: DecidePorts,
  state: State,
  context: RunContext,
  run: Pick<RunCore, "ordinal" | "step" | "origin">,
  calls: readonly Asked[],
): Promise<readonly ReplyCall[]> {
  if (calls.length === 0) return [];
  const table = await tableOf(ports, state, context);
  const version = await policyVersion(ports, context, table);
  const decided = await Promise.all(
    calls.map(async (call, index): Promise<ReplyCall> => {
      const target = resolveCall(call.name, call.arguments, table);
      if (target.kind === "none" || target.ask === undefined) return { ...call, target };
      return {
        ...call,
        target,
        binding: await bind(ports, callIdOf(state.identity.ref, run, index), call, target, atTarget(version, target, table)),
      };
    }),
  );
  await recordDenied(ports, state, run, decided);
  return decided;
}
/** Never rejects: a denial stands without its entry, because the call and its result are in the session's own log. */
async function recordDenied(
  { audit, failed }: DecidePorts,
  { identity }: State,
  run: Pick<RunCore, "ordinal" | "step" | "origin">,
  calls: readonly ReplyCall[],
): Promise<void> {
  for (const [index, { name, arguments: args, target }] of calls.entries()) {
    if (target.kind !== "none" || target.rule === undefined) continue;
    const entry: SessionAudit = {
      actor: `session:${identity.key}`,
      origin: originText(run.origin),
      action: TOOL_CALL,
      target: name.slice(0, 512),
      decision: "denied",
      rule: target.rule,
      detail: callIdOf(identity.ref, run, index),
      args,
    };
    await audit(entry).catch((error: unknown) => failed("recording a denied call", error));
  }
}
/** What would be decided now about a call that waits. */
export async function presentDecision(
  ports: DecidePorts,
  state: State,
  context: RunContext,
  call: AwaitingCall,
  args: Readonly<Record<string, unknown>>,
): Promise<PresentDecision> {
  const asked = { name: call.name, arguments: args };
  const table = await tableOf(ports, state, context);
  const target = resolveCall(asked.name, args, table);
  const version = atTarget(await policyVersion(ports, context, table), target, table);
  return { target, binding: await bind(ports, call.callId, asked, target, version), args };
}

async function tableOf({ native, policies, wall }: DecidePorts, { identity, settings }: State, context: RunContext): Promise<ToolTable> {
  const { config, nodes } = context;
  return {
    isOwners: identity.isOwnersSession,
    tools: runTools(identity, native, context),
    nodes,
    toolMs: config.timeouts.toolMs,
    policy: { policy: await policies.of(config.toolApproval), mode: modeAt(settings, wall()), unset: DEFAULT_MODE },
  };
}
async function bind(
  { sha256 }: DecidePorts,
  callId: string,
  { name, arguments: args }: Omit<Asked, "providerId">,
  target: CallTarget,
  policy: string,
): Promise<Binding> {
  const on = target.kind === "none" ? { kind: "native" as const } : targetOf(target);
  const [hash, argsHash] = await Promise.all([
    sha256(bindingText({ callId, name, target: on, args }, policy)),
    sha256(sameCallText({ name, args })),
  ]);
  return { hash, argsHash, policy };
}
/** Everything that the decision about a call depends on, beside the call. */
const policyVersion = async ({ sha256 }: DecidePorts, { config }: RunContext, { policy, isOwners }: ToolTable): Promise<string> =>
  (await sha256(canonicalJson({ toolApproval: config.toolApproval ?? null, mode: policy.mode ?? null, isOwners }))).slice(0, 16);
/** With the sandbox of the target: on a machine that has lost it, an answer no longer holds. */
function atTarget(version: string, target: CallTarget, { nodes }: ToolTable): string {
  const sandbox = target.kind === "none" ? undefined : sandboxAt(targetOf(target), nodes);
  return sandbox === undefined ? version : `${version}/${sandbox}`;
}
