/**
 * AwaitNodes: tells the gateway which calls of the session wait for machines, and asks the policy about those whose machine is back (rules
 * OM3, OM5). Asked again every few minutes, so that a lost message of the gateway only delays a call.
 */
import { isAwaitingNode, nodeOf, type WaitingCall } from "../../calls/open-call.ts";
import type { GatewayPort } from "../../ports/gateway.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody, LookedCall, CurrentDecision } from "../machine/event.ts";
import type { State } from "../machine/state.ts";
import { backoff, type Flight, type FlightEnd } from "../pump.ts";

export interface AwaitPorts {
  readonly state: () => State | undefined;
  readonly gateway: Pick<GatewayPort, "awaitNodes">;
  /** What the policy says now. Undefined: the call does not wait any more. Rejects when the policy can't be asked. */
  readonly decide: (call: WaitingCall) => Promise<CurrentDecision | undefined>;
  /** False: it changed nothing. */
  readonly commit: (event: EventBody) => boolean;
  /** Stores the denials among these decisions, which were made about the calls of `state`. Never rejects. */
  readonly recordDenied: (state: State, decided: readonly DecidedWait[]) => Promise<void>;
}
export interface DecidedWait {
  readonly call: WaitingCall;
  readonly current: CurrentDecision;
}
const ASK_AGAIN_MS = 300_000;
/** The machine is connected, and the settings of the run do not say so yet. */
const LOOK_AGAIN_MS = 1_000;
const MAX_RETRY_MS = 30_000;

export async function awaitNodes(effect: EffectOf<"AwaitNodes">, flight: Flight, ports: AwaitPorts): Promise<FlightEnd> {
  const state = ports.state();
  if (!state) return "done";
  const { identity, run } = state;
  const waiting = run.phase === "acting" ? run.calls.filter(isAwaitingNode) : [];
  let looked: readonly LookedCall[];
  let back: readonly DecidedWait[] = [];
  let missed = false;
  try {
    const answer = await ports.gateway.awaitNodes({
      sessionKey: identity.key,
      revision: effect.revision,
      runId: run.phase === "acting" ? run.runId : "",
      calls: waiting.flatMap((call) => {
        const nodeId = nodeOf(call);
        const { callId, name: tool, since, expiresAt } = call;
        return nodeId === undefined ? [] : [{ callId, nodeId, tool, since, expiresAt }];
      }),
    });
    if (waiting.length === 0) {
      ports.commit({ type: "EffectDone", effectId: effect.id });
      return "done";
    }
    const ready = waiting.filter(({ callId }) => answer.ready.includes(callId));
    const decided = await Promise.all(ready.map(async (call) => ({ call, current: await ports.decide(call) })));
    back = decided.flatMap(({ call, current }) => (current === undefined || isAway(current) ? [] : [{ call, current }]));
    missed = back.length < ready.length;
    const refused = answer.full ? waiting.filter((call) => !ready.includes(call)).map(({ callId }) => ({ callId })) : [];
    looked = [...back.map(({ call: { callId }, current }) => ({ callId, current })), ...refused];
  } catch {
    return backoff(flight.tries, MAX_RETRY_MS);
  }
  // A denial is recorded when it has closed its call: before, another report could decide about the call again.
  if (looked.length > 0 && ports.commit({ type: "NodesLooked", effectId: effect.id, calls: looked })) await ports.recordDenied(state, back);
  // After a commit that changed what waits, this effect is settled, and a new one tells the rest.
  return { retryInMs: missed ? LOOK_AGAIN_MS : ASK_AGAIN_MS };
}
const isAway = ({ target }: CurrentDecision): boolean => target.kind === "node" && target.isAway === true;
