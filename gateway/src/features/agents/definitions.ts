/**
 * Checks agent.yaml files, puts them in force and takes them out (rules AD1 to AD5, AD11). The only writer of agent.yaml. Changes come one
 * after the other, because each is compared with the others in force.
 */
import type {
  AgentDefinition,
  AgentsDefineResult,
  AgentsUndefineResult,
  DefinitionFile,
  DefinitionProblem,
} from "../../../../protocol/gen/types.ts";
import { questionTopics, type Topics } from "../../events/topics.ts";
import type { Known } from "../../agents/read-definition.lazy.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type Result, succeed } from "../../ports/result.ts";
import { isForeign } from "../../ports/taint.ts";
import { definitionSections } from "../../prompt/definition.ts";
import { KeyedLock } from "../../storage/keyed-lock.ts";
import { parsePath } from "../../storage/keys.ts";
import type { PacksPort } from "../../ports/packs.ts";
import { DEFINITION_FILE } from "../../storage/workspace/protection.ts";
import type { WorkspaceStore } from "../../storage/workspace/store.ts";
import type { DefinitionStore, StoredDefinition } from "./definition-store.ts";

export interface DefinitionPorts extends Pick<KernelPorts, "arm" | "audit" | "ids" | "now"> {
  readonly store: DefinitionStore;
  readonly workspace: Pick<WorkspaceStore, "own" | "write" | "delete">;
  readonly nativeTools: () => ReadonlySet<string>;
  /** The topics of domain events. */
  readonly topics: Topics;
  /** The agent comes with a pack. */
  readonly isBundled: (agentId: string) => boolean;
  /** The agent stands in the owner's configuration. */
  readonly isOwners: (agentId: string) => boolean;
  readonly packWithAgent: PacksPort["packs"]["packWithAgent"];
  /** All agents, also those without a definition. */
  readonly agentIds: () => readonly string[];
  /** Makes the agent when there is none with this id. True: it was made. */
  readonly ensureAgent: (definition: AgentDefinition) => Promise<Result<boolean>>;
}
export interface GivenDefinition {
  readonly text: string;
  readonly files?: readonly DefinitionFile[] | undefined;
}
interface Validated {
  readonly problems: readonly DefinitionProblem[];
  readonly definition?: AgentDefinition;
  /** Paths that the text names, whether or not there are files. */
  readonly files: readonly string[];
}
type Checked =
  | { readonly problems: readonly DefinitionProblem[] }
  | { readonly definition: AgentDefinition; readonly files: ReadonlyMap<string, string> };
const NAMED_PROBLEMS = 8;
export const OF_PACK = fail(
  "agent.kept",
  "The agent comes with a pack, so it was not changed.",
  "Turn the pack off to remove its agents: `gsv config set packs.enabled '[]'`.",
);

/** An id or a name, also of a pack that is off: conversations and jobs under the id are its agent's, and a task names either. */
export const takenText = ({ pack, taken }: { readonly pack: string; readonly taken: string }): string =>
  `The pack ${pack} has the agent ${taken}. Choose another id and another name.`;

/** An agent by its name, and the names of those that hand tasks to it. */
export interface NamedBy {
  readonly name: string;
  readonly above: readonly string[];
}
const NAMED_BY_NO_ONE: NamedBy = { name: "", above: [] };
/** Names in one answer, which the contract bounds. */
const NAMED_ABOVE = 16;
export const shownIn = ({ above }: NamedBy): { readonly stillNamedBy?: string[] } =>
  above.length === 0 ? {} : { stillNamedBy: above.slice(0, NAMED_ABOVE) };
const sentenceOf = ({ name, above }: NamedBy): string =>
  `Still in sub_agents of ${above.slice(0, NAMED_PROBLEMS).join(", ")}${above.length > NAMED_PROBLEMS ? ` and ${above.length - NAMED_PROBLEMS} more` : ""}: ${name}`;
/** Loaded with the first agent.yaml that is read: most agents have none. */
const reader = () => import("../../agents/read-definition.lazy.ts");

export class Definitions {
  readonly #ports: DefinitionPorts;
  readonly #locks = new KeyedLock();

  constructor(ports: DefinitionPorts) {
    this.#ports = ports;
  }

  async validate(given: GivenDefinition): Promise<Result<Validated>> {
    const checked = await this.#check(given);
    if (!checked.ok) return checked;
    const { namedIn } = await reader();
    const { files } = namedIn(given.text);
    return succeed(
      "problems" in checked.value
        ? { problems: checked.value.problems, files }
        : { problems: [], definition: checked.value.definition, files },
    );
  }

  define(given: GivenDefinition, by: string): Promise<Result<AgentsDefineResult>> {
    return this.#locks.run("", async () => {
      const { store, workspace, now, ids, ensureAgent, audit } = this.#ports;
      const checked = await this.#check(given);
      if (!checked.ok) return checked;
      if ("problems" in checked.value) return fail("agent.definition_invalid", problemsText(checked.value.problems));
      const { definition, files } = checked.value;
      const agentId = definition.metadata.id;
      if (this.#ports.isBundled(agentId)) return OF_PACK;
      for (const [path, content] of files) {
        const written = await workspace.write(agentId, path, content, { by });
        if (!written.ok) return written;
      }
      const written = await workspace.write(agentId, DEFINITION_FILE, given.text, { by, definition: true });
      if (!written.ok) return written;
      const made = await ensureAgent(definition);
      if (!made.ok) return made;
      const before = store.find(agentId)?.definition.metadata.name ?? agentId;
      const { core, characteristics } = definitionSections(definition);
      const digests = await Promise.all(
        [...files, [DEFINITION_FILE, given.text] as const].map(async ([path, text]) => [path, await ids.sha256(text)]),
      );
      store.put({
        agentId,
        text: given.text,
        definition,
        coreSha256: await ids.sha256(core),
        ...(characteristics === undefined ? {} : { characteristicsSha256: await ids.sha256(characteristics) }),
        files: Object.fromEntries(digests),
        definedAt: now(),
        definedBy: by,
      });
      // A run that is paused at a limit of the definition looks again (rule SP10).
      this.#ports.arm();
      const sha256 = (await ids.sha256(given.text)).slice(0, 16);
      const still = before === definition.metadata.name ? NAMED_BY_NO_ONE : this.#namedBy(before);
      const detail = still.above.length === 0 ? sha256 : `${sha256}. ${sentenceOf(still)}`;
      audit.append({ actor: by, action: "agents.define", target: agentId, decision: "allowed", detail });
      return succeed({ definition, created: made.value, ...shownIn(still) });
    });
  }

  /** The definition first: without its file it would still be in force. */
  undefine(agentId: string, by: string): Promise<Result<Omit<AgentsUndefineResult, "ok">>> {
    return this.#locks.run("", async () => {
      if (this.#ports.isBundled(agentId)) return OF_PACK;
      const { store, workspace } = this.#ports;
      const still = this.namedBy(agentId);
      const removed = store.remove(agentId);
      this.#ports.arm();
      if (removed) this.noteNamed("agents.undefine", agentId, by, still);
      const gone = await workspace.delete(agentId, DEFINITION_FILE, { definition: true });
      if (!gone.ok && gone.error.reason !== "path.not_found") return gone;
      return succeed({ removed, ...shownIn(still) });
    });
  }

  /** The definitions that have the agent in `sub_agents`. */
  namedBy(agentId: string): NamedBy {
    return this.#namedBy(this.#ports.store.find(agentId)?.definition.metadata.name ?? agentId);
  }
  #namedBy(name: string): NamedBy {
    const above = [...this.#ports.store.all().values()].filter(({ definition }) => definition.sub_agents?.includes(name));
    return { name, above: above.map(({ definition }) => definition.metadata.name) };
  }
  /** An entry of the audit beside that of the request. */
  noteNamed(action: "agents.undefine" | "agents.delete", agentId: string, by: string, named: NamedBy): void {
    const { audit } = this.#ports;
    if (named.above.length === 0) return;
    audit.append({ actor: by, action, target: agentId, decision: "allowed", detail: sentenceOf(named) });
  }

  /** Files of a definition in force that are not as they were when it was put in force. */
  async changedFiles({ agentId, files }: StoredDefinition): Promise<Result<readonly string[]>> {
    const changed: string[] = [];
    for (const [path, sha256] of Object.entries(files)) {
      const file = await this.#ports.workspace.own(agentId, path);
      if (!file.ok && file.error.reason === "storage.failed") return file;
      const text = file.ok ? file.value?.content : undefined;
      if (text === undefined || (await this.#ports.ids.sha256(text)) !== sha256) changed.push(path);
    }
    return succeed(changed.sort());
  }

  async #check({ text, files = [] }: GivenDefinition): Promise<Result<Checked>> {
    const { store, workspace, nativeTools, agentIds } = this.#ports;
    const given = new Map<string, string>();
    for (const { path, content } of files) {
      const parsed = parsePath(path.replace(/^\.\//, ""));
      if (!parsed.ok) return parsed;
      given.set(parsed.value, content);
    }
    const { namedIn, readDefinition } = await reader();
    const named = namedIn(text);
    const texts = new Map<string, string>();
    const notOwners: string[] = [];
    for (const path of named.files) {
      const sent = given.get(path);
      if (sent !== undefined) {
        texts.set(path, sent);
        continue;
      }
      const file = named.agentId === undefined ? undefined : await workspace.own(named.agentId, path);
      if (file?.ok === false && file.error.reason === "storage.failed") return file;
      if (file?.ok !== true || file.value === undefined) continue;
      texts.set(path, file.value.content);
      if (isForeign(file.value.taint)) notOwners.push(path);
    }
    const known: Known = {
      fileOf: (path) => texts.get(path),
      nativeTools: nativeTools(),
      topics: new Set(this.#ports.topics.keys()),
      questionTopics: questionTopics(this.#ports.topics),
      // Tasks call an agent without a definition by its id.
      names: new Map(agentIds().map((agentId) => [agentId, store.find(agentId)?.definition.metadata.name ?? agentId])),
      below: new Map([...store.all().values()].map(({ definition }) => [definition.metadata.name, definition.sub_agents ?? []])),
    };
    const read = readDefinition(text, known);
    const problems = [...(read.ok ? [] : read.problems), ...notOwners.map(foreign)];
    if (!read.ok || problems.length > 0) return succeed({ problems });
    const taken = await this.#takenByPack(read.definition);
    if (taken !== undefined) return succeed({ problems: [taken] });
    return succeed({ definition: read.definition, files: texts });
  }
  /** Refuses an id or a name of a pack's agent. An agent of the owner keeps those that it had before the pack came. */
  async #takenByPack({ metadata: { id, name } }: AgentDefinition): Promise<DefinitionProblem | undefined> {
    const { isBundled, isOwners, packWithAgent, store } = this.#ports;
    if (isBundled(id)) return undefined;
    const had = isOwners(id) ? [id, store.find(id)?.definition.metadata.name] : [];
    const found = await packWithAgent([id, name].filter((one) => !had.includes(one)));
    if (found === undefined) return undefined;
    return { path: found.taken === id ? "metadata.id" : "metadata.name", problem: takenText(found) };
  }
}

/** The file is of the agent's folder, and the owner may never have seen what stands in it. */
const foreign = (path: string): DefinitionProblem => ({
  path: "core_context.system_prompt",
  problem: `\`${path}\` was written in a conversation that had read text of others. Give the file itself: \`gsv agent define FOLDER\`.`,
});
function problemsText(problems: readonly DefinitionProblem[]): string {
  const lines = problems.slice(0, NAMED_PROBLEMS).map(({ path, line, problem }) => {
    const place = [line === undefined ? "" : `line ${line}`, path].filter((part) => part !== "").join(", ");
    return place === "" ? problem : `${place}: ${problem}`;
  });
  const more = problems.length > NAMED_PROBLEMS ? ` and ${problems.length - NAMED_PROBLEMS} more` : "";
  return `agent.yaml has ${problems.length === 1 ? "a mistake" : `${problems.length} mistakes`}, so it was not applied. ${lines.join(" ")}${more}`;
}
