/**
 * DispatchTool: runs a native call, or hands a call to its node. A repeatable call is handed over until the node has it; any other call
 * is committed as sent first (rule G2). The result of a node arrives later, as an event of its own.
 */
import type { PolicyClass } from "../../../../protocol/gen/types.ts";
import { type After, within } from "../../../../protocol/runtime/within.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import type { SessionMedia } from "../../ports/media.ts";
import { originText } from "../../ports/origin.ts";
import type { ToolEntry } from "../../ports/tool-entry.ts";
import type { Delegating, NativeToolContext, NativeTools } from "../../ports/native-tools.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import type { LogRow } from "../machine/log.ts";
import { shareOf } from "../machine/phase/share.ts";
import { isLastOpenCall, type State } from "../machine/state.ts";
import { TOOL_CALL } from "../../ports/audit.ts";
import { isUnsure, taintMark } from "../../ports/taint.ts";
import { nothingRead, refusalTaint } from "../../policy/taint.ts";
import { withoutWait } from "../../calls/wait.ts";
import { DELEGATE } from "../../agents/delegation.ts";
import { mayUse, NATIVE_PREFIX } from "../../tools/registry.ts";
import { runModeAt } from "../mode.ts";
import { CONFIRMED_MS, type Confirmed } from "../run-context.ts";
import { backoff, type Flight, type FlightEnd } from "../pump.ts";
import { fromNative } from "../tool-content.ts";

export interface DispatchPorts {
  readonly state: () => State | undefined;
  readonly row: (seq: number) => LogRow | undefined;
  readonly gateway: GatewayPort;
  readonly native: NativeTools;
  readonly media: Pick<SessionMedia, "takeResult">;
  readonly wall: () => number;
  readonly userTimezone: () => string;
  /** The key of the session's file with this number. */
  readonly mediaKey: (number: number) => string | undefined;
  /** Hides stored secrets in what a tool gives. */
  readonly hider: () => Promise<(text: string) => string>;
  /** The gateway's context version comes soon; undefined: it does not. Never rejects. */
  readonly confirmSoon: (coming: Promise<Confirmed | undefined>) => void;
  readonly after: After;
  /** Commits. True: the event changed something. */
  readonly commit: (event: EventBody) => boolean;
}
const MAX_RETRY_MS = 10_000;
const READS: ReadonlySet<PolicyClass | undefined> = new Set(["read_private", "read_public"]);

export async function dispatchTool(effect: EffectOf<"DispatchTool">, flight: Flight, ports: DispatchPorts): Promise<FlightEnd> {
  const state = ports.state();
  const row = ports.row(effect.seq);
  const block = row?.kind === "assistant" ? row.message.content.filter((content) => content.type === "toolCall")[effect.index] : undefined;
  if (!state || !block) throw new Error(`the arguments of ${effect.callId} are not in the log`);
  const { target, callId, tool, timeoutMs } = effect;
  const origin = {
    ...(state.run.phase === "acting" ? { origin: state.run.origin, runId: state.run.runId } : {}),
    ...(isUnsure(state.taint) ? { taint: state.taint } : {}),
  };
  if (target.kind === "native") return runNative(effect, { args: block.arguments, state, origin }, flight, ports);
  const { nodeId } = target;
  const decided = {
    ...(effect.rule === undefined ? {} : { rule: effect.rule }),
    ...(effect.sandbox === undefined ? {} : { sandbox: effect.sandbox }),
  };
  const args = effect.withoutWait ? withoutWait(block.arguments) : block.arguments;
  const dispatch = { callId, sessionKey: state.identity.key, nodeId, tool, args, timeoutMs, ...decided, ...origin };
  if (!effect.repeatable) {
    // From here on the end of this incarnation leaves an unknown outcome.
    if (!ports.commit({ type: "ToolSent", effectId: effect.id, callId })) return "done";
    const outcome = await ports.gateway.dispatchTool(dispatch).catch(() => "uncertain" as const);
    if (outcome === "offline") ports.commit({ type: "ToolOffline", effectId: effect.id, callId, first: true });
    if (outcome === "refused" || outcome === "changed") ports.commit(refused(effect, nodeId, outcome, true));
    if (outcome === "uncertain") ports.commit({ type: "ToolUncertain", effectId: effect.id, callId });
    return "done";
  }
  const outcome = await ports.gateway.dispatchTool(dispatch).catch(() => "uncertain" as const);
  if (outcome === "uncertain") return backoff(flight.tries, MAX_RETRY_MS);
  if (outcome === "offline") ports.commit({ type: "ToolOffline", effectId: effect.id, callId, first: isFirst(effect, flight) });
  if (outcome === "refused" || outcome === "changed") ports.commit(refused(effect, nodeId, outcome, isFirst(effect, flight)));
  return "done";
}
/** What a call is made with. */
interface Asked {
  readonly args: Readonly<Record<string, unknown>>;
  readonly state: State;
  readonly origin: Pick<NativeToolContext, "origin" | "runId" | "taint">;
}
async function runNative(
  effect: EffectOf<"DispatchTool">,
  { args, state, origin }: Asked,
  flight: Flight,
  ports: DispatchPorts,
): Promise<FlightEnd> {
  const { target, callId, tool } = effect;
  // Asked for before the call: without it the result could not be kept.
  const hide = await ports.hider().catch(() => undefined);
  if (hide === undefined) return backoff(flight.tries, MAX_RETRY_MS);
  const recorded = record(effect, args, state, ports);
  // Such a call changes nothing that the next model call needs, and no other call does beside it.
  const isOnlyReading = READS.has(entryOf(effect, ports)?.policyClass) && isLastOpenCall(state.run, callId);
  const outcome = await ports.native.run(tool, args, {
    identity: state.identity,
    callId,
    ...origin,
    ...(effect.expect === undefined ? {} : { expect: effect.expect }),
    now: ports.wall(),
    userTimezone: ports.userTimezone(),
    gateway: ports.gateway,
    mediaKey: ports.mediaKey,
    ...delegatingIn(state, effect, flight.signal, ports.wall()),
  });
  // The run that waited for the task of another agent has ended: the report is no news.
  if (tool === DELEGATE && flight.signal.aborted) return "done";
  const report = fromNative(outcome, hide);
  const content = report.content.every((block) => block.type === "text")
    ? report.content
    : await ports.media.takeResult({
        sessionKey: state.identity.key,
        callId,
        target,
        content: report.content,
        now: ports.wall(),
      });
  const files = outcome.ok && outcome.files !== undefined ? { files: outcome.files } : {};
  const known = outcome.ok ? outcome.taint : refusalTaint(tool, outcome.error.reason);
  const taint = known === undefined ? {} : { taint: known };
  const note = outcome.ok && outcome.note !== undefined ? { note: outcome.note } : {};
  const used = outcome.ok && outcome.used !== undefined ? { used: outcome.used } : {};
  // The gateway stores the entry while this session stores the result. Without its answer the next model call asks the gateway itself.
  // A run that was aborted meanwhile makes no next call.
  if (isOnlyReading && isLastOpenCall(ports.state()?.run, callId))
    ports.confirmSoon(within(ports.after, CONFIRMED_MS, recorded, () => undefined));
  ports.commit({ type: "ToolResult", callId, from: target, ...report, content, ...files, ...taint, ...note, ...used });
  // After the commit: the result does not need the entry.
  await recorded;
  return "done";
}
/** What the tool that hands on a task needs of the run. */
function delegatingIn(
  { run, settings, clock }: State,
  { tool, callId }: EffectOf<"DispatchTool">,
  signal: AbortSignal,
  wall: number,
): { readonly delegating?: Delegating } {
  if (tool !== DELEGATE || run.phase !== "acting") return {};
  const call = run.calls.find((open) => open.callId === callId);
  if (call === undefined) return {};
  const budget = shareOf(run, clock.now + Math.max(0, wall - clock.wall));
  const mode = runModeAt(run.directives, settings, wall);
  return { delegating: { tool: call.name, budget, ...(mode === undefined || mode === "full" ? {} : { mode }), signal } };
}
/** The tool behind `delegate_to_NAME` and those of packs are in no list. */
const entryOf = ({ tool }: EffectOf<"DispatchTool">, { native }: Pick<DispatchPorts, "native">): ToolEntry | undefined =>
  native.entries.find(({ definition }) => definition.name === tool);
/**
 * The entry of a native call in the audit; the gateway records calls of machines when it hands them over. Gives the gateway's context version
 * and the time of the answer. Never rejects.
 */
async function record(
  effect: EffectOf<"DispatchTool">,
  args: Readonly<Record<string, unknown>>,
  { identity, run, taint }: State,
  ports: Pick<DispatchPorts, "gateway" | "native" | "wall">,
): Promise<Confirmed | undefined> {
  const { tool: target, callId, rule: decided } = effect;
  const entry = entryOf(effect, ports);
  // One that is in no list is the owner's alone, and none of them has the prefix.
  const isOther = entry === undefined && !target.startsWith(NATIVE_PREFIX) && identity.isOwnersSession;
  const isOpen = entry !== undefined && mayUse(entry, { isOwners: identity.isOwnersSession, isOpened: () => false });
  const allowed = isOther || isOpen;
  const rule = allowed ? (decided ?? (identity.isOwnersSession ? "tool.owner" : "tool.opened")) : "tool.guest";
  try {
    const version = await ports.gateway.audit({
      actor: `session:${identity.key}`,
      ...(run.phase === "acting" ? { origin: originText(run.origin) + taintMark(taint) } : {}),
      action: TOOL_CALL,
      target: target.slice(0, 512),
      tool: target.slice(0, 256),
      decision: allowed ? "allowed" : "denied",
      rule,
      detail: callId,
      args,
    });
    return version === undefined ? undefined : { version, at: ports.wall() };
  } catch {
    // The gateway does not answer now. The call is in the session's own log in any case.
    return undefined;
  }
}
/** Texts for a call that was not handed over before, and for one that may have been. */
const REFUSED = {
  /** The owner withdrew the tool from this conversation after the model had seen it. */
  refused: {
    reason: "auth.forbidden",
    before: (tool: string) => `Not run: this conversation may not use ${tool}. Only the owner's own conversation may.`,
    later: (tool: string) => `This conversation may no longer use ${tool}.`,
  },
  /** A decision holds for the sandbox that it knew (rule PO14). */
  changed: {
    reason: "policy.denied",
    before: (tool: string) => `Not run: the machine has another sandbox than when ${tool} was decided. Make the call again.`,
    later: (tool: string) => `The machine came back with another sandbox than when ${tool} was decided, so it did not get the call again.`,
  },
} as const;
function refused({ callId, tool }: EffectOf<"DispatchTool">, nodeId: string, why: keyof typeof REFUSED, first: boolean): EventBody {
  const { reason, before, later } = REFUSED[why];
  const name = `${nodeId}__${tool}`;
  const text = first ? before(name) : `${later(name)} Whether the call was run before is not known.`;
  return {
    type: "ToolResult",
    callId,
    from: { kind: "node", nodeId },
    content: [{ type: "text", text }],
    // The gateway's own words.
    taint: nothingRead(name),
    outcome: first ? "error" : "unknown",
    reason: first ? reason : "tool.outcome_unknown",
  };
}
/** No earlier dispatch of this call can have reached the node. */
const isFirst = (effect: EffectOf<"DispatchTool">, flight: Flight): boolean =>
  !flight.inherited && flight.tries === 0 && effect.id.endsWith(".0");
