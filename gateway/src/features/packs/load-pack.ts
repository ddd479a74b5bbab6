/** Reads the content of a pack: its tools and topics by name, and its agents' definitions. Mistakes throw, because they are bugs. */
import { questionTopics, type Topic, TopicList } from "../../events/topics.ts";
import type { PackContent, PackDefinition, PackTool, PackTopic } from "../../packs/pack.ts";
import type { BundledDefinition } from "../../ports/packs.ts";
import type { ToolEntry } from "../../ports/tool-entry.ts";
import { definitionSections } from "../../prompt/definition.ts";
import { NATIVE_PREFIX, NativeToolList, SEPARATOR } from "../../tools/registry.ts";

export interface LoadedPack {
  readonly pack: PackDefinition;
  readonly tools: ReadonlyMap<string, PackTool>;
  readonly entries: readonly ToolEntry[];
  readonly handlers: ReadonlyMap<string, PackTopic>;
  readonly topics: ReadonlyMap<string, Topic>;
  readonly definitions: readonly BundledDefinition[];
}
/** What the pack is compared with. */
export interface CoreNames {
  readonly tools: ReadonlySet<string>;
  readonly topics: ReadonlyMap<string, Topic>;
}

export async function loadPack(pack: PackDefinition, core: CoreNames, sha256: (text: string) => Promise<string>): Promise<LoadedPack> {
  const content = await pack.load();
  const tools = new NativeToolList().add(pack.name, content.tools.map(asNative)).close();
  for (const { entry } of tools) {
    const { name } = entry.definition;
    if (core.tools.has(name)) throw new Error(`The pack ${pack.name} has the tool ${name}, which is one of GSV.`);
    if (name.startsWith(NATIVE_PREFIX) || name.includes(SEPARATOR))
      throw new Error(`The pack ${pack.name} has a tool with the name ${name}: a pack's tool has no ${SEPARATOR} in its name.`);
  }
  const topics = new TopicList()
    .add(
      pack.name,
      content.topics.map((topic) => asTopic(topic, pack.queue)),
    )
    .close();
  for (const name of topics.keys())
    if (core.topics.has(name)) throw new Error(`The pack ${pack.name} has the topic ${name}, which is one of GSV.`);
  return {
    pack,
    tools: new Map(content.tools.map((tool) => [tool.name, tool])),
    entries: tools.map(({ entry }) => entry),
    handlers: new Map(content.topics.map((topic) => [topic.name, topic])),
    topics,
    definitions: await definitionsOf(pack, content, topics, core, sha256),
  };
}

/** For the checks of names, and for its entry: it is run by `Packs`. */
const asNative = ({ name, description, inputSchema, idempotent, timeoutMs, policyClass }: PackTool) => ({
  definition: { name, description, inputSchema, idempotent, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
  policyClass,
  guests: "none" as const,
  run: () => Promise.reject(new Error(`${name} runs in the gateway`)),
});
const asTopic = ({ name, version, doc, needsApproval, problem, text }: PackTopic, queue: string | undefined): Topic => ({
  name,
  version,
  doc,
  needsApproval,
  problem,
  text,
  ...(queue === undefined ? {} : { queue }),
});

async function definitionsOf(
  pack: PackDefinition,
  { agents, tools }: PackContent,
  topics: ReadonlyMap<string, Topic>,
  core: CoreNames,
  sha256: (text: string) => Promise<string>,
): Promise<readonly BundledDefinition[]> {
  if (agents.length === 0) return [];
  const { readDefinition } = await import("../../agents/read-definition.lazy.ts");
  const all = new Map([...core.topics, ...topics]);
  const known = {
    nativeTools: new Set([...core.tools, ...tools.map(({ name }) => name)]),
    topics: new Set(all.keys()),
    questionTopics: questionTopics(all),
    names: new Map(agents.map(({ id, name }) => [id, name])),
    below: new Map(agents.map(({ name, subAgents }) => [name, subAgents])),
  };
  return Promise.all(
    agents.map(async ({ id, text, files }) => {
      const read = readDefinition(text, {
        ...known,
        fileOf: (path) => (Object.hasOwn(files, path) ? files[path] : undefined),
      });
      if (!read.ok) {
        const problems = read.problems.map(({ path, problem }) => `${path} ${problem}`).join(" ");
        throw new Error(`The agent ${id} of the pack ${pack.name} has mistakes: ${problems}`);
      }
      const { core: section, characteristics } = definitionSections(read.definition);
      return {
        agentId: id,
        pack: pack.name,
        text,
        definition: read.definition,
        coreSha256: await sha256(section),
        ...(characteristics === undefined ? {} : { characteristicsSha256: await sha256(characteristics) }),
      };
    }),
  );
}
