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
    decision: enumOf("AuditDecision", "Whether the action was allowed.", ["allowed", "denied", "failed"]),
    detail: t.optional(t.string(1024)),
    argsHash: t.optional(t.string(64)),
    prevHash: t.string(64),
    hash: t.string(64),
  },
);
method("audit.list", {
  doc: "Lists audit entries, the newest first.",
  params: { limit: t.optional(t.int(1, 200)), beforeSeq: t.optional(t.int()), action: t.optional(t.string(128)) },
  result: { entries: t.array(AuditEntry, 200), count: t.int(), intact: t.bool() },
  callers: ["client"],
  scope: "admin",
  audit: "none",
  idempotent: true,
});
