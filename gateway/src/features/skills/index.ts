/** Skills: an agent's skills, their approvals and their requirements. Runs use only approved skills. */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { NotifyPort } from "../../ports/notify.ts";
import type { NodesPort } from "../../ports/nodes.ts";
import type { SkillApprovals } from "../../ports/skill-approvals.ts";
import type { SeenSkill, SkillPin } from "../../ports/skills.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { createSkillLibrary } from "./library.ts";
import { skillMethods } from "./methods.ts";
import { SKILL_HISTORY, SKILL_MIGRATIONS } from "./migrations.ts";
import { SkillPins } from "./pin-store.ts";
import { SkillService } from "./service.ts";
import { SkillUploads } from "./upload-store.ts";

export interface SkillPorts
  extends NodesPort,
    NotifyPort,
    Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "database" | "now"> {
  readonly bucket: Bucket;
}
/** The part that sessions call, in addition to `skillApprovals.writing`. */
export interface SkillsRpc {
  /** Takes the skills that a session found; returns every pin that applies to the agent. */
  seen(agentId: string, skills: readonly SeenSkill[]): readonly SkillPin[];
}

export const skillsFeature: FeatureDefinition<SkillPorts, SkillApprovals & { readonly skillsRpc: SkillsRpc }> = {
  name: "skills",
  history: SKILL_HISTORY,
  migrations: SKILL_MIGRATIONS,
  create(ports) {
    const pins = new SkillPins(ports.database);
    const uploads = new SkillUploads(ports.database);
    const skills = new SkillService({ ...ports, pins, uploads, library: createSkillLibrary(ports.bucket) });
    return {
      offers: {
        skillApprovals: {
          writing: (writing) => skills.writing(writing),
          whileWriting: (agentId, path, work) => skills.whileWriting(agentId, path, work),
        },
        skillsRpc: { seen: (agentId, seen) => skills.seen(agentId, seen).map(pinOnly) },
      },
      methods: skillMethods({ config: ports.config, skills }),
      alarms: [{ name: "skill_uploads", next: () => uploads.nextExpiry(), run: (at) => uploads.prune(at) }],
      runContext: ({ agentId }) => ({ skillPins: pins.list(agentId).map(pinOnly) }),
      contextVersion: () => String(pins.version()),
    };
  },
};

/** Pins for sessions, without the names of people. */
const pinOnly = ({ scope, name, sha256, next }: SkillPin): SkillPin => ({ scope, name, sha256, ...(next === undefined ? {} : { next }) });
