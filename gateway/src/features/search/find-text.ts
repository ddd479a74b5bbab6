/**
 * A search, whoever asks: the query is checked, the agent's index asked, and what it found made fit to be shown. Secrets are masked
 * here, because nobody else may know them. Who may search what is not decided here.
 */
import type { ErrorReason } from "../../../../protocol/gen/errors.ts";
import { asSessionKey, type SearchHit, type SearchSource, SearchSourceValues } from "../../../../protocol/gen/types.ts";
import type { Result } from "../../ports/result.ts";
import type { SearchAnswer, SearchInput, SearchPlace, SearchPort } from "../../ports/search.ts";
import { DEFAULT_HITS, MAX_HITS, MAX_NOTE_CHARS } from "./limits.ts";
import { parseQuery } from "./query.ts";
import { SNIPPET_CHARS, snippetOf } from "./text.ts";
import { fail, succeed } from "../../kernel/outcome.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";

/** In characters, marks not counted; the contract allows more. */
const MAX_SNIPPET_CHARS = 1_000;
/** Conversations that the owner had over platforms; of more, those that were active last. */
const MAX_OWNED = 500;
const FAILED: ErrorReason = "storage.failed";

export interface FindPorts extends Pick<SessionsPort, "sessions">, Pick<KernelPorts, "config" | "log" | "scrub"> {
  /** An agent's search index. */
  readonly searchIndex: (agentId: string) => SearchPort;
}

export async function findText(ports: FindPorts, input: SearchInput): Promise<Result<SearchAnswer>> {
  const match = parseQuery(input.query);
  if (!match.ok) return match;
  const { agentId, sessionKey, memoryOnly } = input;
  const asked: readonly SearchSource[] = memoryOnly === true ? ["workspace", "archives"] : (input.sources ?? []);
  // A file belongs to no conversation.
  const sources = (asked.length === 0 ? SearchSourceValues : [...new Set(asked)]).filter(
    (source) => sessionKey === undefined || source !== "workspace",
  );
  if (sources.length === 0)
    return succeed({ hits: [], more: false, notes: ["Files belong to no conversation, so there is nothing to look in."] });
  const main = canonicalKey(`agent:${agentId}:main`, ports.config.mainKey());
  if (!main.ok) return fail("session.bad_key", `This is not an agent: ${main.problem}.`);
  const request = {
    agentId,
    match: match.value,
    sources,
    ...(sessionKey === undefined ? {} : { sessionKey }),
    ...(memoryOnly === true
      ? { memoryOf: { keys: [main.key, ...ports.sessions.ownedBy(agentId, MAX_OWNED)], prefix: `agent:${agentId}:cli:dm:` } }
      : {}),
    limit: Math.min(Math.max(1, input.limit ?? DEFAULT_HITS), MAX_HITS),
    offset: Math.max(0, input.offset ?? 0),
  };
  const ask = (): ReturnType<SearchPort["query"]> => ports.searchIndex(agentId).query(request);
  try {
    // The next query makes a new index object when this one broke.
    const found = await ask().catch(ask);
    const snippetChars = Math.min(input.snippetChars ?? SNIPPET_CHARS, MAX_SNIPPET_CHARS);
    const hits = found.hits.map((place) => hitOf(place, ports.scrub, snippetChars));
    return succeed({ hits, more: found.more, notes: found.notes.map((note) => ports.scrub(note).slice(0, MAX_NOTE_CHARS)) });
  } catch (error) {
    ports.log.error("search_failed", { agent: agentId, error });
    return fail(FAILED, "The search index did not answer.", "Search again.");
  }
}

function hitOf(place: SearchPlace, scrub: (text: string) => string, snippetChars: number): SearchHit {
  const { kind, name, sessionKey, sessionId, role, at, position } = place;
  return {
    source: kind,
    ...(kind === "sessions" ? {} : { path: scrub(name) }),
    ...(sessionKey === undefined ? {} : { sessionKey: asSessionKey(sessionKey) }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(role === undefined ? {} : { role }),
    ...(at > 0 ? { at } : {}),
    // A message of a conversation that goes on has no place that stays.
    ...(kind === "sessions" ? {} : { position }),
    snippet: snippetOf(place.marked, scrub, snippetChars),
    score: place.score,
  };
}
