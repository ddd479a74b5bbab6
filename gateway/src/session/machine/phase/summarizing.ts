/**
 * The stages of an archive that ask the model: the cut, the rolling summary, the memories. Each chunk is a commit of its own, so that a
 * crash repeats one call at most. A failing model never stops a compaction or a reset. PURE.
 */
import { type Draft, addUsage, countSpent, countUsage, settle, status } from "../draft.ts";
import type { EventOf } from "../event.ts";
import { LIMITS, SUMMARY_ATTEMPTS } from "../limits.ts";
import type { Archiving } from "../state.ts";
import { head } from "../text.ts";
import type { Usage } from "../../../../../protocol/gen/types.ts";
import { backoff, current, fits, nextStage, nothingToCompact, startStage, startSummary } from "./archive-stages.ts";
import { archiveOver, freshStart } from "./turnover.ts";

export function planned(d: Draft, event: EventOf<"Planned">): void {
  const run = current(d, event.effectId);
  if (run?.stage !== "plan") return;
  settle(d, event.effectId);
  if (event.plan && fits(d, event.plan))
    return startSummary(d, "cutPlanned", { ...run, attempt: run.attempt + 1, restarts: 0 }, event.plan);
  delete d.state.work;
  nothingToCompact(d, run, d.state.messageCount);
  archiveOver(d, "nothingToCut", run);
}

export function summarized(d: Draft, event: EventOf<"Summarized">): void {
  const run = current(d, event.effectId);
  if (run?.stage !== "summarize") return;
  settle(d, event.effectId);
  countSpent(d, event.spent);
  const { work } = d.state;
  d.state.work = {
    ...work,
    summary: head(event.summary, LIMITS.summaryChars),
    memories: head(event.memories, LIMITS.memoriesChars),
    ...(event.day ? { day: event.day } : {}),
  };
  const further = event.cursor > run.cursor;
  const cursor = Math.min(run.upto + 1, further ? event.cursor : run.upto + 1);
  const chunks = run.chunks + 1;
  const went: Archiving = { ...spent(d, run, event.usage), cursor, chunks, plain: !further };
  if (cursor > run.upto) return summaryDone(d, went);
  if (chunks >= LIMITS.compactionChunks) return summaryDone(d, { ...went, plain: true });
  startStage(d, "chunkSummarized", nextStage(went, "summarize"));
}

export function summarizeFailed(d: Draft, event: EventOf<"SummarizeFailed">): void {
  const before = current(d, event.effectId);
  if (before?.stage !== "summarize") return;
  settle(d, event.effectId);
  countSpent(d, event.spent);
  const failures = before.failures + 1;
  const run: Archiving = { ...spent(d, before, event.usage), failures };
  if (!event.retryable || failures >= SUMMARY_ATTEMPTS) return summaryDone(d, { ...run, plain: true });
  const waitMs = backoff(d, failures);
  status(
    d,
    run.resume?.runId ?? "",
    run.resume?.step ?? 0,
    `${event.error.message} Trying to summarise again in ${Math.max(1, Math.round(waitMs / 1000))} s.`,
  );
  startStage(d, "summaryRetried", { ...run, attempt: run.attempt + 1 }, waitMs);
}
/** Restarted too often: a note takes the place of the summary. Its effect is settled. */
export function summarizeLost(d: Draft, run: Archiving): void {
  summaryDone(d, { ...run, plain: true });
}

/** Counts the tokens of a summary, in the session and in the run that waits for it. */
function spent(d: Draft, run: Archiving, usage: Usage | undefined): Archiving {
  if (usage) countUsage(d, usage);
  const { resume } = run;
  if (!resume) return run;
  return { ...run, resume: { ...resume, progressAt: d.at.now, ...(usage ? { spent: addUsage(resume.spent, usage) } : {}) } };
}
function summaryDone(d: Draft, run: Archiving): void {
  if (run.kind === "compact") return startStage(d, "summaryDone", nextStage(run, "archive"));
  freshStart(d, run, run.archivedTo);
  archiveOver(d, "resetDone", run);
}
