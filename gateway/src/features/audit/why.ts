/** Adds to the story of a run what the audit has of its calls: decision, rule, and who answered a question. PURE. */
import { type AuditEntry, asSessionKey, type StoryCall } from "../../../../protocol/gen/types.ts";
import { answerRule, TOOL_CALL } from "../../ports/audit.ts";
import type { RunStory } from "../../ports/session.ts";

const ANSWER = "approval.resolve";
export const STORY_ACTIONS = [TOOL_CALL, ANSWER] as const;

/** Results that say that the call was not made. */
const DENIED: ReadonlySet<string> = new Set([
  "policy.denied",
  "policy.error",
  "approval.denied",
  "approval.expired",
  "approval.too_many",
  "auth.forbidden",
]);

export function withDecisions(story: RunStory, entries: readonly AuditEntry[]): RunStory {
  const made = new Map(entries.flatMap((entry) => (entry.action === TOOL_CALL ? [[entry.detail ?? "", entry] as const] : [])));
  // The first answer to a question counts.
  const answers = new Map<string, AuditEntry>();
  for (const entry of entries.toSorted((left, right) => left.seq - right.seq)) {
    const code = entry.target?.toUpperCase() ?? "";
    // Another denial is that of a person who may not answer.
    const isTaken = entry.decision === "allowed" || (entry.decision === "denied" && entry.rule === answerRule(code));
    if (entry.action === ANSWER && isTaken && !answers.has(code)) answers.set(code, entry);
  }
  const decided = (call: StoryCall): StoryCall => {
    const entry = made.get(call.callId);
    const answer = call.code === undefined ? undefined : answers.get(call.code);
    const rule = call.rule ?? entry?.rule;
    const decision = call.decision ?? decisionOf(call, entry);
    return {
      ...call,
      ...(decision === undefined ? {} : { decision }),
      ...(rule === undefined ? {} : { rule }),
      ...(answer === undefined ? {} : { by: answer.actor.slice(0, 512) }),
    };
  };
  return { ...story, steps: story.steps.map((step) => ({ ...step, calls: step.calls.map(decided) })) };
}
function decisionOf({ reason }: StoryCall, entry: AuditEntry | undefined): StoryCall["decision"] {
  if (entry !== undefined) return entry.decision === "allowed" ? "allowed" : "denied";
  return reason !== undefined && DENIED.has(reason) ? "denied" : undefined;
}
/** The story with the conversations of the tasks that its calls have handed to other agents. */
export function withTasks(story: RunStory, tasks: readonly { readonly callId: string; readonly sessionKey: string }[]): RunStory {
  if (tasks.length === 0) return story;
  const handed = new Map(tasks.map(({ callId, sessionKey }) => [callId, asSessionKey(sessionKey)]));
  const told = (call: StoryCall): StoryCall => {
    const handedTo = handed.get(call.callId);
    return handedTo === undefined ? call : { ...call, handedTo };
  };
  return { ...story, steps: story.steps.map((step) => ({ ...step, calls: step.calls.map(told) })) };
}
