/**
 * The model's calls with their targets, and what an answer of the owner is bound to where a call needs one. Used when the model has
 * replied, and again when the answer comes: only what would be done now can be allowed.
 */
import { type Ask, type Binding, bindingText, canonicalJson, sameCallText } from "../calls/approval.ts";
import type { NativeTools } from "../ports/native-tools.ts";
import type { RunContext } from "../ports/run-context.ts";
import type { AwaitingCall } from "../calls/open-call.ts";
import type { CallTarget, PresentDecision, ReplyCall } from "./machine/event.ts";
import { targetOf } from "./machine/phase/approving.ts";
import { callIdOf, type RunCore, type State } from "./machine/state.ts";
import { resolveCall, runTools } from "./tools.ts";

export interface DecidePorts {
  readonly native: Pick<NativeTools, "entries">;
  readonly sha256: (text: string) => Promise<string>;
  /** Which calls need the owner's word. Absent: none. */
  readonly asks?: Asks;
}
export interface Asks {
  ask(name: string, args: Readonly<Record<string, unknown>>, context: RunContext): Ask | undefined;
  /** Everything that the decision about a call depends on, beside the call. */
  version(context: RunContext): unknown;
}
type Asked = Pick<ReplyCall, "providerId" | "name" | "arguments">;

export async function decideCalls(
  ports: DecidePorts,
  state: State,
  context: RunContext,
  run: Pick<RunCore, "ordinal" | "step">,
  calls: readonly Asked[],
): Promise<readonly ReplyCall[]> {
  const policy = await policyVersion(ports, context);
  return Promise.all(
    calls.map(async (call, index): Promise<ReplyCall> => {
      const target = resolved(ports, state, context, call);
      if (target.kind === "none" || target.ask === undefined) return { ...call, target };
      return { ...call, target, binding: await bind(ports, callIdOf(state.identity.ref, run, index), call, target, policy) };
    }),
  );
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
  const target = resolved(ports, state, context, asked);
  return { target, binding: await bind(ports, call.callId, asked, target, await policyVersion(ports, context)) };
}

function resolved(ports: DecidePorts, state: State, context: RunContext, { name, arguments: args }: Omit<Asked, "providerId">): CallTarget {
  const { identity } = state;
  const target = resolveCall(name, args, {
    isOwners: identity.isOwnersSession,
    tools: runTools(identity, ports.native, context),
    nodes: context.nodes,
    toolMs: context.config.timeouts.toolMs,
  });
  const ask = target.kind === "none" ? undefined : ports.asks?.ask(name, args, context);
  return ask === undefined || target.kind === "none" ? target : { ...target, ask };
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
const policyVersion = async ({ sha256, asks }: DecidePorts, context: RunContext): Promise<string> =>
  (await sha256(canonicalJson(asks?.version(context)))).slice(0, 16);
