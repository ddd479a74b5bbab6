/** The methods of long-term memory. */
import { actorOf } from "../../kernel/authorise.ts";
import type { Handlers } from "../../kernel/feature.ts";
import { unknownAgent } from "../../kernel/naming.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { EmbeddingPass } from "./embedding-pass.ts";
import type { MemoryKeeper } from "./keeper.ts";
import type { VectorIndexPass } from "./vector-index-pass.ts";

const DEFAULT_LISTED = 50;
const DEFAULT_FOUND = 20;
/** Ids in one entry of the audit, whose detail has at most 256 characters. */
const IDS_OF_ENTRY = 9;

/** What is loaded with the first call. */
export interface MemoryParts {
  readonly keeper: MemoryKeeper;
  readonly pass: EmbeddingPass;
  /** Undefined: no vector index is bound. */
  readonly indexPass: VectorIndexPass | undefined;
}
type MethodPorts = Pick<KernelPorts, "audit" | "config">;

export function memoryMethods({ config, audit }: MethodPorts, load: () => Promise<Result<MemoryParts>>): Handlers {
  const agentOrDefault = (agentId: string | undefined): string => agentId ?? config.defaultAgentId();
  const known = (agentId: string): Result<string> => (config.hasAgent(agentId) ? succeed(agentId) : unknownAgent(config, agentId));
  return {
    "memory.list": async (_caller, { agentId, before, superseded = false, limit = DEFAULT_LISTED }) => {
      const memory = await load();
      if (!memory.ok) return memory;
      const { keeper } = memory.value;
      // The memories of a removed agent can still be listed.
      const page = await keeper.list(agentOrDefault(agentId), { superseded, limit, ...(before === undefined ? {} : { before }) });
      if (!page.ok) return page;
      const isKnown = config.hasAgent(agentOrDefault(agentId)) || page.value.memories.length > 0;
      if (!isKnown) return unknownAgent(config, agentOrDefault(agentId));
      const embeddings = await memory.value.pass.waiting();
      const vectorIndex = await memory.value.indexPass?.behind();
      return succeed({
        memories: page.value.memories.map((row) => keeper.shown(row)),
        more: page.value.more,
        ...(embeddings === undefined ? {} : { embeddings }),
        ...(vectorIndex === undefined ? {} : { vectorIndex }),
      });
    },
    "memory.search": async (_caller, { query, agentId, limit = DEFAULT_FOUND }) => {
      const memory = await load();
      if (!memory.ok) return memory;
      const { keeper } = memory.value;
      const found = await keeper.search(agentOrDefault(agentId), query, limit);
      if (!found.ok) return found;
      if (found.value.hits.length === 0 && !config.hasAgent(agentOrDefault(agentId))) return unknownAgent(config, agentOrDefault(agentId));
      const scores = new Map(found.value.hits.flatMap((hit) => (hit.kind === "memory" ? [[hit.id, hit.score]] : [])));
      const rows = await keeper.rowsOf(agentOrDefault(agentId), [...scores.keys()]);
      if (!rows.ok) return rows;
      const memories = [...scores].flatMap(([id, score]) => {
        const row = rows.value.get(id);
        return row === undefined ? [] : [{ memory: row, score }];
      });
      return succeed({ memories, notes: [...found.value.notes] });
    },
    "memory.add": async ({ connection }, { text, agentId, metadata = {}, supersedes, requestId }) => {
      const agent = known(agentOrDefault(agentId));
      if (!agent.ok) return agent;
      const memory = await load();
      if (!memory.ok) return memory;
      const { keeper } = memory.value;
      const added = await keeper.add({
        agentId: agent.value,
        text,
        metadata,
        tokenId: connection.principal.tokenId,
        requestId,
        ...(supersedes === undefined ? {} : { supersedes }),
      });
      const actor = actorOf(connection.principal);
      const target = added.ok ? `${agent.value}/${added.value.memory.id}` : agent.value;
      audit.append({ actor, action: "memory.add", target, decision: added.ok ? "allowed" : "failed" });
      return added;
    },
    "memory.forget": async ({ connection }, { ids, agentId }) => {
      const memory = await load();
      if (!memory.ok) return memory;
      const { keeper } = memory.value;
      const agent = agentOrDefault(agentId);
      const forgotten = await keeper.forget(agent, ids);
      const actor = actorOf(connection.principal);
      const decision = forgotten.ok ? "allowed" : "failed";
      // The audit names each id; an entry has room for some of them.
      for (let from = 0; from < ids.length; from += IDS_OF_ENTRY) {
        const detail = ids.slice(from, from + IDS_OF_ENTRY).join(" ");
        audit.append({ actor, action: "memory.forget", target: agent, decision, detail });
      }
      return forgotten.ok ? succeed({ ok: true as const, forgotten: forgotten.value }) : forgotten;
    },
  };
}
