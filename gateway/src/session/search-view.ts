/** Views for the search index and for other sessions: messages as text, and the end of a run. Changes nothing. */
import { textOf } from "../ports/messages.ts";
import { searchable } from "../storage/searchable.ts";
import type { SearchRows } from "../ports/search.ts";
import type { AwayCall, RunEnd } from "../ports/session.ts";
import { isUnsure } from "../ports/taint.ts";
import { isMessageRow, type LogRow } from "./machine/log.ts";
import { activeRun, type State } from "./machine/state.ts";
import type { SessionStore } from "./store/session-store.ts";
import { machineWaits } from "./views.ts";

/** Texts of one page; the index asks for the next. */
const PAGE_CHARS = 1_048_576;

export function searchRows(state: State, store: SessionStore, afterSeq: number, limit: number): SearchRows {
  const { contextFrom, nextSeq, sessionId, run, queue, outbox } = state;
  const found: SearchRows["rows"][number][] = [];
  const from = Math.max(contextFrom, afterSeq + 1);
  let upTo = Math.max(from - 1, 0);
  let chars = 0;
  const rows = from < nextSeq ? store.rows(from, limit) : [];
  for (const row of rows) {
    upTo = row.seq;
    const message = isMessageRow(row) ? searchable(row.message) : undefined;
    if (message === undefined) continue;
    found.push({ seq: row.seq, role: message.role, at: row.at, text: message.text });
    chars += message.text.length;
    if (chars > PAGE_CHARS) break;
  }
  const whole = chars <= PAGE_CHARS && rows.length < limit;
  return {
    sessionId,
    contextFrom,
    nextSeq,
    busy: run.phase !== "idle" || queue.count > 0 || outbox.length > 0,
    rows: found,
    upTo: whole ? nextSeq - 1 : upTo,
    more: !whole,
  };
}

type Final = Extract<RunEnd, { readonly state: "final" }>;
const PAGE_ROWS = 200;
/** Rows that are looked at for the end of a run; it is asked about when it has just ended. */
const MAX_ROWS = 4_000;
export function runEnd(state: State, store: SessionStore, runId: string, wall: number): RunEnd {
  const { run } = state;
  const active = activeRun(run);
  if (active?.runId === runId) {
    const machines = machineWaits(run);
    return { state: "running", waitedMs: waitedMs(state, wall), ...(machines.length === 0 ? {} : { machines }) };
  }
  if (state.queue.count > 0 && store.queuedRun(runId) !== undefined) return { state: "queued" };
  const oldest = Math.max(store.oldestSeq(state.nextSeq), state.nextSeq - MAX_ROWS);
  for (let to = state.nextSeq; to > oldest; to -= PAGE_ROWS) {
    const from = Math.max(oldest, to - PAGE_ROWS);
    for (const row of store.rows(from, to - from).toReversed()) {
      // Its message was shown to another run, whose end is its answer.
      if (row.kind === "user" && row.steered?.runId === runId) return runEnd(state, store, row.runId, wall);
      const end = row.runId === runId ? endOf(row) : undefined;
      if (end === undefined) continue;
      const labelled = { ...end, ...(isUnsure(state.taint) ? { taint: state.taint } : {}) };
      return end.state === "final" ? { ...labelled, ...undoneCalls(store, runId, row.seq, oldest) } : labelled;
    }
  }
  return { state: "unknown" };
}
/**
 * Calls of the run that did not end well without the model's doing: those that waited for their machine in vain, for which a later call
 * that the machine ran makes up, and those of which no one knows whether they took effect.
 */
function undoneCalls(store: SessionStore, runId: string, before: number, oldest: number): Pick<Final, "away" | "unknown"> {
  const came = new Set<string>();
  const late = new Set<string>();
  const away = new Map<string, AwayCall>();
  const unknown = new Set<string>();
  const found = (): Pick<Final, "away" | "unknown"> => ({
    ...(away.size === 0 ? {} : { away: [...away.values()].toReversed() }),
    ...(unknown.size === 0 ? {} : { unknown: [...unknown].toReversed() }),
  });
  for (let to = before; to > oldest; to -= PAGE_ROWS) {
    const from = Math.max(oldest, to - PAGE_ROWS);
    for (const row of store.rows(from, to - from).toReversed()) {
      if (row.runId !== runId) continue;
      if (row.kind === "user" && row.steered === undefined) return found();
      if (row.kind === "notice" && row.lateOf !== undefined) late.add(row.lateOf);
      if (row.kind !== "toolResult") continue;
      const { toolName: tool } = row.message;
      if (row.outcome === "unknown" && !late.has(row.callId)) unknown.add(tool);
      if (row.away === undefined) {
        const [nodeId = ""] = tool.split("__");
        if (row.outcome === "ok") came.add(nodeId);
      } else if (!came.has(row.away)) away.set(row.callId, { nodeId: row.away, tool, waitedMs: row.durationMs ?? 0 });
    }
  }
  return found();
}
/** How long the run has waited for the owner and for machines. */
function waitedMs({ run, clock }: State, wall: number): number {
  const before = activeRun(run)?.waitedMs ?? 0;
  if (run.phase !== "acting" || run.waitingSince === undefined) return before;
  return before + clock.now - run.waitingSince + Math.max(0, wall - clock.wall);
}
function endOf(row: LogRow): Extract<RunEnd, { readonly state: "final" | "error" | "aborted" }> | undefined {
  if (row.kind === "assistant") {
    const costUsd = row.runUsage?.costUsd;
    const end = { state: "final", text: textOf(row.message.content), ...(costUsd === undefined ? {} : { costUsd }) } as const;
    return row.calls.length === 0 ? end : undefined;
  }
  if (row.kind !== "notice" || (row.notice !== "error" && row.notice !== "aborted")) return undefined;
  return { state: row.notice, error: row.text, ...(row.reason === undefined ? {} : { reason: row.reason }) };
}
