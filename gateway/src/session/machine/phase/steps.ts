/** Starts the model calls of a run: another attempt at a step, or the next step after the last result. PURE. */
import { type Draft, open, take } from "../draft.ts";
import { FAILED_CALLS, LIMITS } from "../limits.ts";
import type { FailedCall } from "../log.ts";
import { modelEffectId } from "../ids.ts";
import type { RunCore, Thinking, WaitingRun } from "../state.ts";
import type { TransitionName } from "../transitions.ts";

export type RunBase = Omit<
  Thinking,
  "phase" | "attempt" | "tries" | "restarts" | "deadline" | "overflows" | "failed" | "compactionTried" | "looksAtLimit"
>;
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
export interface Again
  extends Pick<Thinking, "attempt" | "tries" | "restarts" | "overflows" | "failed" | "compactionTried" | "looksAtLimit"> {
  readonly waitMs: number;
}
/** The fields that another attempt at the same step keeps. */
export const sameStep = ({
  restarts,
  overflows,
  failed,
  compactionTried,
  looksAtLimit,
}: WaitingRun): Pick<Again, "restarts" | "overflows" | "failed" | "compactionTried" | "looksAtLimit"> => ({
  restarts,
  ...(overflows === undefined ? {} : { overflows }),
  ...(failed ? { failed } : {}),
  ...(compactionTried === undefined ? {} : { compactionTried }),
  ...(looksAtLimit === undefined ? {} : { looksAtLimit }),
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

/** The same step under a new attempt number, for when it can be made. */
export const laterAttempt = (run: Thinking): WaitingRun => ({
  ...runBase(run),
  ...sameStep(run),
  attempt: run.attempt + 1,
  tries: run.tries,
});
/** The run with one more call that got no answer. */
export const withFailed = (run: Thinking, call: FailedCall): Thinking => ({
  ...run,
  failed: [...(run.failed ?? []), call].slice(-FAILED_CALLS),
});
/** A call that was lost or stopped: what it was sent is not known any more. Unchanged when no model was called yet. */
export function withLost(d: Draft, run: Thinking, reason: string): Thinking {
  const begins = run.deadline - LIMITS.leaseMs;
  return d.at.now < begins || run.looksAtLimit ? run : withFailed(run, { at: d.at.wall, reason });
}
