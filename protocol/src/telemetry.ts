/** Export of traces. */
import { method, t } from "./dsl.ts";

method("telemetry.status", {
  doc: "Tells whether traces are exported, how many runs wait, and how the last export ended.",
  result: {
    enabled: t.bool(),
    /** Without its headers. */
    endpoint: t.optional(t.string(2048)),
    /** Runs that wait for their export. */
    waiting: t.int(),
    /** Runs that were exported. */
    exported: t.int(),
    /** Runs that were not exported, because too many waited, their record was gone, or the collector refused them. */
    dropped: t.int(),
    exportedAt: t.optional(t.time()),
    /** Why the last export failed. Absent: it did not. */
    problem: t.optional(t.string(512)),
    failedAt: t.optional(t.time()),
    /** When the next attempt is made, after a failure. */
    nextAt: t.optional(t.time()),
  },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
