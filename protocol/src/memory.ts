/** Memories that wait for the owner: what was learnt in a conversation that others have written into. */
import { method, struct, t } from "./dsl.ts";
import { AgentId, SessionKey } from "./ids.ts";

const Id = t.string(32, { minLength: 1 });
const agentId = t.optional(AgentId);
const QuarantinedMemory = struct(
  "QuarantinedMemory",
  "A memory that waits for the owner. In its texts, control, bidi and zero-width characters are written as escapes.",
  {
    id: Id,
    /** The file that it was meant for. */
    path: t.string(1024),
    /** What the conversation had read: `peer` or `world`. */
    label: t.string(16),
    /** What raised the label. */
    source: t.string(512),
    sessionKey: SessionKey,
    /** The call that wrote it: `gsv why` tells of its run. */
    callId: t.string(256),
    at: t.time(),
    /** The change that keeping it makes to the file as it is now: its diff, or both ends of it, 4 KB in all. Empty: nothing changes. */
    diff: t.string(32768),
    /** Bytes of the whole diff. */
    diffBytes: t.int(),
    /** Of the whole diff, when `diff` is only a part of it. */
    diffSha256: t.optional(t.string(64)),
    /** The file as it is: for `ifMatch`. `absent`: there is none. */
    etag: t.string(128),
    /** Why it cannot be kept now, as a sentence. */
    problem: t.optional(t.string(1024)),
  },
);
const errors = ["storage.failed"] as const;
method("memory.quarantine", {
  doc: "Lists the memories that wait for the owner, the oldest first. They are in no prompt, and no search finds them.",
  params: { agentId },
  result: {
    memories: t.array(QuarantinedMemory, 200),
    /** Ids of entries that cannot be read. They can only be dropped. */
    damaged: t.array(Id, 200),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors,
  idempotent: true,
});
method("memory.promote", {
  doc: "Keeps a memory: makes its change in the file that it was meant for, as the owner's own. `ifMatch` is the `etag` that was shown: the file is changed only if it is still in that state.",
  params: { id: Id, agentId, ifMatch: t.optional(t.string(128)) },
  result: { ok: t.literal(true), path: t.string(1024) },
  callers: ["client"],
  scope: "operate",
  audit: { target: "id" },
  errors: [
    ...errors,
    "memory.not_found",
    "path.not_found",
    "tool.bad_args",
    "file.too_large",
    "file.binary",
    "workspace.conflict",
    "workspace.protected",
    "agent.unknown",
  ],
  idempotent: true,
});
method("memory.drop", {
  doc: "Removes a memory that waits. It is not kept anywhere.",
  params: { id: Id, agentId },
  result: {
    ok: t.literal(true),
    /** False: there was none any more. */
    dropped: t.bool(),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: "id" },
  errors: [...errors, "memory.not_found"],
  idempotent: true,
});
