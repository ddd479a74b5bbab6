/** The stages of an archive: how each begins, and the one effect that it has open. PURE. */
import { backoffMs, withJitter } from "../../../../../protocol/runtime/backoff.ts";
import { type Draft, open, status, take } from "../draft.ts";
import { LIMITS } from "../limits.ts";
import { archiveEffectId } from "../ids.ts";
import type { ArchiveIntent, Archiving, CutPlan, Thinking } from "../state.ts";
import type { TransitionName } from "../transitions.ts";
import { freshStart } from "./turnover.ts";

/** From idle. An archive of nothing is over at once. */
export function beginArchive(d: Draft, name: TransitionName, intent: ArchiveIntent): void {
  const { state } = d;
  const { messageCount } = state;
  if (intent.kind === "compact" && messageCount <= (intent.keep ?? 0)) {
    if (name === "waitingCompactionBegins") take(d, "waitingCompactionDropped");
    return nothingToCompact(d, intent, messageCount);
  }
  const run = archiveOf(d, intent);
  if (messageCount === 0 && !state.summary) {
    take(d, "nothingToArchive");
    return freshStart(d, run, undefined);
  }
  startStage(d, name, run);
}
export function nothingToCompact(d: Draft, { requestId }: ArchiveIntent, kept: number): void {
  d.ended.push({ ok: true, kind: "compact", requestId, trimmed: 0, kept, summarized: false });
}
/** A run needs headroom in its context. False: the plan does not fit this conversation. */
export function makeHeadroom(d: Draft, run: Thinking, plan: CutPlan, cause: "pressure" | "overflow"): boolean {
  if (!fits(d, plan)) return false;
  const { phase: _phase, deadline: _deadline, ...resume } = run;
  const archiving = archiveOf(d, { kind: "compact", requestId: d.at.freshId, cause });
  startSummary(d, "contextCompacts", { ...archiving, resume }, plan);
  return true;
}
/** Starts the summary of a planned cut, or, without a summary, its archive. */
export function startSummary(d: Draft, name: TransitionName, run: Archiving, plan: CutPlan): void {
  const { contextFrom, count, kept, firstAt, lastAt, task } = plan;
  const { text = "", task: before } = d.state.summary ?? {};
  // A task that has left the context earlier stays quoted until the user sends a newer message.
  const quoted = task ?? (plan.kept > 0 && run.resume ? before : undefined);
  d.state.work = { summary: text, memories: "", ...(quoted === undefined ? {} : { task: quoted }) };
  if (run.keep === undefined)
    status(d, run.resume?.runId ?? "", run.resume?.step ?? 0, `Shortening the conversation: summarising ${count} older messages ...`);
  startStage(d, name, {
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
/** The plan cuts inside the conversation, and its counts are right. */
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
/** The only function that opens an archive's effect. An earlier effect must be settled. */
export function startStage(d: Draft, name: TransitionName, run: Archiving, waitMs = 0): void {
  take(d, name);
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
/** 1, 2, 4 s, a quarter more or less. */
export const backoff = (d: Draft, failures: number): number => withJitter(backoffMs(failures, LIMITS.modelBackoffMs), d.at.jitter);
