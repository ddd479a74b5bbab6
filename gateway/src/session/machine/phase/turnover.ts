/**
 * The commit that turns a conversation over after its archive was read back: the archived rows leave the context, memories are written
 * down for the daily file, and waiting work continues. PURE.
 */
import { type Draft, appendNotice, open } from "../draft.ts";
import { LIMITS, PREVIOUS_SESSIONS } from "../limits.ts";
import { mediaEffectId, MEMORY_QUARANTINE, memoryEffectId, memoryPath } from "../ids.ts";
import { type Archiving, NO_USAGE, type Summary, type WaitingRun } from "../state.ts";
import { counted, head } from "../text.ts";
import { isForeign, taintText } from "../../../ports/taint.ts";
import type { TransitionName } from "../transitions.ts";
import { overBudget, rest } from "./ending.ts";
import { forget } from "./labels.ts";
import { askLimits } from "./limit.ts";
import { report } from "./questions.ts";
import { runBase, sameStep, think } from "./steps.ts";

export function compacted(d: Draft, run: Archiving, key: string): void {
  const { state, at } = d;
  const { work } = state;
  const old = state.summary;
  const asked = run.keep === undefined;
  const missing = run.plain ? standIn(run, key) : "";
  // The note must not be cut off.
  const text = asked
    ? [head(work?.summary ?? "", LIMITS.summaryChars - missing.length), missing].filter((part) => part !== "").join("\n\n")
    : (old?.text ?? "");
  const summary: Summary = {
    text,
    count: (old?.count ?? 0) + run.count,
    at: at.wall,
    ...(work?.task === undefined ? {} : { task: work.task }),
  };
  if (text !== "" || summary.task !== undefined) state.summary = summary;
  else delete state.summary;
  const memoriesTo = learn(d, run);
  leave(d, run);
  state.compactions += 1;
  const standing = !asked ? "" : run.plain ? "; they could not be summarised" : "; a summary stands for them";
  appendNotice(d, {
    notice: "compacted",
    runId: "",
    text: `${counted(run.count, "earlier message")} ${run.count === 1 ? "was" : "were"} archived and left the context${standing}; ${run.kept} ${run.kept === 1 ? "stays" : "stay"}.`,
    archive: { key, count: run.count },
  });
  if (run.cause === "asked")
    d.ended.push({
      ok: true,
      kind: "compact",
      requestId: run.requestId,
      trimmed: run.count,
      kept: run.kept,
      summarized: asked && !(run.plain && run.chunks === 0),
      key,
      ...(memoriesTo === undefined ? {} : { memoriesTo }),
    });
}
/** The note for the model that replaces a missing summary. */
function standIn({ count, firstAt, lastAt, chunks }: Archiving, key: string): string {
  const day = (at: number): string => new Date(at).toISOString().slice(0, 16).replace("T", " ");
  const what = chunks === 0 ? `${count} earlier messages` : `The later part of ${count} earlier messages`;
  return `[${what} (${day(firstAt)} to ${day(lastAt)} UTC) could not be summarised. Nothing is lost: they are archived in ${key}, and gsv__Search finds them.]`;
}

export function freshStart(d: Draft, run: Archiving, key: string | undefined): void {
  const { state, at } = d;
  const { sessionId: oldSessionId, usage: tokens } = state;
  const memoriesTo = learn(d, run);
  leave(d, run);
  state.previousSessionIds = [...state.previousSessionIds, oldSessionId].slice(-PREVIOUS_SESSIONS);
  state.sessionId = run.newSessionId;
  state.usage = NO_USAGE;
  state.compactions = 0;
  delete state.summary;
  forget(d, run);
  // Mode full ends with the conversation (rule PO8).
  const { mode, modeUntil: _until, ...others } = state.settings;
  if (mode === "full") state.settings = others;
  // Before its first report, the gateway has neither a mode nor a grant of the session.
  if (state.approvalRevision !== undefined) report(d);
  state.lastResetAt = at.wall;
  state.updatedAt = at.wall;
  const mediaEffect = mediaEffectId(run.ordinal);
  open(d, { type: "DeleteMedia", id: mediaEffect, before: run.archivedAt, from: state.contextFrom });
  const why = { asked: "", daily: " for a new day", idle: " after a long silence", pressure: "", overflow: "" }[run.cause];
  const learnt = run.plain ? " What to remember of it could not be picked out, because the model failed." : "";
  appendNotice(d, {
    notice: "reset",
    runId: "",
    text: `A new conversation begins${why}. ${run.count === 0 ? "The old one was empty." : `The old one (${counted(run.count, "message")}) is archived.`}${learnt}`,
    ...(key === undefined ? {} : { archive: { key, count: run.count } }),
  });
  d.ended.push({
    ok: true,
    kind: "reset",
    requestId: run.requestId,
    oldSessionId,
    newSessionId: run.newSessionId,
    archived: run.count,
    tokens,
    mediaEffect,
    ...(key === undefined ? {} : { key }),
    ...(memoriesTo === undefined ? {} : { memoriesTo }),
  });
}

function leave(d: Draft, run: Archiving): void {
  const { state } = d;
  state.contextFrom = run.upto + 1;
  state.messageCount -= run.count;
  delete state.context;
  delete state.work;
}
/** Stores the memories until the daily file has them. Returns the file's path. */
function learn(d: Draft, run: Archiving): string | undefined {
  const { work } = d.state;
  if (!work?.day || work.memories.trim() === "") return undefined;
  const id = memoryEffectId(run.ordinal);
  const { date, time } = work.day;
  d.results.push({ op: "keep", callId: id, text: `### Extracted from context compaction (${time})\n${work.memories.trim()}\n` });
  const { taint } = d.state;
  if (!isForeign(taint)) {
    open(d, { type: "AppendMemory", id, date });
    return memoryPath(date);
  }
  open(d, { type: "AppendMemory", id, date, taint });
  const text = `What was learnt waits in quarantine, because others may have written what the conversation has read (${taintText(taint)}). See it, and keep or drop it: \`gsv memory review\`.`;
  appendNotice(d, { notice: "note", runId: "", text });
  return MEMORY_QUARANTINE;
}

/** Ends the archive: its waiting run continues, or else the next waiting work. */
export function archiveOver(d: Draft, name: TransitionName, run: Archiving): void {
  rest(d, name);
  const { resume } = run;
  if (!resume) return;
  const next: WaitingRun = { ...resume, attempt: resume.attempt + 1, compactionTried: true };
  if (overBudget(d, resume, resume.step)) return askLimits(d, "runResumes", next);
  const { attempt, tries } = next;
  think(d, "runResumes", runBase(next), { ...sameStep(next), attempt, tries, waitMs: 0 });
}
