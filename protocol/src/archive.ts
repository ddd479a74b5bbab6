/** Transcripts that were put away by a reset or a compaction. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { AgentId, SessionKey } from "./ids.ts";
import { TokenUsage } from "./session.ts";

const ArchiveEntry = struct("ArchiveEntry", "One transcript in the bucket.", {
  /** In the agent's workspace: `sessions/{sessionId}.jsonl.gz`. */
  path: t.string(1024),
  kind: enumOf("ArchiveKind", "`reset`: the whole rest of a session. `part`: what a compaction took out of it.", ["reset", "part"]),
  sessionKey: t.optional(SessionKey),
  sessionId: t.string(64),
  /** Absent when the object's metadata does not say. */
  messageCount: t.optional(t.int()),
  archivedAt: t.time(),
  sizeBytes: t.int(),
  tokens: t.optional(TokenUsage),
});
const agentId = t.optional(AgentId);
method("archives.list", {
  doc: "Transcripts of an agent, the newest first; of one session with `sessionKey`.",
  params: { agentId, sessionKey: t.optional(SessionKey), offset: t.optional(t.int()), limit: t.optional(t.int(1, 200)) },
  result: { archives: t.array(ArchiveEntry, 200), count: t.int() },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["session.bad_key", "storage.failed"],
  idempotent: true,
});
method("archives.read", {
  doc: "Messages of one transcript, from `offset` on, as many as fit an answer. `path` as archives.list gives it, or a session id.",
  params: { agentId, path: t.string(1024, { minLength: 1 }), offset: t.optional(t.int()), limit: t.optional(t.int(1, 10000)) },
  result: {
    archive: ArchiveEntry,
    messages: t.array(t.json()),
    offset: t.int(),
    /** Absent at the end. */
    nextOffset: t.optional(t.int()),
    total: t.int(),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["path.invalid", "path.not_found", "archive.damaged", "file.too_large", "storage.failed"],
  idempotent: true,
});
