/** Computes when a session must wake next, and whether its deadline has passed. Times are ms on the session's clock. PURE. */
import { LIMITS } from "./machine/limits.ts";
import { archiveEffectId, modelEffectId } from "./machine/ids.ts";
import type { Run } from "./machine/state.ts";

/** The effects that the pump is running. */
export interface UnderWay {
  inFlight(): readonly string[];
  isRunning(effectId: string): boolean;
  nextStart(): number | undefined;
}

/** The one effect whose running keeps the run's lease; calls on nodes have real deadlines. */
const leaseHolder = (run: Run): string | undefined =>
  run.phase === "thinking" ? modelEffectId(run) : run.phase === "archiving" ? archiveEffectId(run) : undefined;
const isHeld = (run: Run, underWay: UnderWay): boolean => {
  const holder = leaseHolder(run);
  return holder !== undefined && underWay.isRunning(holder);
};

export const isOverdue = (run: Run, underWay: UnderWay, now: number): boolean =>
  run.phase !== "idle" && now >= run.deadline && !isHeld(run, underWay);

/** Undefined: nothing waits for time to pass. */
export function nextWake(run: Run, underWay: UnderWay, now: number): number | undefined {
  const times: number[] = [];
  // Each tick renews the lease of work in memory.
  if (underWay.inFlight().length > 0) times.push(now + LIMITS.leaseMs);
  if (run.phase !== "idle" && !isHeld(run, underWay)) times.push(run.deadline);
  const start = underWay.nextStart();
  if (start !== undefined) times.push(start);
  return times.length === 0 ? undefined : Math.min(...times);
}
