/**
 * Reset and compaction: requests, ends and failures. The archived rows leave the context (turnover.ts) only after the archive was read back.
 * Until then nothing is removed, so giving up is always possible. PURE.
 */
import { type GsvError, sentence } from "../../../ports/result.ts";
import { type Draft, appendNotice, settle, status, take } from "../draft.ts";
import type { EventOf } from "../event.ts";
import { ARCHIVE_ATTEMPTS, AUTO_RESET_PAUSE_MS, LIMITS, WAITING_MEMORIES } from "../limits.ts";
import { archiveEffectId } from "../ids.ts";
import type { ArchiveIntent, Archiving } from "../state.ts";
import { backoff, beginArchive, current, nextStage, startStage } from "./archive-stages.ts";
import { endByAbort, rest } from "./ending.ts";
import { giveWay } from "./limit.ts";
import { summarizeLost } from "./summarizing.ts";
import { archiveOver, compacted, freshStart } from "./turnover.ts";

const TRY_AGAIN = "Try again in a moment.";
const BUSY: GsvError = { reason: "session.busy", message: "The session is busy with an archive.", hint: TRY_AGAIN };

export function resetAsked(d: Draft): void {
  const { state, at } = d;
  const { run } = state;
  if (run.phase === "archiving" && run.kind === "reset") {
    d.answer = { type: "refused", error: BUSY };
    return;
  }
  d.answer = { type: "archiving", requestId: at.freshId, waits: false };
  dropWaiting(d, "The conversation was reset before it could be compacted.");
  if (run.phase === "archiving") stopCompaction(d, run, "The conversation was reset.");
  else if (run.phase !== "idle") {
    take(d, "runStopped");
    endByAbort(d, run, "The conversation was reset.");
  }
  beginArchive(d, "resetBegins", { kind: "reset", requestId: at.freshId, cause: "asked" });
}
export function compactAsked(d: Draft, event: EventOf<"Compact">): void {
  const { state, at } = d;
  if (state.run.phase === "archiving" || state.afterRun) {
    d.answer = { type: "refused", error: BUSY };
    return;
  }
  const intent: ArchiveIntent = {
    kind: "compact",
    requestId: at.freshId,
    cause: "asked",
    ...(event.keep === undefined ? {} : { keep: event.keep }),
    ...(event.runId === undefined ? {} : { askedAs: event.runId }),
  };
  if (state.run.phase === "paused") giveWay(d, state.run, "a compaction began");
  const waits = state.run.phase !== "idle";
  d.answer = { type: "archiving", requestId: at.freshId, waits };
  if (!waits) return beginArchive(d, "compactionBegins", intent);
  take(d, "compactionWaits");
  state.afterRun = intent;
}
/** A compaction that still waits: a reset makes it pointless, and an abort may name it. */
export function dropWaiting(d: Draft, message: string): void {
  const { afterRun } = d.state;
  if (!afterRun) return;
  delete d.state.afterRun;
  d.ended.push({
    ok: false,
    requestId: afterRun.requestId,
    error: { reason: "session.busy", message },
  });
}
/** A stop or a reset while a compaction is made: it ends with nothing removed, and with it the run behind it. */
export function stopCompaction(d: Draft, run: Archiving, why: string): void {
  rest(d, "compactionStopped");
  settle(d, archiveEffectId(run));
  delete d.state.work;
  if (run.cause === "asked") {
    const message = `The compaction was stopped, and nothing was removed: ${why}`;
    d.ended.push({ ok: false, requestId: run.requestId, error: { reason: "session.busy", message } });
    appendNotice(d, { notice: "note", runId: "", text: message });
  }
  if (run.resume) endByAbort(d, { ...run.resume, phase: "thinking", deadline: run.deadline }, why);
}

export function archived(d: Draft, event: EventOf<"Archived">): void {
  const run = current(d, event.effectId);
  if (!run) return;
  if (event.count !== run.count) {
    failedOnce(d, run, {
      reason: "session.archive_failed",
      message: `The archive has ${event.count} messages where ${run.count} were expected, so nothing was removed.`,
      hint: TRY_AGAIN,
    });
    return;
  }
  settle(d, event.effectId);
  if (run.kind === "compact") {
    compacted(d, run, event.key);
    return archiveOver(d, "compactionDone", run);
  }
  const learns = d.state.identity.isOwnersSession && run.count > 0 && waitingMemories(d) < WAITING_MEMORIES;
  if (learns) {
    status(d, "", 0, "The old conversation is archived. Picking what to remember of it ...");
    return startStage(d, "resetArchived", { ...nextStage(run, "summarize"), archivedTo: event.key });
  }
  freshStart(d, run, event.key);
  archiveOver(d, "resetDone", run);
}
const waitingMemories = ({ state }: Draft): number => state.outbox.filter((effect) => effect.type === "AppendMemory").length;

export function archiveFailed(d: Draft, event: EventOf<"ArchiveFailed">): void {
  const run = current(d, event.effectId);
  if (run) failedOnce(d, run, event.error);
}
/** The effect was lost with its incarnation, or its lease expired. Repeating it is harmless. */
export function restartArchive(d: Draft, run: Archiving): void {
  settle(d, archiveEffectId(run));
  const restarts = run.restarts + 1;
  if (restarts <= LIMITS.recoveryAttempts) return startStage(d, "archiveRestarted", { ...run, restarts, attempt: run.attempt + 1 });
  if (run.stage === "summarize") return summarizeLost(d, run);
  giveUp(d, run, {
    reason: "session.archive_failed",
    message: "Archiving was interrupted too often, so nothing was removed.",
    hint: TRY_AGAIN,
  });
}
function failedOnce(d: Draft, run: Archiving, error: GsvError): void {
  settle(d, archiveEffectId(run));
  const failures = run.failures + 1;
  if (failures >= ARCHIVE_ATTEMPTS) return giveUp(d, run, error);
  const waitMs = backoff(d, failures);
  status(
    d,
    run.resume?.runId ?? "",
    run.resume?.step ?? 0,
    `The transcript could not be archived yet. Trying again in ${Math.max(1, Math.round(waitMs / 1000))} s.`,
  );
  startStage(d, "archiveRetried", { ...run, failures, attempt: run.attempt + 1 }, waitMs);
}
/** Leaves the conversation as it was. A run that needed headroom continues without it. */
function giveUp(d: Draft, run: Archiving, error: GsvError): void {
  delete d.state.work;
  const told: GsvError = { ...error, reason: "session.archive_failed" };
  if (!run.resume) d.ended.push({ ok: false, requestId: run.requestId, error: told });
  appendNotice(d, {
    notice: "note",
    runId: "",
    text: `The conversation was not ${run.kind === "reset" ? "reset" : "compacted"}: ${sentence(told)}`,
    reason: told.reason,
  });
  if (run.cause !== "asked") d.state.autoResetAfter = d.at.wall + AUTO_RESET_PAUSE_MS;
  archiveOver(d, "archiveGivenUp", run);
}
