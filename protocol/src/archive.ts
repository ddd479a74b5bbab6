/** Transcripts that a reset or a compaction archived. */
import { enumOf, method, struct, t } from "./dsl.ts";
import { AgentId, SessionKey } from "./ids.ts";
import { TokenUsage } from "./session.ts";

const ArchiveEntry = struct("ArchiveEntry", "One transcript in the bucket.", {
  /** In the agent's workspace: `sessions/{sessionId}.jsonl.gz`. */
  path: t.string(1024),
  kind: enumOf("ArchiveKind", "`reset`: all messages that a session still had. `part`: the messages that a compaction removed.", [
    "reset",
    "part",
  ]),
  sessionKey: t.optional(SessionKey),
  sessionId: t.string(64),
  /** Absent when the object's metadata has no count. */
  messageCount: t.optional(t.int()),
  archivedAt: t.time(),
  sizeBytes: t.int(),
  tokens: t.optional(TokenUsage),
});
const agentId = t.optional(AgentId);
method("archives.list", {
  doc: "Lists an agent's transcripts, the newest first. With `sessionKey`: only those of that session.",
  params: { agentId, sessionKey: t.optional(SessionKey), offset: t.optional(t.int()), limit: t.optional(t.int(1, 200)) },
  result: { archives: t.array(ArchiveEntry, 200), count: t.int() },
  callers: ["client"],
  scope: "read",
  audit: "none",
  errors: ["session.bad_key", "storage.failed"],
  idempotent: true,
});
method("archives.read", {
  doc: "Returns messages of one transcript from `offset` on, as many as fit into an answer. `path` is a path from archives.list, or a session id.",
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
