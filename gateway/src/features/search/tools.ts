/**
 * `gsv__Search` and `gsv__Remember`. The owner's sessions search everything that the agent has and write its memory;
 * any other session searches only itself and writes nothing (promises S8, X8).
 */
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import { type SearchHit, type SearchSource, SearchSourceValues } from "../../../../protocol/gen/types.ts";
import type { Result } from "../../ports/result.ts";
import { localDay } from "../../prompt/dates.ts";
import { withoutMarks } from "./text.ts";
import { dailyPath } from "../../storage/keys.ts";
import { hitsTaint } from "../../tools/hits-taint.ts";
import { goesToQuarantine, quarantined } from "../../tools/quarantined.ts";
import { bad, integer, optional, text } from "../../tools/arguments.ts";
import { denied, outcome, type Tool, tool } from "../../tools/tool.ts";

const MAX_QUERY_CHARS = 1024;
const MAX_HITS = 50;
const HITS = 10;
const MAX_MEMORY_CHARS = 2_000;
const MEMORY = "MEMORY.md";
/** Longer than a search that waits for two catch-ups. */
const SEARCH_TIMEOUT_MS = 2 * LIMITS.searchIndexMs + 40_000;
const QUERY = {
  type: "string",
  description: 'A question or some words. `"a phrase"` and `+word` must occur, `-word` must not.',
} as const;
const LIMIT = { type: "integer" } as const;
const isSource = (value: unknown): value is SearchSource => SearchSourceValues.some((source) => source === value);

function sources(name: string, value: unknown): Result<readonly SearchSource[]> {
  const given: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (given.length > 0 && given.every(isSource)) return { ok: true, value: given };
  return bad(`\`${name}\` must be a list of ${SearchSourceValues.map((source) => `\`${source}\``).join(", ")}.`);
}
const where = (name: "today" | "long-term" | undefined, now: number, timeZone: string): string =>
  name === "today" ? dailyPath(localDay(now, timeZone).today) : MEMORY;
function place(name: string, value: unknown): Result<"today" | "long-term"> {
  return value === "today" || value === "long-term" ? { ok: true, value } : bad(`\`${name}\` must be \`long-term\` or \`today\`.`);
}

/** A skill may be read only as it was approved (gateway rule SK4); the index has the file as it is. */
const SKILL_TEXT = "[Read this skill's text with gsv__ReadFile.]";
const isSkill = (path: string | undefined): boolean => path?.normalize("NFKC").toLowerCase().startsWith("skills/") === true;

function shown(hit: SearchHit): Readonly<Record<string, unknown>> {
  const { score: _score, snippet, at, ...rest } = hit;
  const text = hit.source === "workspace" && isSkill(hit.path) ? SKILL_TEXT : withoutMarks(snippet);
  return { ...rest, ...(at === undefined ? {} : { at: new Date(at).toISOString() }), text };
}
const notesOf = (notes: readonly string[]): { readonly notes?: readonly string[] } => (notes.length === 0 ? {} : { notes });

export const SEARCH_TOOLS: readonly Tool[] = [
  tool(
    {
      name: "gsv__Search",
      description: "Searches your workspace, conversations and archives. A hit's role says who wrote it.",
      policyClass: "read_private",
      // A guest's session searches only itself.
      guests: "always",
      properties: {
        query: QUERY,
        in: { type: "array", items: { type: "string", enum: SearchSourceValues }, description: "Default: everywhere." },
        limit: LIMIT,
      },
      timeoutMs: SEARCH_TIMEOUT_MS,
    },
    { query: text(MAX_QUERY_CHARS), in: optional(sources), limit: optional(integer(1, MAX_HITS)) },
    async ({ query, in: asked, limit }, { identity, gateway }, files) => {
      const own = identity.isOwnersSession ? undefined : (asked ?? SearchSourceValues).filter((source) => source !== "workspace");
      if (own?.length === 0) return denied("This conversation may search only itself, not the workspace. Leave `in` out.");
      const found = await gateway.search({
        agentId: identity.agentId,
        query,
        ...(own === undefined ? (asked === undefined ? {} : { sources: asked }) : { sources: own, sessionKey: identity.key }),
        limit: limit ?? HITS,
      });
      if (!found.ok) return found;
      const { hits, more, notes } = found.value;
      return {
        ok: true,
        result: { hits: hits.map(shown), more, ...notesOf(notes) },
        taint: await hitsTaint("gsv__Search", hits, files, identity.agentId),
      };
    },
  ),
  tool(
    {
      name: "gsv__Remember",
      description: "Adds one fact to MEMORY.md (`long-term`) or to today's daily file (`today`).",
      policyClass: "write_workspace",
      properties: {
        text: { type: "string", description: "Clear without this conversation." },
        where: { type: "string", enum: ["long-term", "today"] },
      },
    },
    { text: text(MAX_MEMORY_CHARS), where: optional(place) },
    async (args, context, files) => {
      const line = args.text
        .replace(/\s+/gu, " ")
        .trim()
        .replace(/^[-*] /, "");
      if (line === "") return bad("`text` is empty.");
      const path = where(args.where, context.now, context.userTimezone);
      if (goesToQuarantine(path, context))
        return quarantined(context, path, await files.quarantine(path, context, { kind: "append", text: `- ${line}\n` }));
      let known = false;
      const written = await files.update(path, context, (current = "") => {
        known = current.split("\n").includes(`- ${line}`);
        if (known) return { ok: true, value: current };
        return { ok: true, value: `${current}${current === "" || current.endsWith("\n") ? "" : "\n"}- ${line}\n` };
      });
      return outcome(written, () => ({ path, remembered: line, ...(known ? { note: "The file has this line already." } : {}) }));
    },
  ),
];
