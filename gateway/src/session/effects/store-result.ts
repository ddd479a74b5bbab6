/** StoreResult: moves the full text of a long result into the workspace, where the model can read it (rule G4). */
import type { Result } from "../../ports/result.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import { resultPath } from "../machine/ids.ts";
import type { State } from "../machine/state.ts";
import { backoff, type Flight, type FlightEnd } from "../pump.ts";

/** Files of an agent. Writing the same again is harmless. */
export interface ResultFiles {
  put(agentId: string, path: string, text: string): Promise<Result<void>>;
}
export interface StorePorts {
  readonly state: () => State | undefined;
  readonly text: (callId: string) => string | undefined;
  readonly files: ResultFiles;
  readonly commit: (event: EventBody) => void;
}
/** After that the text stays in its rows, and the next incarnation tries again. */
const MAX_TRIES = 10;

export async function storeResult(
  effect: EffectOf<"StoreResult">,
  flight: Flight,
  { state, text, files, commit }: StorePorts,
): Promise<FlightEnd> {
  const agentId = state()?.identity.agentId;
  const full = text(effect.callId);
  if (agentId !== undefined && full !== undefined) {
    const put = await files.put(agentId, resultPath(effect.callId), full);
    if (!put.ok) return flight.tries + 1 >= MAX_TRIES ? "done" : backoff(flight.tries);
  }
  commit({ type: "EffectDone", effectId: effect.id });
  return "done";
}
