/** Approved skills: what a session and the gateway tell each other about them. */

/** What a skill's files must be for it to be used (promises S10, TH14). */
export interface SkillPin {
  readonly scope: "agent" | "global";
  readonly name: string;
  readonly sha256: string;
  /** What the owner was about to make of it; holds as well, and takes the place of `sha256` once it is seen. */
  readonly next?: string;
}

export interface SeenSkill {
  readonly scope: "agent" | "global";
  readonly name: string;
  readonly sha256: string;
}

/** A file of one of the agent's own skills that is about to be changed in the owner's name. */
export interface SkillWriting {
  readonly agentId: string;
  /** `skills/NAME/FILE`. */
  readonly path: string;
  /** Of what the file will be; absent: it is deleted. */
  readonly sha256?: string;
  /** `agent:<session>` or `client:<id>`. */
  readonly by: string;
}
