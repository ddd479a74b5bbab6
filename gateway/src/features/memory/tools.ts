/**
 * `remember` and `recall_memory` (gateway/spec/memory.md): an agent's facts between conversations. Whose they are follows from the identity
 * of the session that calls, never from an argument. A session of another person has neither (promises S8).
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { SearchHit } from "../../../../protocol/gen/types.ts";
import type { RecallHit } from "../../ports/long-term-memory.ts";
import { higher, type Taint } from "../../ports/taint.ts";
import { localDay } from "../../prompt/dates.ts";
import { bad, integer, optional, text } from "../../tools/arguments.ts";
import { foundTaint } from "../../tools/hits-taint.ts";
import { RECALL, REMEMBER } from "../../tools/memory-tools.ts";
import { outcome, type Tool, tool } from "../../tools/tool.ts";

const MAX_QUERY_CHARS = 1024;
const MAX_HITS = 50;
/** Length of one snippet. */
const RECALL_CHARS = 600;
const ID_CHARS = 64;
/** Longer than a search that waits for two catch-ups. */
const SEARCH_TIMEOUT_MS = 2 * LIMITS.searchIndexMs + 40_000;
const OWN_WORDS: Taint = { label: "self", source: "the agent's own words" };
const withoutMarks = (snippet: string): string => snippet.replace(/[\ue000\ue001]/g, "");

/** The date is the daily file's own, else the day on which the text was written. */
function ofText({ path = "", position, role, at, sessionKey, snippet, before, after }: SearchHit, timeZone: string) {
  const date =
    /^memory\/(\d{4}-\d{2}-\d{2})(?:-\d+)?\.md$/.exec(path)?.[1] ?? (at === undefined ? undefined : localDay(at, timeZone).today);
  return {
    text: withoutMarks(snippet),
    ...(before === undefined ? {} : { before }),
    ...(after === undefined ? {} : { after }),
    ...(date === undefined ? {} : { date }),
    place: role === undefined ? `${path}, line ${position ?? 1}` : `${path}, message ${position ?? 0}`,
    ...(role === undefined ? {} : { role }),
    ...(sessionKey === undefined ? {} : { sessionKey }),
  };
}
const shown = (hit: RecallHit, timeZone: string): Readonly<Record<string, unknown>> =>
  hit.kind === "text" ? ofText(hit.hit, timeZone) : { text: hit.text, date: localDay(hit.at, timeZone).today, id: hit.id };

export const MEMORY_TOOLS: readonly Tool[] = [
  tool(
    {
      name: REMEMBER,
      description: `Keeps one fact for later conversations; ${RECALL} finds it.`,
      policyClass: "write_workspace",
      properties: {
        text: { type: "string", description: "Clear without this conversation." },
        supersedes: { type: "string", description: "The id of the memory that is not true any more." },
      },
    },
    { text: text(LIMITS.memoryBytes), supersedes: optional(text(ID_CHARS)) },
    async ({ text, supersedes }, { identity, callId, taint, now, gateway }) => {
      const fact = text.toWellFormed().trim();
      if (fact === "") return bad("`text` is empty.");
      const kept = await gateway.remember({
        agentId: identity.agentId,
        text: fact,
        ...(supersedes === undefined ? {} : { supersedes }),
        taint: taint ?? OWN_WORDS,
        sessionKey: identity.key,
        callId,
        now,
      });
      return outcome(kept, ({ id, superseded }) => ({
        id,
        ...(supersedes === undefined
          ? {}
          : superseded
            ? { superseded: supersedes }
            : { note: `The memory ${supersedes} stays as it is, because others may have written what this conversation has read.` }),
      }));
    },
  ),
  tool(
    {
      name: RECALL,
      description: "Searches your memory and past conversations. Use it before you say that you don't know.",
      policyClass: "read_private",
      properties: { query: { type: "string", description: "As for gsv__Search." }, limit: { type: "integer" } },
      timeoutMs: SEARCH_TIMEOUT_MS,
    },
    { query: text(MAX_QUERY_CHARS), limit: optional(integer(1, MAX_HITS)) },
    async ({ query, limit }, { identity, gateway, userTimezone }) => {
      const { agentId } = identity;
      const found = await gateway.recall({ agentId, query, ...(limit === undefined ? {} : { limit }), snippetChars: RECALL_CHARS });
      if (!found.ok) return found;
      const { hits, notes } = found.value;
      const texts = hits.flatMap((hit) => (hit.kind === "text" ? [hit] : []));
      const rows = hits.flatMap((hit) => (hit.kind === "memory" ? [hit.taint] : []));
      const taint = rows.reduce(
        (known, row) => higher(known, { label: row.label, source: `a memory, written after ${row.source}` }),
        foundTaint(RECALL, texts),
      );
      const memories = hits.map((hit) => shown(hit, userTimezone));
      return { ok: true, result: { memories, ...(notes.length === 0 ? {} : { notes }) }, taint };
    },
  ),
];
