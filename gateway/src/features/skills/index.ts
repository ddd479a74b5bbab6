/** Skills: an agent's skills, their approvals and their requirements. Runs use only approved skills. */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { SkillApprovals } from "../../ports/skill-approvals.ts";
import type { SeenSkill, SkillPin } from "../../ports/skills.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { createSkillLibrary } from "./library.ts";
import { skillMethods } from "./methods.ts";
import { SKILL_HISTORY } from "./migrations.ts";
import { SkillPins } from "./pin-store.ts";
import { SkillService } from "./service.ts";

export interface SkillPorts extends NodesPort, Pick<KernelPorts, "audit" | "background" | "config" | "database" | "now"> {
  readonly bucket: Bucket;
}
/** The part that sessions call, in addition to `skillApprovals.writing`. */
export interface SkillsRpc {
  /** Takes the skills that a session found. Pins those without a pin; returns every pin that applies to the agent. */
  seen(agentId: string, skills: readonly SeenSkill[]): readonly SkillPin[];
}

export const skillsFeature: FeatureDefinition<SkillPorts, SkillApprovals & { readonly skillsRpc: SkillsRpc }> = {
  name: "skills",
  history: SKILL_HISTORY,
  create(ports) {
    const pins = new SkillPins(ports.database);
    const skills = new SkillService({ ...ports, pins, library: createSkillLibrary(ports.bucket) });
    return {
      offers: {
        skillApprovals: {
          writing: (writing) => skills.writing(writing),
          whileWriting: (agentId, path, work) => skills.whileWriting(agentId, path, work),
        },
        skillsRpc: { seen: (agentId, seen) => skills.seen(agentId, seen).map(pinOnly) },
      },
      methods: skillMethods({ config: ports.config, skills }),
      runContext: ({ agentId }) => ({ skillPins: pins.list(agentId).map(pinOnly) }),
      contextVersion: () => String(pins.version()),
    };
  },
};

/** Pins for sessions, without the names of people. */
const pinOnly = ({ scope, name, sha256, next }: SkillPin): SkillPin => ({ scope, name, sha256, ...(next === undefined ? {} : { next }) });
