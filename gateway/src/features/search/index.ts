/** Full-text search over an agent's files, sessions and transcripts. The index is a separate Durable Object (`search-index-do.ts`). */
import type { FeatureDefinition, Handlers } from "../../kernel/feature.ts";
import { existingSession, namedSession, unknownAgent } from "../../kernel/naming.ts";
import { fail } from "../../kernel/outcome.ts";
import type { Result } from "../../ports/result.ts";
import type { MemorySearchPort, SearchAnswer, SearchInput } from "../../ports/search.ts";
import { findMemories, type FindPorts, findText } from "./find-text.ts";
import { SEARCH_TOOLS } from "./tools.ts";

/** The search that sessions call. The caller must check the access first. */
export interface SearchRpc {
  find(input: SearchInput): Promise<Result<SearchAnswer>>;
  /** A session has written a memory file or a transcript. */
  filesWritten(): void;
}

export const searchFeature: FeatureDefinition<FindPorts, { readonly searchRpc: SearchRpc } & MemorySearchPort> = {
  name: "search",
  tools: SEARCH_TOOLS,
  create: (ports) => ({
    offers: {
      searchRpc: { find: (input) => findText(ports, input), filesWritten: () => ports.writtenFiles.written() },
      memorySearch: { find: (input) => findMemories(ports, input) },
    },
    methods: searchMethods(ports),
  }),
};

const searchMethods = (ports: FindPorts): Handlers => ({
  "search.query": (_caller, params) => {
    const { config, sessions } = ports;
    const { sources, limit, offset } = params;
    const found = params.sessionKey === undefined ? undefined : namedSession(config, params.sessionKey);
    if (found !== undefined && !found.ok) return found;
    const agentId = params.agentId ?? found?.value.address.agentId ?? config.defaultAgentId();
    if (found !== undefined && found.value.address.agentId !== agentId)
      return fail("session.bad_key", `The conversation ${found.value.key} does not belong to the agent ${agentId}.`);
    const known = found === undefined ? undefined : existingSession(config, sessions, found.value.key);
    if (known?.ok === false) return known;
    // The index of a removed agent can still be searched.
    if (!config.hasAgent(agentId) && sessions.ofAgent(agentId, "", 1).sessions.length === 0) return unknownAgent(config, agentId);
    return findText(ports, {
      agentId,
      query: params.query,
      ...(sources === undefined ? {} : { sources }),
      ...(found === undefined ? {} : { sessionKey: found.value.key }),
      ...(limit === undefined ? {} : { limit }),
      ...(offset === undefined ? {} : { offset }),
    });
  },
});
