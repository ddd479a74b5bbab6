/** The files of an agent: read, write, and their versions. */
import { method, struct, t } from "./dsl.ts";
import { AgentId } from "./ids.ts";

const path = t.string(1024, { minLength: 1 });
const agentId = t.optional(AgentId);
const errors = ["path.invalid", "path.not_found", "path.not_a_file", "storage.failed"] as const;
method("workspace.list", {
  doc: "Lists files and folders directly in a folder of the agent's workspace.",
  params: { path: t.optional(t.string(1024)), agentId },
  result: {
    path: t.string(1024),
    files: t.array(t.string(1024)),
    directories: t.array(t.string(1024)),
    /** The etag of each file, in the order of `files`. It changes with the content. Empty for a built-in file. Absent when the answer would not fit a frame. */
    etags: t.optional(t.array(t.string(128))),
    /** There are more entries than one answer lists. */
    truncated: t.optional(t.bool()),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors,
  idempotent: true,
});
method("workspace.read", {
  doc: "Returns one file, in its current or an earlier version. Without `offset`: the whole file or an error. With `offset` (bytes, from 0): as much from there on as fits into an answer.",
  params: { path, agentId, version: t.optional(t.string(128)), offset: t.optional(t.int()) },
  result: {
    path: t.string(1024),
    content: t.text(),
    size: t.int(),
    lastModified: t.optional(t.string(64)),
    etag: t.optional(t.string(128)),
    /** The next `offset`. Absent at the end and when the request had no `offset`. `size` is the size of the whole file. */
    nextOffset: t.optional(t.int()),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: [...errors, "file.too_large", "file.binary"],
  idempotent: true,
});
method("workspace.write", {
  doc: "Writes one file. `ifMatch` is an etag or a version id: the file is written only if that is still its current version. `absent`: the file must not exist.",
  params: { path, content: t.text(), agentId, ifMatch: t.optional(t.string(128)) },
  result: { path: t.string(1024), size: t.int(), written: t.literal(true), etag: t.optional(t.string(128)) },
  callers: ["client"],
  scope: "operate",
  audit: { target: "path" },
  errors: [...errors, "file.too_large", "workspace.conflict", "workspace.protected", "agent.unknown"],
  idempotent: true,
});
method("workspace.delete", {
  doc: "Deletes one file. Its content is kept as a version; a file that is too large for one is deleted only with `permanently`, and nothing of it stays.",
  params: { path, agentId, permanently: t.optional(t.bool()) },
  result: {
    path: t.string(1024),
    deleted: t.literal(true),
    /** Whether the content is kept as a version. */
    kept: t.optional(t.bool()),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "path" },
  errors: [...errors, "file.too_large", "workspace.conflict", "workspace.protected"],
  idempotent: true,
});
const WorkspaceVersion = struct("WorkspaceVersion", "A version of a file.", {
  version: t.string(128),
  /** When the version was written. */
  at: t.time(),
  sizeBytes: t.int(),
  /** The writer, when known: `client:<id>` or `agent:<session>`. */
  by: t.optional(t.string(256)),
  /** When the version was replaced or deleted. */
  replacedAt: t.optional(t.time()),
});
method("workspace.log", {
  doc: "Lists earlier versions of a file, the newest first, also of a deleted file. At most `versionsKept` are kept.",
  params: { path, agentId },
  result: {
    path: t.string(1024),
    /** The current version. Absent: the file was deleted. */
    current: t.optional(WorkspaceVersion),
    versions: t.array(WorkspaceVersion, 100),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors,
  idempotent: true,
});
method("workspace.restore", {
  doc: "Restores an earlier version of a file. The current content becomes a version. `ifMatch` is as in workspace.write, or the id of the current version.",
  params: { path, agentId, version: t.string(128, { minLength: 1 }), ifMatch: t.optional(t.string(128)) },
  result: { path: t.string(1024), size: t.int(), etag: t.optional(t.string(128)) },
  callers: ["client"],
  scope: "operate",
  audit: { target: "path" },
  errors: [...errors, "file.too_large", "workspace.conflict", "workspace.protected", "agent.unknown"],
  idempotent: true,
});
