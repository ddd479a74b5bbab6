/**
 * What follows a step, the check of the current limits, and the phase `paused`: a run has used up a limit, and the owner is asked for more
 * (rule SP10). A run that is not asked about, or gets no answer, ends. PURE.
 */
import { gaveWay, limitText } from "../../../calls/limit-question.ts";
import { BY_SETTING } from "../../../ports/approvals.ts";
import { isPlainlyOwner } from "../../../ports/origin.ts";
import type { MoreOffer } from "../../../ports/spend.ts";
import { type Draft, settle, take } from "../draft.ts";
import type { EventOf } from "../event.ts";
import { LIMITS } from "../limits.ts";
import { limitCallId, modelEffectId } from "../ids.ts";
import type { Acting, Extra, Paused, RunCore, Shortage, Thinking, WaitingRun } from "../state.ts";
import type { TransitionName } from "../transitions.ts";
import { endWithError, overBudget } from "./ending.ts";
import { ask, asked, endQuestion, newQuestion } from "./questions.ts";
import { withSteering } from "./steering.ts";
import { laterAttempt, runBase, sameStep, think } from "./steps.ts";

/** All results are there: the model is called again, unless the run has used up a limit. */
export function nextStep(d: Draft, name: TransitionName, run: Thinking | Acting): void {
  const next = { ...runBase(run), step: run.step + 1, progressAt: d.at.now };
  if (overBudget(d, run, next.step)) return askLimits(d, name, { ...next, attempt: 0, tries: 0, restarts: 0 });
  think(d, name, withSteering(d, next));
}
/** `next` is over a limit of the run's last model call, which may have been raised since: the current limits decide. */
export function askLimits(d: Draft, name: TransitionName, next: WaitingRun): void {
  const { attempt, tries } = next;
  think(d, name, runBase(next), { ...sameStep(next), attempt, tries, looksAtLimit: true, waitMs: 0 });
}
/** The current limits are known: the run goes on, or has used one up. */
export function limitsKnown(d: Draft, { effectId, budget }: EventOf<"LimitsKnown">): void {
  const { run } = d.state;
  if (run.phase !== "thinking" || !run.looksAtLimit || modelEffectId(run) !== effectId) return;
  settle(d, effectId);
  const { looksAtLimit: _looked, ...looked } = run;
  const known: Thinking = { ...looked, budget };
  const next = laterAttempt(known);
  const over = overBudget(d, known, known.step);
  if (over) return usedUp(d, known, over, next);
  const { attempt, tries } = next;
  think(d, "limitNotReached", withSteering(d, runBase(next)), { ...sameStep(next), attempt, tries, waitMs: 0 });
}
/** The run pauses where the owner can answer, and else ends. `next`: the model call that it continues with. */
export function usedUp(d: Draft, run: Thinking | Acting, { error, offer }: Shortage, next: WaitingRun): void {
  if (offer === undefined || !mayAsk(d, run)) return endWithError(d, "budgetUsedUp", run, error);
  take(d, "runPaused");
  const callId = limitCallId(d.state.identity.ref, next);
  const { why, setting } = offer;
  const question = newQuestion(d, callId, { why, rule: setting }, { hash: `limit/${d.at.freshId}`, argsHash: "", policy: "" }, []);
  const deadline = d.at.now + LIMITS.approvalMs;
  const paused: Paused = { ...next, phase: "paused", question, callId, offer, error, waitingSince: d.at.now, deadline };
  d.state.run = paused;
  ask(d, paused, asked(paused), limitText(question, offer), { limit: true });
}
/** Where messages wait, the next one begins instead: its sender says what to do. */
function mayAsk({ state }: Draft, { origin }: RunCore): boolean {
  return state.identity.isOwnersSession && isPlainlyOwner(origin) && state.queue.count === 0 && state.afterRun === undefined && !state.held;
}

/** The owner's answer to the question of a paused run. */
export function limitAnswered(d: Draft, run: Paused, { answer, by }: EventOf<"ApprovalAnswered">): void {
  const { question, error } = run;
  const ended = answer === "allow" ? "allowed" : "denied";
  endQuestion(d, asked(run), { ended, by });
  d.answer = { type: "approval", ended, by };
  if (answer === "deny") return endWithError(d, "limitKept", run, error);
  const { attempt, tries } = run;
  const waitedMs = (run.waitedMs ?? 0) + d.at.now - run.waitingSince;
  const extra = withMore(run.extra, run.offer, question.hash);
  think(d, "limitRaised", { ...runBase(run), extra, waitedMs, progressAt: d.at.now }, { ...sameStep(run), attempt, tries, waitMs: 0 });
}
function withMore(extra: Extra = {}, offer: MoreOffer, id: string): Extra {
  if (offer.of === "period") return { ...extra, raises: [...(extra.raises ?? []), { ...offer.raise, id }] };
  return { ...extra, [offer.of]: (extra[offer.of] ?? 0) + offer.amount };
}

/** The limit was raised, or its day is over: the run goes on as if it had been allowed more. */
export function limitNoLongerReached(d: Draft, { code, budget }: EventOf<"LimitNoLongerReached">): void {
  const { run } = d.state;
  if (run.phase !== "paused" || run.question.code !== code) return;
  const waitedMs = (run.waitedMs ?? 0) + d.at.now - run.waitingSince;
  const base = { ...runBase(run), budget, waitedMs, progressAt: d.at.now };
  if (overBudget(d, base, run.step) !== undefined) return;
  endQuestion(d, asked(run), { ended: "allowed", by: `${BY_SETTING}${run.offer.setting}` });
  const { attempt, tries } = run;
  think(d, "limitNoLongerReached", base, { ...sameStep(run), attempt, tries, waitMs: 0 });
}

/** No one has answered in time. */
export function limitExpired(d: Draft, run: Paused): void {
  endQuestion(d, asked(run), { ended: "expired" });
  endWithError(d, "limitQuestionExpired", run, run.error);
}
/** The owner goes on with something else, which `cause` names: what the run has done stays, and its question is over. */
export function giveWay(d: Draft, run: Paused, cause: string): void {
  endQuestion(d, asked(run), { ended: "withdrawn" });
  endWithError(d, "pausedRunGivesWay", run, { ...run.error, ...gaveWay(run.offer, run.question.code, cause) });
}
