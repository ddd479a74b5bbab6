/** The agent's files. */
import { method, struct, t } from "./dsl.ts";
import { AgentId } from "./ids.ts";

const path = t.string(1024, { minLength: 1 });
const agentId = t.optional(AgentId);
const errors = ["path.invalid", "path.not_found", "path.not_a_file", "storage.failed"] as const;
method("workspace.list", {
  doc: "Files and folders directly under a folder of the agent's workspace.",
  params: { path: t.optional(t.string(1024)), agentId },
  result: { path: t.string(1024), files: t.array(t.string(1024)), directories: t.array(t.string(1024)) },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors,
  idempotent: true,
});
method("workspace.read", {
  doc: "One file, as it is or as an earlier version of it was. Whole, or not at all; with `offset` (bytes, from 0) as much from there on as fits an answer.",
  params: { path, agentId, version: t.optional(t.string(128)), offset: t.optional(t.int()) },
  result: {
    path: t.string(1024),
    content: t.text(),
    size: t.int(),
    lastModified: t.optional(t.string(64)),
    etag: t.optional(t.string(128)),
    /** Where to go on; absent at the end, and when no `offset` was asked for. `size` is the whole file's. */
    nextOffset: t.optional(t.int()),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: [...errors, "file.too_large", "file.binary"],
  idempotent: true,
});
method("workspace.write", {
  doc: "Writes one file. With `ifMatch` (an etag, or `*` for none-yet as `absent`), only when the file has not changed since it was read.",
  params: { path, content: t.text(), agentId, ifMatch: t.optional(t.string(128)) },
  result: { path: t.string(1024), size: t.int(), written: t.literal(true), etag: t.optional(t.string(128)) },
  callers: ["client"],
  scope: "operate",
  audit: { target: "path" },
  errors: [...errors, "file.too_large", "workspace.conflict", "workspace.protected", "agent.unknown"],
  idempotent: true,
});
method("workspace.delete", {
  doc: "Deletes one file. What it was stays among its versions.",
  params: { path, agentId },
  result: { path: t.string(1024), deleted: t.literal(true) },
  callers: ["client"],
  scope: "operate",
  audit: { target: "path" },
  errors: [...errors, "file.too_large", "workspace.conflict", "workspace.protected"],
  idempotent: true,
});
const WorkspaceVersion = struct("WorkspaceVersion", "What a file was before a change.", {
  version: t.string(128),
  /** When it had been written. */
  at: t.time(),
  sizeBytes: t.int(),
  /** Who wrote it, when that is known: `client:<id>`, `agent:<session>`. */
  by: t.optional(t.string(256)),
  /** When it was replaced or deleted. */
  replacedAt: t.optional(t.time()),
});
method("workspace.log", {
  doc: "Earlier versions of a file, the newest first; at most `versionsKept` are kept. Also of a file that was deleted.",
  params: { path, agentId },
  result: {
    path: t.string(1024),
    /** The file as it is now; absent: it was deleted. */
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
  doc: "Makes a file what an earlier version of it was. What it is now becomes a version itself. `ifMatch` as in workspace.write, or the version that is current.",
  params: { path, agentId, version: t.string(128, { minLength: 1 }), ifMatch: t.optional(t.string(128)) },
  result: { path: t.string(1024), size: t.int(), etag: t.optional(t.string(128)) },
  callers: ["client"],
  scope: "operate",
  audit: { target: "path" },
  errors: [...errors, "file.too_large", "workspace.conflict", "workspace.protected", "agent.unknown"],
  idempotent: true,
});
