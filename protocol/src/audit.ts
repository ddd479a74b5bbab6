/** The audit log: append-only and hash-chained. */
import { enumOf, method, struct, t } from "./dsl.ts";

export const AuditEntry = struct(
  "AuditEntry",
  "One action. `hash` covers the entry and the previous hash; arguments appear only as a digest.",
  {
    seq: t.int(),
    at: t.time(),
    actor: t.string(256),
    action: t.string(128),
    target: t.optional(t.string(512)),
    /** Absent in entries of earlier versions. */
    origin: t.optional(
      t.string(256, { description: "What caused the action: `client`, `node`, `channel NAME ROLE`, `session KEY`, `gateway`." }),
    ),
    tool: t.optional(t.string(256, { description: "The tool of a call, by the name that the model or the client used." })),
    rule: t.optional(t.string(128, { description: "The rule that decided, where one is known." })),
    decision: enumOf("AuditDecision", "Whether the action was allowed.", ["allowed", "denied", "failed"]),
    detail: t.optional(t.string(1024)),
    argsHash: t.optional(t.string(64)),
    prevHash: t.string(64),
    hash: t.string(64),
  },
);
method("audit.list", {
  doc: "Lists audit entries, the newest first. `intact`: the listed entries, their links and the end of the log; `audit.verify` checks all.",
  params: { limit: t.optional(t.int(1, 200)), beforeSeq: t.optional(t.int()), action: t.optional(t.string(128)) },
  result: { entries: t.array(AuditEntry, 200), count: t.int(), intact: t.bool() },
  callers: ["client"],
  scope: "admin",
  audit: "none",
  idempotent: true,
});

export const AuditBreak = struct("AuditBreak", "The first entry that does not fit the hash chain.", {
  seq: t.int(),
  at: t.optional(t.time()),
  problem: t.string(512),
});
export const AuditExport = struct("AuditExport", "The daily copies of the log in the bucket.", {
  key: t.optional(t.string(256, { description: "The newest copy." })),
  lastSeq: t.optional(t.int()),
  failingSince: t.optional(t.time()),
  problem: t.optional(t.string(512, { description: "Why the last try failed. It is tried again." })),
});
method("audit.verify", {
  doc: "Checks the hash chain in pages, from the oldest entry. Call it again with `lastSeq` until `done`; the last page also checks the end of the log, which is stored apart, and the newest copy in the bucket.",
  params: { afterSeq: t.optional(t.int()) },
  result: {
    ok: t.bool(),
    done: t.bool(),
    checked: t.int(),
    lastSeq: t.int(),
    lastHash: t.optional(t.string(64)),
    broken: t.optional(AuditBreak),
    exported: t.optional(AuditExport),
  },
  callers: ["client"],
  scope: "admin",
  audit: "none",
  idempotent: true,
});
