/** Stopping everything, and going on. */
import { method, struct, t } from "./dsl.ts";
import { RunId, SessionKey } from "./ids.ts";

export const StopState = struct("StopState", "Everything is stopped: no run starts, and messages wait.", {
  since: t.time(),
  by: t.string(256, { description: "Who stopped it, as the audit names them." }),
  /** When its home was exported, last: it may be live elsewhere. */
  exportedAt: t.optional(t.time()),
});
const StoppedRun = struct("StoppedRun", "A run that was stopped.", {
  sessionKey: SessionKey,
  runId: t.optional(RunId),
  cancelledCalls: t.int(0, 100000),
});

method("gateway.stop", {
  doc: "Stops everything until `gateway.resume`: runs end, their commands are killed on the machines, and no run starts. Messages that come meanwhile are accepted and wait. Survives restarts.",
  result: {
    ok: t.bool(),
    state: StopState,
    runs: t.array(StoppedRun, 200),
    /** Sessions that have not answered yet. They are told until they do, and no model or tool call of theirs gets through. */
    pending: t.int(),
    /** Calls and background commands of clients that were cancelled on the machines. */
    clientCalls: t.optional(t.int()),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: null },
  idempotent: true,
});
method("gateway.resume", {
  doc: "Goes on after `gateway.stop`: messages that waited are answered in their order.",
  params: {
    /** The caller knows that the home was exported. Without it, such a gateway is not resumed. */
    exported: t.optional(t.bool()),
  },
  result: {
    ok: t.bool(),
    wasStopped: t.bool(),
    /** Conversations whose run was stopped, or where something waited. */
    sessions: t.int(),
  },
  callers: ["client"],
  scope: "operate",
  audit: { target: null },
  errors: ["gateway.restored_copy", "gateway.exported"],
  idempotent: true,
});
method("gateway.status", {
  doc: "Says whether everything is stopped.",
  result: { stopped: t.optional(StopState) },
  callers: ["client"],
  scope: "read",
  audit: "none",
  idempotent: true,
});
