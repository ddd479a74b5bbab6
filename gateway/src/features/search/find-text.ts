/**
 * Runs one search: checks the query, asks the agent's index, and prepares the hits for display. Masks secrets here, because only the
 * gateway knows them. Must not decide who may search what; the callers do.
 */
import type { ErrorReason } from "../../../../protocol/gen/errors.ts";
import { asSessionKey, type SearchHit, SearchSourceValues } from "../../../../protocol/gen/types.ts";
import { type Result, succeed } from "../../ports/result.ts";
import type { RecallHit } from "../../ports/long-term-memory.ts";
import type {
  MemorySearchInput,
  SearchAnswer,
  SearchFound,
  SearchInput,
  SearchPlace,
  SearchPort,
  SearchRequest,
} from "../../ports/search.ts";
import type { Taint } from "../../ports/taint.ts";
import { DEFAULT_HITS, MAX_HITS, MAX_NOTE_CHARS } from "./limits.ts";
import { parseQuery, usesMeaning } from "./query.ts";
import { SNIPPET_CHARS, snippetOf, unmarked, withoutMarks } from "./text.ts";
import { fail } from "../../kernel/outcome.ts";
import type { WrittenFiles } from "../../storage/telling-bucket.ts";
import { taintIn } from "../../storage/versions.ts";
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
  readonly writtenFiles: Pick<WrittenFiles, "state" | "written">;
}

export async function findText(ports: FindPorts, input: SearchInput): Promise<Result<SearchAnswer>> {
  const { agentId, sessionKey } = input;
  const asked = input.sources ?? [];
  // A file belongs to no conversation.
  const sources = (asked.length === 0 ? SearchSourceValues : [...new Set(asked)]).filter(
    (source) => sessionKey === undefined || source !== "workspace",
  );
  const match = parseQuery(input.query);
  if (!match.ok) return match;
  if (sources.length === 0)
    return succeed({ hits: [], more: false, notes: ["Files do not belong to a conversation, so nothing was searched."] });
  const found = await ask(ports, {
    agentId,
    match: match.value,
    sources,
    ...(sessionKey === undefined ? {} : { sessionKey }),
    ...page(input),
  });
  if (!found.ok) return found;
  const snippetChars = Math.min(input.snippetChars ?? SNIPPET_CHARS, MAX_SNIPPET_CHARS);
  const hits = found.value.hits.flatMap((place) => hitOf(place, ports.scrub, snippetChars) ?? []);
  return succeed({ hits, more: found.value.more, notes: notesOf(found.value, ports.scrub) });
}

/** What an agent remembers: memory files, transcripts of its owner's conversations, and rows of long-term memory. */
export async function findMemories(
  ports: FindPorts,
  input: MemorySearchInput,
): Promise<Result<{ readonly hits: readonly RecallHit[]; readonly more: boolean; readonly notes: readonly string[] }>> {
  const { agentId, rowsOnly } = input;
  const match = parseQuery(input.query);
  if (!match.ok) return match;
  const main = canonicalKey(`agent:${agentId}:main`, ports.config.mainKey());
  if (!main.ok) return fail("session.bad_key", `Invalid agent id: ${main.problem}.`);
  const near = usesMeaning(match.value) ? await input.near?.() : undefined;
  // After the question has its vector, which may take long: what was written meanwhile is found.
  const rowsState = input.rowsState();
  const found = await ask(ports, {
    agentId,
    match: match.value,
    question: input.query,
    ...(near === undefined ? {} : { nearRows: near }),
    ...(rowsState === undefined ? {} : { rowsState }),
    filesState: ports.writtenFiles.state(),
    sources: rowsOnly ? ["memory"] : ["workspace", "archives", "memory"],
    memoryOf: { keys: [main.key, ...ports.sessions.ownedBy(agentId, MAX_OWNED)], prefix: `agent:${agentId}:cli:dm:` },
    ...page(input),
  });
  if (!found.ok) return found;
  const snippetChars = Math.min(input.snippetChars, MAX_SNIPPET_CHARS);
  const hits = found.value.hits.map((place): RecallHit => {
    const hit = hitOf(place, ports.scrub, snippetChars);
    if (hit !== undefined) {
      const taint = taintIn(place.taint);
      return { kind: "text", hit, ...(taint === undefined ? {} : { taint }) };
    }
    const text = withoutMarks(snippetOf(place.marked, ports.scrub, snippetChars));
    return { kind: "memory", id: place.name, text, at: place.at, taint: UNKNOWN, score: place.score };
  });
  return succeed({ hits, more: found.value.more, notes: notesOf(found.value, ports.scrub) });
}
/** The index does not know who may have written a memory; its row does. */
const UNKNOWN: Taint = { label: "world", source: "a memory" };

const page = ({ limit, offset }: { readonly limit?: number; readonly offset?: number }) => ({
  limit: Math.min(Math.max(1, limit ?? DEFAULT_HITS), MAX_HITS),
  offset: Math.max(0, offset ?? 0),
});
const notesOf = ({ notes }: SearchFound, scrub: (text: string) => string): string[] =>
  notes.map((note) => scrub(note).slice(0, MAX_NOTE_CHARS));

async function ask(ports: FindPorts, request: SearchRequest): Promise<Result<SearchFound>> {
  const query = (): Promise<SearchFound> => ports.searchIndex(request.agentId).query(request);
  try {
    // The next query gets a new index object after a failure.
    return succeed(await query().catch(query));
  } catch (error) {
    ports.log.error("search_failed", { agent: request.agentId, error });
    return fail(FAILED, "The search index did not answer.", "Search again.");
  }
}

/** The beginning of a text beside a hit, in one line. */
const neighbour = (text: string, scrub: (text: string) => string): string => snippetOf(unmarked(text).text, scrub, NEIGHBOUR_CHARS);

/** Undefined: it is a row of long-term memory, which the wire names otherwise. */
function hitOf(place: SearchPlace, scrub: (text: string) => string, snippetChars: number): SearchHit | undefined {
  const { kind, name, sessionKey, sessionId, role, at, position } = place;
  if (kind === "memory") return undefined;
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
