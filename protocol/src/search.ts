/** Full-text search in files, conversations and transcripts. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { AgentId, SessionKey } from "./ids.ts";

export const SearchSource = enumOf(
  "SearchSource",
  "Where to search: `workspace`: the agent's files. `sessions`: current conversations. `archives`: archived transcripts.",
  ["workspace", "sessions", "archives"],
);
const SearchHit = struct("SearchHit", "One match.", {
  source: SearchSource,
  /** The file or transcript, in the agent's workspace. */
  path: t.optional(t.string(1024)),
  sessionKey: t.optional(SessionKey),
  sessionId: t.optional(t.string(64)),
  /** Role of the message: user, assistant or toolResult. */
  role: t.optional(t.string(32)),
  at: t.optional(t.time()),
  /** In a file: the line, from 1. In a transcript: the message, from 0. */
  position: t.optional(t.int()),
  /** Text around the match, one line; each matching word is between U+E000 and U+E001. */
  snippet: t.string(2048),
  /** The lines of a memory file, or the messages, right before and after the match, each shortened to one line. */
  before: t.optional(t.array(t.string(512), 2)),
  after: t.optional(t.array(t.string(512), 2)),
  /** From 0 to 1, higher is better. Beyond the first few hundred hits on another scale. */
  score: t.number(),
});
method("search.query", {
  doc: 'Full-text search. Any of the words may occur, in any form; `"a phrase"` and `+word` must occur exactly, `-word` must not; `OR` and `word*` are supported. The best hits come first.',
  params: {
    query: t.string(1024, { minLength: 1 }),
    agentId: t.optional(AgentId),
    sources: t.optional(t.array(SearchSource, 3)),
    sessionKey: t.optional(SessionKey),
    limit: t.optional(t.int(1, 100)),
    offset: t.optional(t.int(0, 10000)),
  },
  result: {
    hits: t.array(SearchHit, 100),
    /** True: more hits exist. */
    more: t.bool(),
    /** What could not be searched, and why. */
    notes: t.array(t.string(512), 32),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: ["search.bad_query", "session.bad_key", "agent.unknown", "storage.failed"],
  idempotent: true,
});
