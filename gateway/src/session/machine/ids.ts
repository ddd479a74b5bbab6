/**
 * The ids of effects, calls and replies, and the paths of files of a session. Each follows from the state alone, so that an effect that is
 * opened again after a restart has the same id. PURE.
 */
import type { OpenCall } from "../../calls/open-call.ts";
import type { Archiving, RunCore, State, Thinking, WaitingRun } from "./state.ts";

export const modelEffectId = (run: Pick<Thinking, "ordinal" | "step" | "attempt">): string =>
  `r${run.ordinal}/t${run.step}/m${run.attempt}`;
export const dispatchEffectId = (run: Pick<RunCore, "ordinal" | "step">, call: Pick<OpenCall, "index" | "dispatch">): string =>
  `r${run.ordinal}/t${run.step}/d${call.index}.${call.dispatch}`;
/** The id of the one open effect of an archive. */
export const archiveEffectId = (run: Pick<Archiving, "ordinal" | "attempt" | "stage">): string =>
  `${run.stage === "archive" ? "a" : "s"}${run.ordinal}/${run.attempt}`;
export const memoryEffectId = (ordinal: number): string => `memory/${ordinal}`;
/** Where memories wait for the owner. */
export const MEMORY_QUARANTINE = "memory/quarantine/";
/** The path of a daily file, under the agent's folder. `date` is YYYY-MM-DD. */
export const memoryPath = (date: string): string => `memory/${date}.md`;
export const mediaEffectId = (ordinal: number): string => `media/${ordinal}`;
/** One per run, because a run ends exactly once. */
export const replyName = (ref: string, ordinal: number): string => `${ref}/r${ordinal}`;
export const deliverEffectId = (upto: number): string => `deliver/${upto}`;
export const cancelEffectId = (count: number): string => `cancel/${count}`;
export const approvalsEffectId = (revision: number): string => `approvals/${revision}`;
export const waitsEffectId = (revision: number): string => `waits/${revision}`;
export const storeEffectId = (callId: string): string => `store/${callId}`;
/** Rule G1. Unique in the gateway, because `ref` is. */
export const callIdOf = (ref: string, run: Pick<RunCore, "ordinal" | "step">, index: number): string =>
  `${ref}/r${run.ordinal}/${run.step}/${index}`;
/** The id that providers see; every one of them takes these characters. */
export const providerCallId = (run: Pick<RunCore, "ordinal" | "step">, index: number): string => `call_${run.ordinal}_${run.step}_${index}`;
/** The id of the question about a run's limit, before this model call. */
export const limitCallId = (ref: string, run: Pick<WaitingRun, "ordinal" | "step" | "attempt">): string =>
  `${ref}/r${run.ordinal}/${run.step}/limit${run.attempt}`;
/** Where the full text of a long result is kept, under the agent's folder (G4). */
export const resultPath = (callId: string): string => `results/${callId.replaceAll("/", "-")}.txt`;

/** True for a call id that this session made at some time. */
export function isOwnCallId(state: Pick<State, "identity" | "runCount">, callId: string): boolean {
  const parts = callId.split("/");
  if (parts.length !== 4 || parts[0] !== state.identity.ref) return false;
  const ordinal = /^r([1-9][0-9]{0,14})$/.exec(parts[1] ?? "");
  return (
    ordinal !== null && Number(ordinal[1]) <= state.runCount && /^[0-9]{1,9}$/.test(parts[2] ?? "") && /^[0-9]{1,9}$/.test(parts[3] ?? "")
  );
}
