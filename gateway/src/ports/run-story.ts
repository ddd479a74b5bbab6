/** The story of a run as the audit completes it. */
import type { RunStory } from "./session.ts";

export interface RunStoryPort {
  /** Adds decisions, rules, answers and tasks to what the session's log has. */
  readonly withAudit: (sessionKey: string, story: RunStory) => Promise<RunStory>;
}
