/** The agent's files: reading, writing, deleting and restoring them. Files in the bucket are the only state. */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SkillApprovals } from "../../ports/skill-approvals.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { memoryMethods } from "./memory-methods.ts";
import { workspaceMethods } from "./methods.ts";
import { createQuarantine } from "../../storage/workspace/quarantine.ts";
import { createWorkspaceStore } from "../../storage/workspace/store.ts";
import { WORKSPACE_TOOLS } from "./tools.ts";

export interface WorkspacePorts extends SkillApprovals, Pick<KernelPorts, "config"> {
  readonly bucket: Bucket;
}

export const workspaceFeature: FeatureDefinition<WorkspacePorts, object> = {
  name: "workspace",
  tools: WORKSPACE_TOOLS,
  create(ports) {
    const store = createWorkspaceStore(ports.bucket);
    const quarantine = createQuarantine(ports.bucket);
    return { offers: {}, methods: { ...workspaceMethods({ ...ports, store }), ...memoryMethods({ ...ports, store, quarantine }) } };
  },
};
