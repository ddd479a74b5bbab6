/** Agents: list, show, create, define and delete them (gateway/spec/agents.md, definitions.md). */
import type { AgentDefinition } from "../../../../protocol/gen/types.ts";
import { isListed } from "../../agents/definition.ts";
import type { Topics } from "../../events/topics.ts";
import type { FeatureDefinition } from "../../kernel/feature.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { EventQuestionsPort } from "../../ports/approvals.ts";
import type { AgentDefinitionsPort, AgentNamesPort, AgentSubscribersPort, DefinedAgent } from "../../ports/agents.ts";
import type { ModelClient } from "../../ports/model.ts";
import type { NativeTools } from "../../ports/native-tools.ts";
import type { AgentJobsPort } from "../../ports/schedule.ts";
import type { DeletionPort, SessionsPort } from "../../ports/sessions.ts";
import type { PacksPort } from "../../ports/packs.ts";
import type { Bucket } from "../../storage/bucket.ts";
import { createWorkspaceStore } from "../../storage/workspace/store.ts";
import { createAgent } from "./create.ts";
import { DefinitionStore } from "./definition-store.ts";
import { Definitions } from "./definitions.ts";
import { createAgentFiles } from "./files.ts";
import { agentMethods } from "./methods.ts";
import { AGENT_MIGRATIONS } from "./migrations.ts";

export interface AgentPorts
  extends Pick<SessionsPort, "sessions">,
    DeletionPort,
    AgentJobsPort,
    EventQuestionsPort,
    PacksPort,
    Pick<KernelPorts, "arm" | "audit" | "background" | "config" | "database" | "ids" | "now"> {
  readonly bucket: Bucket;
  readonly model: Pick<ModelClient, "refusal">;
  readonly native: Pick<NativeTools, "entries">;
  readonly topics: Topics;
}

export const agentsFeature: FeatureDefinition<AgentPorts, AgentDefinitionsPort & AgentNamesPort & AgentSubscribersPort> = {
  name: "agents",
  migrations: AGENT_MIGRATIONS,
  create(ports) {
    const { bucket, native, config } = ports;
    const files = createAgentFiles(bucket);
    const store = new DefinitionStore(ports.database, () => ports.packs.definitions());
    ports.packs.useNames(() => new Map([...store.own().values()].map(({ agentId, definition }) => [definition.metadata.name, agentId])));
    const definitions = new Definitions({
      ...ports,
      store,
      workspace: createWorkspaceStore(bucket),
      nativeTools: () => new Set(native.entries.map(({ definition }) => definition.name)),
      isBundled: (agentId) => config.isBundled(agentId),
      isOwners: (agentId) => config.effective().agents?.list?.some(({ id }) => id === agentId) === true,
      packWithAgent: (names) => ports.packs.packWithAgent(names),
      agentIds: () => config.agents().map(({ id }) => id),
      ensureAgent: (definition) => createAgent({ config, files }, entryOf(definition), { kind: "defined", mayExist: true }),
    });
    const byName = (name: string): string | undefined => {
      // A definition outlives the agent's entry in the configuration when that is taken out by hand.
      const named = [...store.all().values()].find(
        ({ agentId, definition }) => definition.metadata.name === name && config.hasAgent(agentId),
      )?.agentId;
      return named ?? (config.hasAgent(name) ? name : undefined);
    };
    const subAgents = ({ sub_agents = [] }: AgentDefinition): NonNullable<DefinedAgent["subAgents"]> =>
      sub_agents.flatMap((name) => {
        const agentId = byName(name);
        if (agentId === undefined) return [];
        const description = store.find(agentId)?.definition.metadata.description;
        return [{ name, ...(description === undefined ? {} : { description }) }];
      });
    return {
      offers: {
        definitionOf: (agentId) => store.find(agentId)?.definition,
        agentNames: { byName },
        subscribersOf: (topic) =>
          [...store.all().values()].flatMap(({ agentId, definition }) =>
            isListed(definition.events?.on, topic) && config.hasAgent(agentId) ? [{ agentId, name: definition.metadata.name }] : [],
          ),
      },
      methods: agentMethods({ ...ports, files, definitions, store }),
      runContext: ({ agentId }) => {
        const found = store.find(agentId);
        if (!config.hasAgent(agentId)) return { isGone: true };
        if (found === undefined) return {};
        const { definition, coreSha256, characteristicsSha256, isOfPack } = found;
        const others = subAgents(definition);
        const emits = [...ports.topics.values()].flatMap(({ name, doc }) =>
          isListed(definition.events?.emit, name) ? [doc.startsWith(name) ? doc : `${name}: ${doc}`] : [],
        );
        return {
          defined: {
            definition,
            coreSha256,
            ...(characteristicsSha256 === undefined ? {} : { characteristicsSha256 }),
            ...(emits.length === 0 ? {} : { emits }),
            ...(isOfPack === true ? { isOfPack } : {}),
            ...(others.length === 0 ? {} : { subAgents: others }),
          },
        };
      },
      contextVersion: () => String(store.version()),
    };
  },
};
const entryOf = ({ metadata }: AgentDefinition) => ({
  id: metadata.id,
  ...(metadata.description === undefined ? {} : { description: metadata.description }),
});
