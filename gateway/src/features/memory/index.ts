/** Long-term memory: facts that an agent keeps between conversations (gateway/spec/memory.md). */
import { actorOf } from "../../kernel/authorise.ts";
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { AgentDefinitionsPort } from "../../ports/agents.ts";
import type { MemoryPort } from "../../ports/long-term-memory.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { MemorySearchPort, SearchPort } from "../../ports/search.ts";
import type { RowDatabase } from "../../storage/rows.ts";
import type { MemoryKeeper } from "./keeper.ts";
import { MEMORY_TOOLS } from "./tools.ts";

/** Ids in one entry of the audit, whose detail has at most 256 characters. */
const IDS_OF_ENTRY = 9;

export interface LongTermMemoryPorts
  extends MemorySearchPort,
    AgentDefinitionsPort,
    Pick<KernelPorts, "audit" | "background" | "config" | "ids" | "log" | "now" | "scrub"> {
  readonly searchIndex: (agentId: string) => SearchPort;
  /** Undefined: the deployment has none. */
  readonly rowDatabase: RowDatabase | undefined;
}
const DEFAULT_LISTED = 50;
const DEFAULT_FOUND = 20;
const NO_DATABASE = fail(
  "storage.failed",
  "This deployment has no database for long-term memory.",
  "Bind a D1 database as DB in the deployment's configuration.",
);

export const longTermMemoryFeature: FeatureDefinition<LongTermMemoryPorts, { readonly memoryRpc: MemoryPort }> = {
  name: "memory",
  tools: MEMORY_TOOLS,
  create(ports) {
    const { rowDatabase, now, log } = ports;
    const failed = (what: string, error: unknown): void => log.error("memory_rows_failed", { what, error });
    let loaded: Promise<MemoryKeeper> | undefined;
    const load = async (): Promise<Result<MemoryKeeper>> => {
      if (rowDatabase === undefined) return NO_DATABASE;
      loaded ??= import("./memory.lazy.ts").then(
        ({ D1Memory, MemoryKeeper }) => new MemoryKeeper({ ...ports, rows: new D1Memory(rowDatabase, now, failed) }),
      );
      // A part that could not be loaded is tried again with the next call.
      loaded.catch(() => {
        loaded = undefined;
      });
      return succeed(await loaded);
    };
    return {
      offers: {
        memoryRpc: {
          remember: async (input) => {
            const keeper = await load();
            return keeper.ok ? keeper.value.remember(input) : keeper;
          },
          recall: async (input) => {
            const keeper = await load();
            return keeper.ok ? keeper.value.recall(input) : keeper;
          },
        },
      },
      methods: memoryMethods(ports, load),
    };
  },
};

function memoryMethods({ config, audit, background }: LongTermMemoryPorts, load: () => Promise<Result<MemoryKeeper>>): Handlers {
  const of = (agentId: string | undefined): string => agentId ?? config.defaultAgentId();
  const known = (agentId: string): Result<string> => (config.hasAgent(agentId) ? succeed(agentId) : unknownAgent(config, agentId));
  return {
    "memory.list": async (_caller, { agentId, before, superseded = false, limit = DEFAULT_LISTED }) => {
      const keeper = await load();
      if (!keeper.ok) return keeper;
      // The memories of a removed agent can still be listed.
      const page = await keeper.value.list(of(agentId), { superseded, limit, ...(before === undefined ? {} : { before }) });
      if (!page.ok) return page;
      const isKnown = config.hasAgent(of(agentId)) || page.value.memories.length > 0;
      if (!isKnown) return unknownAgent(config, of(agentId));
      return succeed({ memories: page.value.memories.map((memory) => keeper.value.shown(memory)), more: page.value.more });
    },
    "memory.search": async (_caller, { query, agentId, limit = DEFAULT_FOUND }) => {
      const keeper = await load();
      if (!keeper.ok) return keeper;
      const found = await keeper.value.search(of(agentId), query, limit);
      if (!found.ok) return found;
      if (found.value.hits.length === 0 && !config.hasAgent(of(agentId))) return unknownAgent(config, of(agentId));
      const scores = new Map(found.value.hits.flatMap((hit) => (hit.kind === "memory" ? [[hit.id, hit.score]] : [])));
      const rows = await keeper.value.rowsOf(of(agentId), [...scores.keys()]);
      if (!rows.ok) return rows;
      const memories = [...scores].flatMap(([id, score]) => {
        const memory = rows.value.get(id);
        return memory === undefined ? [] : [{ memory, score }];
      });
      return succeed({ memories, notes: [...found.value.notes] });
    },
    "memory.add": async ({ connection }, { text, agentId, metadata = {}, supersedes, requestId }) => {
      const agent = known(of(agentId));
      if (!agent.ok) return agent;
      const keeper = await load();
      if (!keeper.ok) return keeper;
      const added = await keeper.value.add({
        agentId: agent.value,
        text,
        metadata,
        requestId,
        ...(supersedes === undefined ? {} : { supersedes }),
      });
      const actor = actorOf(connection.principal);
      const target = added.ok ? `${agent.value}/${added.value.memory.id}` : agent.value;
      background("audit", audit.append({ actor, action: "memory.add", target, decision: added.ok ? "allowed" : "failed" }));
      return added;
    },
    "memory.forget": async ({ connection }, { ids, agentId }) => {
      const keeper = await load();
      if (!keeper.ok) return keeper;
      const agent = of(agentId);
      const forgotten = await keeper.value.forget(agent, ids);
      const actor = actorOf(connection.principal);
      const decision = forgotten.ok ? "allowed" : "failed";
      // Each id stands in the audit: an entry has room for some of them.
      for (let from = 0; from < ids.length; from += IDS_OF_ENTRY) {
        const detail = ids.slice(from, from + IDS_OF_ENTRY).join(" ");
        background("audit", audit.append({ actor, action: "memory.forget", target: agent, decision, detail }));
      }
      return forgotten.ok ? succeed({ ok: true as const, forgotten: forgotten.value }) : forgotten;
    },
  };
}
