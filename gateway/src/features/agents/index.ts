/** Agents: list, show, create and delete them. */
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { AgentJobsPort } from "../../ports/schedule.ts";
import type { DeletionPort, SessionsPort } from "../../ports/sessions.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { createAgentFiles } from "./files.ts";
import { agentMethods } from "./methods.ts";

export interface AgentPorts extends Pick<SessionsPort, "sessions">, DeletionPort, AgentJobsPort, Pick<KernelPorts, "config"> {
  readonly bucket: Bucket;
}

export const agentsFeature: FeatureDefinition<AgentPorts, object> = {
  name: "agents",
  create: (ports) => ({ offers: {}, methods: agentMethods({ ...ports, files: createAgentFiles(ports.bucket) }) }),
};
