/**
 * Reset and compaction: how they begin, their one open effect, and how they fail. First the archive is safe, then the
 * conversation moves on (turnover.ts). Until then nothing is removed, so giving up is always possible. Pure.
 */
import type { GsvError } from "../../../ports/result.ts";
import { type Draft, appendNotice, open, settle, status } from "../draft.ts";
import type { EventOf } from "../event.ts";
import { ARCHIVE_ATTEMPTS, AUTO_RESET_PAUSE_MS, LIMITS, WAITING_MEMORIES } from "../limits.ts";
import { type ArchiveIntent, archiveEffectId, type Archiving, type CutPlan, type Thinking } from "../state.ts";
import { endByAbort } from "./ending.ts";
import { startNext } from "./idle.ts";
import { summarizeLost } from "./summarizing.ts";
import { compacted, freshStart, goOn } from "./turnover.ts";

const BUSY: GsvError = { reason: "session.busy", message: "The session is busy with an archive. Try again in a moment." };

export function resetAsked(d: Draft): void {
  const { state, at } = d;
  const { run } = state;
  if (run.phase === "archiving" && run.kind === "reset") {
    d.answer = { type: "refused", error: BUSY };
    return;
  }
  d.answer = { type: "archiving", requestId: at.freshId, waits: false };
  dropWaiting(d);
  if (run.phase === "archiving") stopCompaction(d, run, "The conversation was reset.");
  else if (run.phase !== "idle") endByAbort(d, run, "The conversation was reset.");
  state.run = { phase: "idle" };
  beginArchive(d, { kind: "reset", requestId: at.freshId, cause: "asked" });
  startNext(d);
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
  };
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
/** A stop or a reset while a compaction is made: it ends with nothing removed, and with it the run behind it. The caller goes on. */
export function stopCompaction(d: Draft, run: Archiving, why: string): void {
  settle(d, archiveEffectId(run));
  delete d.state.work;
  if (run.cause === "asked") {
    const message = `The compaction was stopped, and nothing was removed: ${why}`;
    d.ended.push({ ok: false, requestId: run.requestId, error: { reason: "session.busy", message } });
    appendNotice(d, { notice: "note", runId: "", text: message });
  }
  if (run.resume) endByAbort(d, { ...run.resume, phase: "thinking", deadline: run.deadline }, why);
}

/** From idle. With nothing to put away it is over at once, and the session is idle still. */
export function beginArchive(d: Draft, intent: ArchiveIntent): void {
  const { state } = d;
  const { messageCount } = state;
  if (intent.kind === "compact" && messageCount <= (intent.keep ?? 0)) return nothingToDo(d, intent, messageCount);
  const run = archiveOf(d, intent);
  if (intent.kind === "reset" && messageCount === 0 && !state.summary) return freshStart(d, run, undefined);
  startStage(d, run);
}
export function nothingToDo(d: Draft, { requestId }: ArchiveIntent, kept: number): void {
  d.ended.push({ ok: true, kind: "compact", requestId, trimmed: 0, kept, summarized: false });
}
/** A run needs room. False: the plan is not one for this conversation. */
export function makeRoom(d: Draft, run: Thinking, plan: CutPlan, cause: "pressure" | "overflow"): boolean {
  if (!fits(d, plan)) return false;
  const { phase: _phase, deadline: _deadline, ...resume } = run;
  const archiving = archiveOf(d, { kind: "compact", requestId: d.at.freshId, cause });
  startSummary(d, { ...archiving, resume }, plan);
  return true;
}
/** Where to cut is known: on with the summary, or, without one, with the archive. */
export function startSummary(d: Draft, run: Archiving, plan: CutPlan): void {
  const { contextFrom, count, kept, firstAt, lastAt, task } = plan;
  const { text = "", task: before } = d.state.summary ?? {};
  // A task that has left the context before stays quoted until a newer message of the user is there.
  const quoted = task ?? (plan.kept > 0 && run.resume ? before : undefined);
  d.state.work = { summary: text, memories: "", ...(quoted === undefined ? {} : { task: quoted }) };
  if (run.keep === undefined)
    status(d, run.resume?.runId ?? "", run.resume?.step ?? 0, `Making room: summarising ${count} older messages ...`);
  startStage(d, {
    ...run,
    stage: run.keep === undefined ? "summarize" : "archive",
    upto: contextFrom - 1,
    count,
    kept,
    firstAt,
    lastAt,
    cursor: run.from,
  });
}
/** It cuts inside the conversation and counts right. */
export const fits = ({ state }: Draft, { contextFrom, count, kept }: CutPlan): boolean =>
  contextFrom > state.contextFrom && contextFrom <= state.nextSeq && count > 0 && kept >= 0 && count + kept === state.messageCount;

function archiveOf(d: Draft, intent: ArchiveIntent): Archiving {
  const { state, at } = d;
  state.archiveCount += 1;
  state.work = { summary: "", memories: "" };
  return {
    ...intent,
    phase: "archiving",
    stage: intent.kind === "reset" ? "archive" : "plan",
    ordinal: state.archiveCount,
    attempt: 0,
    failures: 0,
    restarts: 0,
    from: state.contextFrom,
    upto: state.nextSeq - 1,
    count: state.messageCount,
    kept: 0,
    firstAt: at.wall,
    lastAt: at.wall,
    cursor: state.contextFrom,
    chunks: 0,
    plain: false,
    archivedAt: at.wall,
    newSessionId: at.freshId,
    deadline: at.now + LIMITS.leaseMs,
  };
}
/** The one way to an archive's effect. The one before it, if there is one, is over. */
export function startStage(d: Draft, run: Archiving, waitMs = 0): void {
  const notBefore = d.at.now + waitMs;
  const next: Archiving = { ...run, deadline: notBefore + LIMITS.leaseMs };
  d.state.run = next;
  open(d, { type: next.stage === "archive" ? "Archive" : "Summarize", id: archiveEffectId(next), notBefore });
}
/** The next stage or chunk: failures of the one before do not count against it. */
export const nextStage = (run: Archiving, stage: Archiving["stage"]): Archiving => ({
  ...run,
  stage,
  attempt: run.attempt + 1,
  failures: 0,
  restarts: 0,
});
/** The archive that this completion belongs to; undefined drops the completion. */
export function current(d: Draft, effectId: string): Archiving | undefined {
  const { run } = d.state;
  return run.phase === "archiving" && archiveEffectId(run) === effectId ? run : undefined;
}

export function archived(d: Draft, event: EventOf<"Archived">): void {
  const run = current(d, event.effectId);
  if (!run) return;
  if (event.count !== run.count) {
    failedOnce(d, run, {
      reason: "session.archive_failed",
      message: `The archive has ${event.count} messages where ${run.count} were expected, so nothing was removed. Try again.`,
    });
    return;
  }
  settle(d, event.effectId);
  if (run.kind === "compact") {
    compacted(d, run, event.key);
    goOn(d, run);
    return;
  }
  const learns = d.state.identity.isOwnersSession && run.count > 0 && waitingMemories(d) < WAITING_MEMORIES;
  if (learns) {
    status(d, "", 0, "The old conversation is archived. Picking what to remember of it ...");
    return startStage(d, { ...nextStage(run, "summarize"), archivedTo: event.key });
  }
  freshStart(d, run, event.key);
  goOn(d, run);
}
export const waitingMemories = ({ state }: Draft): number => state.outbox.filter((effect) => effect.type === "AppendMemory").length;

export function archiveFailed(d: Draft, event: EventOf<"ArchiveFailed">): void {
  const run = current(d, event.effectId);
  if (run) failedOnce(d, run, event.error);
}
/** Lost with the life that made it, or its lease ran out. Doing it again is harmless. */
export function restartArchive(d: Draft, run: Archiving): void {
  settle(d, archiveEffectId(run));
  const restarts = run.restarts + 1;
  if (restarts <= LIMITS.recoveryAttempts) return startStage(d, { ...run, restarts, attempt: run.attempt + 1 });
  if (run.stage === "summarize") return summarizeLost(d, run);
  giveUp(d, run, {
    reason: "session.archive_failed",
    message: "Archiving was interrupted too often, so nothing was removed. Try again.",
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
  startStage(d, { ...run, failures, attempt: run.attempt + 1 }, waitMs);
}
/** 1, 2, 4 s, a quarter more or less. */
export const backoff = (d: Draft, failures: number): number =>
  Math.round(LIMITS.modelBackoffMs * 2 ** (failures - 1) * (0.75 + d.at.jitter / 2));

/** Everything is as it was before. A run that needed room goes on with what there is. */
function giveUp(d: Draft, run: Archiving, error: GsvError): void {
  delete d.state.work;
  const told: GsvError = { reason: "session.archive_failed", message: error.message };
  if (!run.resume) d.ended.push({ ok: false, requestId: run.requestId, error: told });
  appendNotice(d, {
    notice: "note",
    runId: "",
    text: `The conversation was not ${run.kind === "reset" ? "reset" : "compacted"}: ${told.message}`,
    reason: told.reason,
  });
  if (run.cause !== "asked") d.state.autoResetAfter = d.at.wall + AUTO_RESET_PAUSE_MS;
  goOn(d, run);
}
