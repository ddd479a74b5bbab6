/** Port that adds decisions and answers of the audit log to the story of a run (`gsv why`). Types only. */
import type { RunStory } from "./session.ts";

export interface RunStoryPort {
  /** Adds decisions, rules, answers and tasks to what the session's log has. */
  readonly withAudit: (sessionKey: string, story: RunStory) => Promise<RunStory>;
}
