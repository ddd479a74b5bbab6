/** What the skills feature offers to the workspace: a change of a skill's file is approved before it is made. */
import type { Result } from "./result.ts";
import type { SkillWriting } from "./skills.ts";

export interface SkillApprovals {
  readonly skillApprovals: {
    /** Call it before a skill's file changes. `skill.changed` when the skill differs from its approval and the writer is an agent. */
    writing(writing: SkillWriting): Promise<Result<void>>;
    /** Serialises writes to one skill, because each announces the digest of the whole skill. */
    whileWriting<T>(agentId: string, path: string, work: () => Promise<T>): Promise<T>;
  };
}
