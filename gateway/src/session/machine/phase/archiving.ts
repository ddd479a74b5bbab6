/** Reset and compaction: first the archive is safe, then the conversation moves on. On failure nothing is removed. Pure. */
import type { GsvError } from "../../../ports.ts";
import { type Draft, appendNotice, open, settle, status } from "../draft.ts";
import type { EventOf } from "../event.ts";
import { ARCHIVE_ATTEMPTS, AUTO_RESET_PAUSE_MS, LIMITS, PREVIOUS_SESSIONS } from "../limits.ts";
import { type ArchiveIntent, archiveEffectId, type Archiving, NO_USAGE } from "../state.ts";
import { endByAbort } from "./ending.ts";
import { becomeIdle, startNext } from "./idle.ts";

const BUSY: GsvError = { reason: "session.busy", message: "The session is busy with an archive. Try again in a moment." };

export function resetAsked(d: Draft): void {
  const { state, at } = d;
  if (state.run.phase === "archiving") {
    d.answer = { type: "refused", error: BUSY };
    return;
  }
  d.answer = { type: "archiving", requestId: at.freshId, waits: false };
  dropWaiting(d);
  if (state.run.phase !== "idle") endByAbort(d, state.run, "The conversation was reset.");
  state.run = { phase: "idle" };
  beginArchive(d, { kind: "reset", requestId: at.freshId, cause: "asked", keep: 0 });
  startNext(d);
}
export function compactAsked(d: Draft, event: EventOf<"Compact">): void {
  const { state, at } = d;
  if (state.run.phase === "archiving" || state.afterRun) {
    d.answer = { type: "refused", error: BUSY };
    return;
  }
  const intent: ArchiveIntent = { kind: "compact", requestId: at.freshId, cause: "asked", keep: event.keep };
  const waits = state.run.phase !== "idle";
  d.answer = { type: "archiving", requestId: at.freshId, waits };
  if (waits) state.afterRun = intent;
  else {
    beginArchive(d, intent);
    startNext(d);
  }
}
/** A reset makes a compaction that still waits pointless. */
function dropWaiting(d: Draft): void {
  const { afterRun } = d.state;
  if (!afterRun) return;
  delete d.state.afterRun;
  d.ended.push({
    ok: false,
    requestId: afterRun.requestId,
    error: { reason: "session.busy", message: "The conversation was reset before it could be compacted." },
  });
}

/** From idle. With nothing to put away it is over at once, and the session is idle still. */
export function beginArchive(d: Draft, intent: ArchiveIntent): void {
  const { state, at } = d;
  const { messageCount } = state;
  if (intent.kind === "compact" && messageCount <= intent.keep) {
    d.ended.push({ ok: true, kind: "compact", requestId: intent.requestId, trimmed: 0, kept: messageCount });
    return;
  }
  state.archiveCount += 1;
  const run: Archiving = {
    ...intent,
    phase: "archiving",
    ordinal: state.archiveCount,
    attempt: 0,
    failures: 0,
    from: state.contextFrom,
    upto: state.nextSeq - 1,
    count: messageCount,
    archivedAt: at.wall,
    newSessionId: at.freshId,
    deadline: at.now + LIMITS.leaseMs,
  };
  if (messageCount === 0) return freshStart(d, run, undefined);
  attemptArchive(d, run, 0);
}
function attemptArchive(d: Draft, run: Archiving, waitMs: number): void {
  const notBefore = d.at.now + waitMs;
  const next: Archiving = { ...run, deadline: notBefore + LIMITS.leaseMs };
  d.state.run = next;
  open(d, { type: "Archive", id: archiveEffectId(next), notBefore });
}
function current(d: Draft, effectId: string): Archiving | undefined {
  const { run } = d.state;
  return run.phase === "archiving" && archiveEffectId(run) === effectId ? run : undefined;
}

export function archived(d: Draft, event: EventOf<"Archived">): void {
  const run = current(d, event.effectId);
  if (!run) return;
  const inside = event.contextFrom >= run.from && event.contextFrom <= run.upto + 1;
  const right = inside && event.count + event.kept === run.count && (run.kind === "compact" || event.kept === 0);
  if (!right) {
    failedOnce(d, run, {
      reason: "session.archive_failed",
      message: `The archive has ${event.count} messages where ${run.count - event.kept} were expected, so nothing was removed. Try again.`,
    });
    return;
  }
  settle(d, event.effectId);
  if (run.kind === "reset") freshStart(d, run, event.key);
  else compacted(d, run, event);
  becomeIdle(d);
}

function freshStart(d: Draft, run: Archiving, key: string | undefined): void {
  const { state, at } = d;
  const { sessionId: oldSessionId, usage: tokens } = state;
  state.previousSessionIds = [...state.previousSessionIds, oldSessionId].slice(-PREVIOUS_SESSIONS);
  state.sessionId = run.newSessionId;
  state.contextFrom = run.upto + 1;
  state.messageCount -= run.count;
  state.usage = NO_USAGE;
  state.lastResetAt = at.wall;
  state.updatedAt = at.wall;
  const why = { asked: "", daily: " for a new day", idle: " after a long silence" }[run.cause];
  appendNotice(d, {
    notice: "reset",
    runId: "",
    text: `A fresh conversation begins${why}. ${run.count === 0 ? "The old one was empty." : `The old one (${run.count} messages) is archived.`}`,
  });
  d.ended.push({
    ok: true,
    kind: "reset",
    requestId: run.requestId,
    oldSessionId,
    newSessionId: run.newSessionId,
    archived: run.count,
    tokens,
    ...(key === undefined ? {} : { key }),
  });
}
function compacted(d: Draft, run: Archiving, event: EventOf<"Archived">): void {
  const { state } = d;
  state.contextFrom = event.contextFrom;
  state.messageCount -= event.count;
  if (event.count > 0)
    appendNotice(d, {
      notice: "compacted",
      runId: "",
      text: `${event.count} earlier messages were archived and left the context; ${event.kept} stay.`,
    });
  d.ended.push({
    ok: true,
    kind: "compact",
    requestId: run.requestId,
    trimmed: event.count,
    kept: event.kept,
    ...(event.key === undefined ? {} : { key: event.key }),
  });
}

export function archiveFailed(d: Draft, event: EventOf<"ArchiveFailed">): void {
  const run = current(d, event.effectId);
  if (run) failedOnce(d, run, event.error);
}
/** Lost with the life that made it, or its lease ran out. Putting the same archive again is harmless. */
export function restartArchive(d: Draft, run: Archiving): void {
  if (run.attempt >= LIMITS.recoveryAttempts)
    return giveUp(d, run, {
      reason: "session.archive_failed",
      message: "Archiving was interrupted too often, so nothing was removed. Try again.",
    });
  settle(d, archiveEffectId(run));
  attemptArchive(d, { ...run, attempt: run.attempt + 1 }, 0);
}
function failedOnce(d: Draft, run: Archiving, error: GsvError): void {
  const failures = run.failures + 1;
  if (failures >= ARCHIVE_ATTEMPTS || run.attempt >= LIMITS.recoveryAttempts) return giveUp(d, run, error);
  settle(d, archiveEffectId(run));
  const waitMs = Math.round(LIMITS.modelBackoffMs * 2 ** (failures - 1) * (0.75 + d.at.jitter / 2));
  status(d, "", 0, `The transcript could not be archived yet. Trying again in ${Math.max(1, Math.round(waitMs / 1000))} s.`);
  attemptArchive(d, { ...run, failures, attempt: run.attempt + 1 }, waitMs);
}
function giveUp(d: Draft, run: Archiving, error: GsvError): void {
  settle(d, archiveEffectId(run));
  const told: GsvError = { reason: "session.archive_failed", message: error.message };
  d.ended.push({ ok: false, requestId: run.requestId, error: told });
  appendNotice(d, {
    notice: "note",
    runId: "",
    text: `The conversation was not ${run.kind === "reset" ? "reset" : "compacted"}: ${told.message}`,
    reason: told.reason,
  });
  if (run.cause !== "asked") d.state.autoResetAfter = d.at.wall + AUTO_RESET_PAUSE_MS;
  becomeIdle(d);
}
