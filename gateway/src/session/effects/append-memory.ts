/** AppendMemory: adds what was learnt to a daily file (promises P17, K27). Kept in its rows until the file has it, however long that takes. */
import type { MemoryFiles } from "../../ports/memory.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import { memoryPath, type State } from "../machine/state.ts";
import { backoff, type Flight, type FlightEnd } from "../pump.ts";

export interface AppendPorts {
  readonly state: () => State | undefined;
  readonly text: (effectId: string) => string | undefined;
  readonly memory: MemoryFiles;
  readonly commit: (event: EventBody) => void;
}
/** Then people are told, and it goes on slowly. */
export const PARKED_TRIES = 10;
const PARKED_RETRY_MS = 3_600_000;

/** When to try again after one more failure. The same way for all that must happen in the end. */
export function retryLater(
  effect: EffectOf<"AppendMemory" | "DeleteMedia">,
  { tries }: Flight,
  commit: (event: EventBody) => void,
  text: string,
): FlightEnd {
  if (tries + 1 === PARKED_TRIES) commit({ type: "Parked", effectId: effect.id, text });
  return tries + 1 >= PARKED_TRIES ? { retryInMs: PARKED_RETRY_MS } : backoff(tries);
}

export async function appendMemory(
  effect: EffectOf<"AppendMemory">,
  flight: Flight,
  { state, text, memory, commit }: AppendPorts,
): Promise<FlightEnd> {
  const identity = state()?.identity;
  const memories = text(effect.id);
  if (identity && memories !== undefined) {
    const put = await memory.append(identity.agentId, effect.date, memories, `${identity.ref}/${effect.id}`);
    if (!put.ok)
      return retryLater(
        effect,
        flight,
        commit,
        `What was learnt could not be added to ${memoryPath(effect.date)} yet: ${put.error.message} It is kept and tried again.`,
      );
  }
  commit({ type: "EffectDone", effectId: effect.id });
  return "done";
}
