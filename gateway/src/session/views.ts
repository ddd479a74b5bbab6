/** The session's answers to clients that read. Reads state and log; changes nothing. */
import { modeAt } from "./mode.ts";
import { LIMITS } from "../../../protocol/gen/limits.ts";
import {
  asCallId,
  asNodeId,
  asRunId,
  asSessionKey,
  asToolName,
  type MachineWait,
  type SessionGetResult,
  type SessionHistoryResult,
  type SessionMessagesResult,
  type SessionPreviewResult,
  type SessionResultResult,
  type SessionStatsResult,
  type SessionSubscribeResult,
} from "../../../protocol/gen/types.ts";
import { isAwaitingNode, nodeOf } from "../calls/open-call.ts";
import { textOf } from "../ports/messages.ts";
import { type SessionNews, sessionSeqOf } from "../ports/gateway.ts";
import type { Result } from "../ports/result.ts";
import { fitting } from "../storage/shorten.ts";
import { rowEvents } from "./events.ts";
import { CALLS_PER_REPLY } from "./machine/limits.ts";
import type { LogRow, NoticeKind, NoticeRow } from "./machine/log.ts";
import { activeRun, shownState, type State } from "./machine/state.ts";
import { openCodes } from "./machine/phase/questions.ts";
import { resultPath } from "./machine/ids.ts";
import { head, jsonBytes } from "./machine/text.ts";
import type { ContextSize } from "./model-view.ts";
import type { Delta } from "./publisher.ts";
import { effectivePolicy } from "./reset-policy.ts";
import { shownText } from "./shown-output.ts";
import { summaryMessage } from "./view.ts";
import type { SessionStore } from "./store/session-store.ts";
import type { ResetPolicyConfig } from "../../../protocol/gen/types.ts";

/** Limit for the content of an answer, so that the answer fits a frame. */
const ANSWER_BYTES = LIMITS.frameBytes - 65_536;
const ROWS_AT_ONCE = 500;

export function getView(state: State, configured: ResetPolicyConfig | undefined, context: ContextSize): SessionGetResult {
  return {
    sessionId: state.sessionId,
    sessionKey: asSessionKey(state.identity.key),
    createdAt: state.createdAt,
    updatedAt: state.updatedAt,
    messageCount: state.messageCount,
    tokens: state.usage,
    settings: state.settings,
    resetPolicy: effectivePolicy(state.resetPolicy, configured),
    ...(state.lastResetAt === undefined ? {} : { lastResetAt: state.lastResetAt }),
    previousSessionIds: [...state.previousSessionIds],
    ...(state.label === undefined ? {} : { label: state.label }),
    state: shownState(state.run),
    ...waitingFor(state.run),
    lastSeq: state.nextSeq - 1,
    ...(context.tokens === undefined ? {} : { contextTokens: Math.round(context.tokens) }),
    ...(context.window === undefined ? {} : { contextWindow: context.window }),
    ...(context.model === undefined ? {} : { model: context.model }),
    compactions: state.compactions,
  };
}
export function statsView(state: State, wall: number): SessionStatsResult {
  const { run, settings } = state;
  const active = activeRun(run);
  const [mode, until] = [modeAt(settings, wall), settings.modeUntil];
  return {
    sessionKey: asSessionKey(state.identity.key),
    sessionId: state.sessionId,
    messageCount: state.messageCount,
    tokens: state.usage,
    createdAt: state.createdAt,
    updatedAt: state.updatedAt,
    uptime: Math.max(0, wall - state.createdAt),
    isProcessing: run.phase !== "idle",
    queueSize: state.queue.count,
    state: shownState(run),
    ...(mode === undefined ? {} : { mode, ...(until === undefined ? {} : { modeUntil: until }) }),
    ...waitingFor(run),
    ...(active ? { runId: asRunId(active.runId), steps: active.step } : {}),
    runsCompleted: state.runCount - (active ? 1 : 0),
  };
}
export function waitingFor(run: State["run"]): { readonly questions?: string[]; readonly machines?: MachineWait[] } {
  const codes = openCodes(run);
  const machines = machineWaits(run);
  return { ...(codes.length === 0 ? {} : { questions: [...codes] }), ...(machines.length === 0 ? {} : { machines: [...machines] }) };
}
/** The calls that wait for their machines. */
export function machineWaits(run: State["run"]): readonly MachineWait[] {
  if (run.phase !== "acting") return [];
  return run.calls.filter(isAwaitingNode).flatMap((call) => {
    const nodeId = nodeOf(call);
    const { name, since, expiresAt: until } = call;
    return nodeId === undefined ? [] : [{ nodeId: asNodeId(nodeId), tool: asToolName(name.slice(0, 192)), since, until }];
  });
}
export const historyView = (state: State): SessionHistoryResult => ({
  sessionKey: asSessionKey(state.identity.key),
  currentSessionId: state.sessionId,
  previousSessionIds: [...state.previousSessionIds],
});

/** Notes that a reader of the conversation gets. The others say what the messages show, or what the next message changed. */
const SHOWN_NOTES: ReadonlySet<NoticeKind> = new Set<NoticeKind>(["note", "late", "error", "aborted"]);
const isShown = (row: LogRow): boolean => row.kind !== "notice" || SHOWN_NOTES.has(row.notice);
const shownNote = ({ notice, text, at, isAnswer }: NoticeRow): object => ({
  role: "note",
  kind: notice,
  content: text,
  timestamp: at,
  ...(isAnswer ? { isAnswer } : {}),
});
/** A message with the files that went out with it, or a note, as clients show it. */
function shownRow(row: LogRow): object {
  if (row.kind === "notice") return shownNote(row);
  if (row.kind !== "assistant" || row.files === undefined) return row.message;
  return { ...row.message, content: [...row.message.content, ...row.files] };
}

/** The last messages, as many of them as fit an answer. */
export function previewView(state: State, rows: readonly LogRow[], limit: number): SessionPreviewResult {
  const messages: unknown[] = [];
  let bytes = 0;
  for (const row of rows.filter(isShown).slice(-limit).reverse()) {
    const message = shownRow(row);
    bytes += jsonBytes(message);
    if (bytes > ANSWER_BYTES && messages.length > 0) break;
    messages.unshift(message);
  }
  return { sessionKey: asSessionKey(state.identity.key), sessionId: state.sessionId, messageCount: state.messageCount, messages };
}

/** What a call of the current conversation gave. */
export function resultView(state: State, rows: Iterable<LogRow>, callId: string): Result<SessionResultResult> {
  for (const row of rows) {
    if (row.kind !== "toolResult" || row.callId !== callId) continue;
    const text = textOf(row.message.content);
    const path = resultPath(callId);
    return {
      ok: true,
      value: {
        sessionKey: asSessionKey(state.identity.key),
        callId: asCallId(callId),
        name: head(row.message.toolName, 192),
        outcome: row.outcome,
        text: shownText(row.message.toolName, text),
        ...(text.includes(`path "${path}"`) ? { path } : {}),
      },
    };
  }
  return {
    ok: false,
    error: {
      reason: "run.not_found",
      message: "No call of the current conversation has this id and a result.",
      hint: "Older ones are in the transcripts: `gsv session history`.",
    },
  };
}

/**
 * A page of the current conversation, oldest first; the first is the summary, when a compaction left one in the place of older
 * messages. One message that fits no answer is shortened, visibly.
 */
export function messagesView(state: State, rows: readonly LogRow[], offset: number, limit: number): SessionMessagesResult {
  const all = [...(state.summary ? [summaryMessage(state.summary)] : []), ...rows.filter(isShown).map(shownRow)];
  const messages: unknown[] = [];
  let bytes = 0;
  for (const message of all.slice(offset, offset + limit)) {
    const shown = fitting(message, ANSWER_BYTES);
    bytes += shown.bytes;
    if (bytes > LIMITS.pageBytes && messages.length > 0) break;
    messages.push(shown.message);
  }
  const next = offset + messages.length;
  return {
    sessionKey: asSessionKey(state.identity.key),
    sessionId: state.sessionId,
    messages,
    offset,
    ...(next < all.length ? { nextOffset: next } : {}),
    total: all.length,
  };
}

const TOO_OLD: Result<never> = {
  ok: false,
  error: {
    reason: "session.snapshot_required",
    message: "The events asked for are too old or too many to replay.",
    hint: "Load the history with session.preview and follow from its end.",
  },
};
/** Log events after `afterSeq`, all of them or none: a gap would be worse than asking again. */
export function eventsView(
  state: State,
  store: SessionStore,
  afterSeq: number | undefined,
  live: Delta | undefined,
): Result<SessionSubscribeResult> {
  const { key } = state.identity;
  const { run } = state;
  const events: SessionNews[] = [];
  if (afterSeq !== undefined) {
    if (afterSeq >= state.nextSeq) return TOO_OLD;
    // A row's later events have numbers of their own, so the row that holds the next one may begin before it.
    const oldest = store.oldestSeq(state.nextSeq);
    if (afterSeq + 1 < oldest) return TOO_OLD;
    let bytes = 0;
    for (let from = Math.max(oldest, afterSeq + 1 - ROW_SPAN); from < state.nextSeq; ) {
      const rows = store.rows(from, ROWS_AT_ONCE);
      const last = rows.at(-1);
      if (!last) break;
      for (const news of rows.flatMap((row) => rowEvents(key, row))) {
        if ((sessionSeqOf(news) ?? 0) <= afterSeq) continue;
        bytes += jsonBytes(news);
        if (bytes > ANSWER_BYTES || events.length >= 2 * LIMITS.eventRing) return TOO_OLD;
        events.push(news);
      }
      from = last.seq + 1;
    }
  }
  const under = activeRun(run);
  const active = under ? { runId: asRunId(under.runId), step: under.step } : {};
  const shown =
    run.phase === "thinking" ? { attempt: run.attempt, ...(live === undefined || live.text === "" ? {} : { text: live.text }) } : {};
  return {
    ok: true,
    value: { sessionKey: asSessionKey(key), seq: state.nextSeq - 1, events, state: shownState(run), ...active, ...shown },
  };
}
/** No row takes more numbers than an answer with the most calls. */
const ROW_SPAN = CALLS_PER_REPLY + 1;
