/** What the skills feature offers to the workspace: a change of a skill's file is approved before it is made. */
import type { Result } from "./result.ts";
import type { SkillWriting } from "./skills.ts";

export interface SkillApprovals {
  readonly skillApprovals: {
    /** A skill's file is about to change. `skill.changed` when the skill is not what was approved and the writer is an agent. */
    writing(writing: SkillWriting): Promise<Result<void>>;
    /** Writes of one skill's files wait for each other: each says beforehand what the whole skill will then be. */
    whileWriting<T>(agentId: string, path: string, work: () => Promise<T>): Promise<T>;
  };
}
