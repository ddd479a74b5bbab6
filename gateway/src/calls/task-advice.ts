/** PURE. What the sender of a task can do when its run has ended (rule RT2): the sender writes into no conversation. */
import { ERRORS, type ErrorReason } from "../../../protocol/gen/errors.ts";
import type { Origin } from "../ports/origin.ts";
import type { GsvError } from "../ports/result.ts";

type TaskOrigin = Extract<Origin, { readonly kind: "task" }>;

/** How the task is run once more. With the key of the first request it would give the same report. */
export function againText({ event, keyed }: Pick<TaskOrigin, "event" | "keyed">): string {
  if (event !== undefined) return "Emit the event again";
  return keyed === true ? "Send the task again with a new key" : "Send the task again";
}

/** In a `taskHint`: `againText` of the run's origin, which is not known where most errors are made. */
export const AGAIN = "{again}";
const OR_FALL_BACK = `${AGAIN} in a moment, or name a model to try next: \`gsv config set model.fallbacks '[{"provider":"PROVIDER","id":"MODEL"}]'\`.`;
/** For each hint of the contract's table that is for a person in a conversation: the hint for the sender of a task. */
const TASK_HINTS: Partial<Record<ErrorReason, string>> = {
  "approval.expired": `${AGAIN}, and answer the question with \`gsv approval allow CODE\`.`,
  "approval.repeated": `${AGAIN}, with instructions that say what the agent should do instead.`,
  "budget.cost": `${AGAIN}, or raise the limit: \`gsv config set limits.runCostUsd USD\`.`,
  "budget.loop": `${AGAIN}, with instructions that say what the agent should do instead, or choose another model for it.`,
  "budget.steps": `${AGAIN}, or raise the limit: \`gsv config set limits.stepsPerRun N\`.`,
  "budget.time": `${AGAIN}, or raise the limit: \`gsv config set limits.runMs MILLISECONDS\`.`,
  "gateway.stopped": "Go on with `gsv resume`.",
  "model.bad_answer": `${AGAIN}. If it fails again, raise \`model.maxTokens\`.`,
  "model.context_overflow": `${AGAIN} with less text, or choose a model with a larger window (or set \`model.contextWindow\` to what it really takes).`,
  "model.overloaded": OR_FALL_BACK,
  "model.rate_limited": OR_FALL_BACK,
  "model.refused": `${AGAIN} with other instructions, or choose another model for the agent.`,
  "model.timeout": `${AGAIN}, or raise \`timeouts.llmMs\`.`,
  "run.aborted": `${AGAIN} to start another run.`,
  "run.no_progress": `${AGAIN}.`,
};
/** Both hints for a reason: the contract's, and the one for the sender of a task. */
export function hintsOf(reason: ErrorReason): Pick<GsvError, "taskHint"> & { readonly hint: string } {
  const taskHint = TASK_HINTS[reason];
  return { hint: ERRORS[reason].hint, ...(taskHint === undefined ? {} : { taskHint }) };
}
/** The error as the run's sender is told of it. */
export function forSender({ taskHint, ...error }: GsvError, origin: Origin): GsvError {
  if (origin.kind !== "task" || taskHint === undefined) return error;
  return { ...error, hint: taskHint.replace(AGAIN, () => againText(origin)) };
}
