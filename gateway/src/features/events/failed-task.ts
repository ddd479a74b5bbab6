/** The event that a failed task emits, when the definition of its agent says so (rule EV13). PURE. */
import type { Emission } from "../../ports/events.ts";
import type { FailedTask } from "../../ports/tasks.ts";

const REASON_CHARS = 2000;

/** The same task makes the same event. */
export const eventOfFailed = (
  { id, agentId, sessionKey, runId, cause, message, hops, taint }: FailedTask,
  now: number,
  scrub: (text: string) => string,
): Emission => ({
  agentId,
  topic: "",
  escalation: cause,
  payload: {
    question: `The task ${id} of the agent ${agentId} ${cause === "failed" ? "has failed" : "has used up its budget"}. Do you accept that? The task itself does not run again.`,
    reason: message === "" ? "No reason is known." : scrub(message).toWellFormed().slice(0, REASON_CHARS),
    details: { cause, task_id: id, session_key: sessionKey },
  },
  sessionKey,
  runId,
  callId: `escalation:${cause}`,
  hops,
  taint: taint ?? { label: "self", source: "the agent's own words" },
  now,
});
