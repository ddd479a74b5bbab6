/** CancelTool: tells a node that calls are no longer wanted. A node that can't be told is asked again when it comes back. */
import type { GatewayPort } from "../../ports/gateway.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import { backoff, type Flight, type FlightEnd } from "../pump.ts";

export interface CancelPorts {
  readonly gateway: Pick<GatewayPort, "cancelTools">;
  readonly commit: (event: EventBody) => void;
}
const MAX_TRIES = 5;

export async function cancelTool(effect: EffectOf<"CancelTool">, flight: Flight, { gateway, commit }: CancelPorts): Promise<FlightEnd> {
  try {
    await gateway.cancelTools(effect.nodeId, effect.callIds, effect.reason);
  } catch {
    if (flight.tries + 1 < MAX_TRIES) return backoff(flight.tries);
  }
  commit({ type: "EffectDone", effectId: effect.id });
  return "done";
}
