/** AppendMemory: adds memories to a daily file (promises P17, K27). They stay in their rows until the file has them. */
import type { MemoryFiles } from "../../ports/memory.ts";
import type { EffectOf } from "../machine/effect.ts";
import type { EventBody } from "../machine/event.ts";
import { MEMORY_QUARANTINE, memoryPath } from "../machine/ids.ts";
import type { State } from "../machine/state.ts";
import { backoff, type Flight, type FlightEnd } from "../pump.ts";

export interface AppendPorts {
  readonly state: () => State | undefined;
  readonly text: (effectId: string) => string | undefined;
  readonly memory: MemoryFiles;
  readonly wall: () => number;
  readonly commit: (event: EventBody) => void;
}
/** After this many tries people are told, and the pauses grow. */
export const PARKED_TRIES = 10;
const PARKED_RETRY_MS = 3_600_000;

/** The pause after a failure, for effects that are never given up. */
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
  { state, text, memory, wall, commit }: AppendPorts,
): Promise<FlightEnd> {
  const identity = state()?.identity;
  const memories = text(effect.id);
  if (identity && memories !== undefined) {
    const key = `${identity.ref}/${effect.id}`;
    const { date, taint } = effect;
    const { agentId, key: sessionKey } = identity;
    const put = taint
      ? await memory.quarantine({ agentId, date, text: memories, key, taint, sessionKey, at: wall() })
      : await memory.append(agentId, date, memories, key);
    if (!put.ok)
      return retryLater(
        effect,
        flight,
        commit,
        `What was learnt could not be added to ${taint ? MEMORY_QUARANTINE : memoryPath(date)} yet: ${put.error.message} It is kept and tried again.`,
      );
  }
  commit({ type: "EffectDone", effectId: effect.id });
  return "done";
}
