/** Starts the model calls of a run: another attempt at a step, or the next step after the last result. PURE. */
import { type Draft, open, take } from "../draft.ts";
import { LIMITS } from "../limits.ts";
import { modelEffectId } from "../ids.ts";
import type { RunCore, Thinking, WaitingRun } from "../state.ts";
import type { TransitionName } from "../transitions.ts";

export type RunBase = Omit<Thinking, "phase" | "attempt" | "tries" | "restarts" | "deadline" | "overflows" | "compactionTried">;
export function runBase(run: RunCore): RunBase {
  const {
    ordinal,
    runId,
    messageId,
    origin,
    directives,
    reply,
    alsoTo,
    startedAt,
    progressAt,
    step,
    modelIndex,
    spent,
    unpriced,
    budget,
    extra,
    files,
    repeats,
    waitedMs,
    denied,
  } = run;
  return {
    ordinal,
    runId,
    messageId,
    origin,
    directives,
    ...(reply ? { reply } : {}),
    ...(alsoTo ? { alsoTo } : {}),
    startedAt,
    progressAt,
    step,
    modelIndex,
    spent,
    ...(unpriced === undefined ? {} : { unpriced }),
    ...(budget ? { budget } : {}),
    ...(extra ? { extra } : {}),
    ...(files ? { files } : {}),
    ...(repeats ? { repeats } : {}),
    ...(waitedMs === undefined ? {} : { waitedMs }),
    ...(denied ? { denied } : {}),
  };
}
export interface Again extends Pick<Thinking, "attempt" | "tries" | "restarts" | "overflows" | "compactionTried"> {
  readonly waitMs: number;
}
/** The fields that another attempt at the same step keeps. */
export const sameStep = ({
  restarts,
  overflows,
  compactionTried,
}: WaitingRun): Pick<Again, "restarts" | "overflows" | "compactionTried"> => ({
  restarts,
  ...(overflows === undefined ? {} : { overflows }),
  ...(compactionTried === undefined ? {} : { compactionTried }),
});
const FIRST: Again = { attempt: 0, tries: 0, restarts: 0, waitMs: 0 };
/** The only function that enters `thinking`: opens a new attempt with its effect and lease. */
export function think(d: Draft, name: TransitionName, base: RunBase, again: Again = FIRST): void {
  take(d, name);
  const notBefore = d.at.now + again.waitMs;
  const run: Thinking = {
    ...base,
    phase: "thinking",
    attempt: again.attempt,
    tries: again.tries,
    ...sameStep({ ...base, ...again }),
    deadline: notBefore + LIMITS.leaseMs,
  };
  d.state.run = run;
  open(d, { type: "CallModel", id: modelEffectId(run), notBefore });
}
