/** Approvals of skills, as sessions and the gateway exchange them. */

/** The approved digest of a skill's files (promises S10, TH14). */
export interface SkillPin {
  readonly scope: "agent" | "global";
  readonly name: string;
  readonly sha256: string;
  /** The digest after a change that the owner has announced. Approved as well; replaces `sha256` once it is seen. */
  readonly next?: string;
}

export interface SeenSkill {
  readonly scope: "agent" | "global";
  readonly name: string;
  readonly sha256: string;
  /** It differs from its approval, after a comparison with the bucket: the owner should know. */
  readonly changed?: true;
}

/** A file of one of the agent's own skills that is about to be changed in the owner's name. */
export interface SkillWriting {
  readonly agentId: string;
  /** `skills/NAME/FILE`. */
  readonly path: string;
  /** The digest of the new content; absent when the file is deleted. */
  readonly sha256?: string;
  /** `agent:<session>` or `client:<id> token:<id>`. */
  readonly by: string;
}
