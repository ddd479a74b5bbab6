/** PURE. What the sender of a task can do when its run has ended (rule RT2): the sender writes into no conversation. */
import type { ErrorReason } from "../../../protocol/gen/errors.ts";
import type { Origin } from "../ports/origin.ts";
import type { GsvError } from "../ports/result.ts";

type TaskOrigin = Extract<Origin, { readonly kind: "task" }>;

/** How the task is run once more. With the key of the first request it would give the same report. */
export function againText({ event, keyed }: Pick<TaskOrigin, "event" | "keyed">): string {
  if (event !== undefined) return "Emit the event again";
  return keyed === true ? "Send the task again with a new key" : "Send the task again";
}

/** Commands of a conversation, and advice to write in it. */
const FOR_A_CONVERSATION = /(?:^|[\s`(])\/[a-z]+|\bmessage|\bconversation|\bcontinue\b|^Rephrase|^Say |^Tell /u;
const FALLBACK = `name a model to try next: \`gsv config set model.fallbacks '[{"provider":"PROVIDER","id":"MODEL"}]'\``;
/** Beside sending it again, by reason. */
const FOR_TASKS: Partial<Record<ErrorReason, (again: string) => string>> = {
  "agent.unknown": (again) => `Define the agent again, or turn its pack on. ${again} then.`,
  "approval.repeated": (again) => `${again}, with instructions that say what the agent should do instead.`,
  "budget.loop": (again) => `${again}, with instructions that say what the agent should do instead, or choose another model for it.`,
  "model.bad_answer": (again) => `${again}. If it fails again, raise \`model.maxTokens\`.`,
  "model.context_overflow": (again) =>
    `${again} with less text, or choose a model with a larger window (or set \`model.contextWindow\` to what it really takes).`,
  "model.overloaded": (again) => `${again} in a moment, or ${FALLBACK}.`,
  "model.rate_limited": (again) => `${again} in a moment, or ${FALLBACK}.`,
  "model.refused": (again) => `${again} with other instructions, or choose another model for the agent.`,
  "model.timeout": (again) => `${again}, or raise \`timeouts.llmMs\`.`,
};
/** The error as the run's sender is told of it: advice for a conversation becomes advice for the sender of a task. */
export function forSender(error: GsvError, origin: Origin): GsvError {
  const { hint, reason } = error;
  if (origin.kind !== "task" || hint === undefined || !FOR_A_CONVERSATION.test(hint)) return error;
  const again = againText(origin);
  return { ...error, hint: FOR_TASKS[reason]?.(again) ?? `${again}.` };
}
