/**
 * Runs one search: checks the query, asks the agent's index, and prepares the hits for display. Masks secrets here, because only the
 * gateway knows them. Must not decide who may search what; the callers do.
 */
import type { ErrorReason } from "../../../../protocol/gen/errors.ts";
import { asSessionKey, type SearchHit, type SearchSource, SearchSourceValues } from "../../../../protocol/gen/types.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { SearchAnswer, SearchInput, SearchPlace, SearchPort } from "../../ports/search.ts";
import { DEFAULT_HITS, MAX_HITS, MAX_NOTE_CHARS } from "./limits.ts";
import { parseQuery } from "./query.ts";
import { SNIPPET_CHARS, snippetOf, unmarked } from "./text.ts";
import { fail } from "../../kernel/outcome.ts";
import { canonicalKey } from "../../kernel/routing/session-keys.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { SessionsPort } from "../../ports/sessions.ts";

/** In characters without marks; the contract allows more. */
const MAX_SNIPPET_CHARS = 1_000;
const NEIGHBOUR_CHARS = 300;
/** Limit for the owner's sessions over channels; the most recently active ones are used. */
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
    return succeed({ hits: [], more: false, notes: ["Files do not belong to a conversation, so nothing was searched."] });
  const main = canonicalKey(`agent:${agentId}:main`, ports.config.mainKey());
  if (!main.ok) return fail("session.bad_key", `Invalid agent id: ${main.problem}.`);
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
    // The next query gets a new index object after a failure.
    const found = await ask().catch(ask);
    const snippetChars = Math.min(input.snippetChars ?? SNIPPET_CHARS, MAX_SNIPPET_CHARS);
    const hits = found.hits.map((place) => hitOf(place, ports.scrub, snippetChars));
    return succeed({ hits, more: found.more, notes: found.notes.map((note) => ports.scrub(note).slice(0, MAX_NOTE_CHARS)) });
  } catch (error) {
    ports.log.error("search_failed", { agent: agentId, error });
    return fail(FAILED, "The search index did not answer.", "Search again.");
  }
}

/** The beginning of a text beside a hit, in one line. */
const neighbour = (text: string, scrub: (text: string) => string): string => snippetOf(unmarked(text).text, scrub, NEIGHBOUR_CHARS);

function hitOf(place: SearchPlace, scrub: (text: string) => string, snippetChars: number): SearchHit {
  const { kind, name, sessionKey, sessionId, role, at, position } = place;
  return {
    source: kind,
    ...(kind === "sessions" ? {} : { path: scrub(name) }),
    ...(sessionKey === undefined ? {} : { sessionKey: asSessionKey(sessionKey) }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(role === undefined ? {} : { role }),
    ...(at > 0 ? { at } : {}),
    // A message of a current session has no permanent position.
    ...(kind === "sessions" ? {} : { position }),
    snippet: snippetOf(place.marked, scrub, snippetChars),
    ...(place.before.length === 0 ? {} : { before: place.before.map((text) => neighbour(text, scrub)) }),
    ...(place.after.length === 0 ? {} : { after: place.after.map((text) => neighbour(text, scrub)) }),
    score: place.score,
  };
}
