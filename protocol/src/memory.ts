/** Memories: those that wait for the owner, because others had written into their conversation, and the rows of long-term memory. */
import { enumOf, method, struct, t } from "./dsl.ts";
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
    /** The digest of the whole diff, when `diff` is only a part of it. */
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

const MemoryId = Id;
const o = t.optional;
export const MemoryAuthor = enumOf("MemoryAuthor", "Who wrote a memory: the agent with a tool, or the owner.", ["agent", "owner"]);
const Memory = struct("Memory", "A row of an agent's long-term memory. It never changes; a newer row can supersede it.", {
  /** A ULID: ids rise with time. */
  id: MemoryId,
  text: t.string(8192, { minLength: 1 }),
  metadata: o(t.map(t.string(1024))),
  author: MemoryAuthor,
  /** What the conversation had read when it was written: `owner`, `self`, `files`, `peer` or `world`. */
  label: t.string(16),
  /** What raised the label. */
  labelSource: t.string(512),
  sessionKey: o(SessionKey),
  /** The call that wrote it: `gsv why` tells of its run. */
  callId: o(t.string(256)),
  /** With an embedding service: whether it made a vector of the memory. Absent: no service is asked for one. Without such a vector the words and the built-in table find it. */
  embedding: o(enumOf("MemoryEmbedding", "Whether a memory has its vector.", ["done", "pending", "refused"])),
  /** The older memory that this one replaces. */
  supersedes: o(MemoryId),
  /** The newer memory that replaces this one, which no recall finds any more. */
  supersededBy: o(MemoryId),
  at: t.time(),
});
const FoundMemory = struct("FoundMemory", "A memory that a search found.", {
  memory: Memory,
  /** From 0 to 1, higher is better. */
  score: t.number(),
});
const WaitingEmbeddings = struct("WaitingEmbeddings", "Memories that wait for their vectors of an embedding service, of all agents.", {
  /** Such as openai/text-embedding-3-small. */
  model: t.string(512),
  /** Memories that wait; of more than 100,000 this number. */
  waiting: t.int(),
  /** Memories that the service did not take. */
  refused: t.int(),
  /** Why the last attempt failed, as a sentence. */
  problem: o(t.string(1024)),
  /** The next attempt. Absent with a problem: attempts have ended until a memory is added or the settings change. */
  nextAt: o(t.time()),
});
const VectorIndexBehind = struct("VectorIndexBehind", "The vector index does not follow the memories, of all agents.", {
  /** Memories that it does not find yet; of more than 100,000 this number. */
  waiting: t.int(),
  /** Why, as a sentence. */
  problem: t.string(1024),
  nextAt: t.time(),
});
method("memory.list", {
  doc: "Lists an agent's long-term memories, the newest first.",
  params: {
    agentId,
    /** Only memories that are older than this one. */
    before: o(MemoryId),
    /** Also those that a newer memory has superseded. */
    superseded: o(t.bool()),
    limit: o(t.int(1, 100)),
  },
  result: {
    memories: t.array(Memory, 100),
    more: t.bool(),
    /** Only with an embedding service, and while some memories have no vector of it. */
    embeddings: o(WaitingEmbeddings),
    /** Only with a vector index, and after an attempt that failed. */
    vectorIndex: o(VectorIndexBehind),
  },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: [...errors, "agent.unknown"],
  idempotent: true,
});
method("memory.search", {
  doc: "Searches an agent's long-term memories; the query is as for `search.query`. Superseded memories are not found.",
  params: { query: t.string(1024, { minLength: 1 }), agentId, limit: o(t.int(1, 100)) },
  result: { memories: t.array(FoundMemory, 100), notes: t.array(t.string(512), 32) },
  callers: ["client"],
  scope: "operate",
  audit: "none",
  errors: [...errors, "search.bad_query", "agent.unknown"],
  idempotent: true,
});
method("memory.add", {
  doc: "Adds a memory of the owner to an agent's long-term memory. The same `requestId` of the same token adds it once; with another text it is refused.",
  params: {
    text: t.string(8192, { minLength: 1 }),
    agentId,
    metadata: o(t.map(t.string(1024))),
    supersedes: o(MemoryId),
    requestId: t.string(128, { minLength: 1 }),
  },
  result: {
    memory: Memory,
    /** False: an earlier request with this id has added it. */
    added: t.bool(),
  },
  callers: ["client"],
  scope: "operate",
  audit: "own",
  errors: [...errors, "agent.unknown", "memory.unknown", "memory.too_large", "memory.full", "task.key_reused"],
  idempotent: true,
});
method("memory.forget", {
  doc: "Removes memories for good, with everything that was made of them. Ids that do not exist any more are passed over.",
  params: { ids: t.array(MemoryId, 100), agentId },
  result: { ok: t.literal(true), forgotten: t.int() },
  callers: ["client"],
  scope: "operate",
  audit: "own",
  errors,
  idempotent: true,
});
