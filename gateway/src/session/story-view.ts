/**
 * The story of one run as the session's log tells it. Reads the log; changes nothing. What the policy decided is in the gateway's audit,
 * which the gateway adds.
 */
import {
  asCallId,
  asNodeId,
  asRunId,
  asSessionKey,
  asToolName,
  type StoryCall,
  type StoryFailed,
  type StorySent,
  type StoryStep,
  type Usage,
} from "../../../protocol/gen/types.ts";
import { causeText } from "../ports/origin.ts";
import { failure, type Result } from "../ports/result.ts";
import type { RunStory, StoryWanted } from "../ports/session.ts";
import type { AssistantRow, FailedCall, LogRow, NoticeRow, SentCall, ToolResultRow } from "./machine/log.ts";
import { activeRun, type State } from "./machine/state.ts";
import { commandEnd } from "./events.ts";
import { waitingFor } from "./views.ts";
import type { SessionStore } from "./store/session-store.ts";

const ROWS_AT_ONCE = 100;
/** Answers of the model that are told, the last ones of the run. */
const MAX_STEPS = 200;
const MAX_TEXT_CHARS = 4_096;

export function storyOf(state: State, store: SessionStore, wanted: StoryWanted): Result<RunStory> {
  const runId = runOf(state, store, wanted);
  return storyIn(state, runId, runId === undefined ? [] : rowsOf(state, store, runId));
}
/** `rows`: those of the run. */
export function storyIn(state: State, runId: string | undefined, rows: readonly LogRow[]): Result<RunStory> {
  const [first] = rows;
  if (runId === undefined || first === undefined) return failure("run.not_found", "The log of this conversation has no such run.");
  const answers = rows.filter((row): row is AssistantRow => row.kind === "assistant");
  const cause = rows.find((row) => row.kind === "user");
  const end = endOf(state, runId, rows);
  const atEnd = failedAtEnd(state, runId, rows);
  // Paid for, too: a call that got no answer, or whose answer was refused.
  const failed = [...answers.flatMap((row) => row.failed ?? []), ...(atEnd ?? [])];
  return {
    ok: true,
    value: {
      sessionKey: asSessionKey(state.identity.key),
      runId: asRunId(runId),
      ...(cause?.kind === "user" ? { origin: causeText(cause.origin).slice(0, 256) } : {}),
      startedAt: first.at,
      ...end,
      usage: sumOf([...answers.map(({ message }) => message.usage), ...failed.flatMap(({ usage }) => usage ?? [])]),
      ...(atEnd === undefined ? {} : { failed: atEnd.map(failedOf) }),
      steps: answers.slice(-MAX_STEPS).map((row) => stepOf(state, row, rows)),
      left: Math.max(0, answers.length - MAX_STEPS),
    },
  };
}

/** The rows of a run. Reads the log from its end to the answer of the run before: the answers of runs are never mixed. */
export function rowsOf(state: State, store: SessionStore, runId: string): readonly LogRow[] {
  const rows: LogRow[] = [];
  let isReached = false;
  for (const row of logBackwards(state, store)) {
    if (row.runId === runId) {
      rows.push(row);
      // A late result stands behind the run, among the rows of others.
      isReached ||= !(row.kind === "notice" && row.notice === "late");
    } else if (isReached && row.kind === "assistant") break;
  }
  return rows.reverse();
}
function* logBackwards(state: State, store: SessionStore): Generator<LogRow> {
  const oldest = store.oldestSeq(state.nextSeq);
  for (let to = state.nextSeq; to > oldest; ) {
    const from = Math.max(oldest, to - ROWS_AT_ONCE);
    yield* store
      .rows(from, ROWS_AT_ONCE)
      .filter(({ seq }) => seq < to)
      .reverse();
    to = from;
  }
}
/** A run by its id, by one of its calls, or the last one. */
function runOf(state: State, store: SessionStore, { runId, callId }: StoryWanted): string | undefined {
  if (runId !== undefined) return runId;
  for (const row of logBackwards(state, store)) {
    if (row.runId === "" || (row.kind !== "assistant" && (row.kind !== "user" || callId !== undefined))) continue;
    if (callId === undefined || (row.kind === "assistant" && row.calls.some((call) => call.callId === callId))) return row.runId;
  }
  return undefined;
}

const isEnd = (row: LogRow): row is NoticeRow => row.kind === "notice" && (row.notice === "error" || row.notice === "aborted");
function endOf(
  state: State,
  runId: string,
  rows: readonly LogRow[],
): Pick<RunStory, "end" | "endedAt" | "error" | "machines" | "questions"> {
  const last = rows.findLast((row) => isEnd(row) || (row.kind === "assistant" && row.calls.length === 0));
  const isActive = activeRun(state.run)?.runId === runId;
  if (last === undefined || isActive) return { end: "open", ...(isActive ? waitingFor(state.run) : {}) };
  if (!isEnd(last)) return { end: "final", endedAt: last.at };
  return { end: last.notice === "aborted" ? "aborted" : "error", endedAt: last.at, error: last.text.slice(0, MAX_TEXT_CHARS) };
}

function stepOf(state: State, row: AssistantRow, rows: readonly LogRow[]): StoryStep {
  const { step, at, message } = row;
  const before = rows.findLast((other) => other.seq < row.seq && (other.kind === "user" || other.kind === "toolResult"));
  return {
    step,
    at,
    ms: Math.max(0, at - (before?.at ?? at)),
    provider: message.provider.slice(0, 128),
    model: message.model.slice(0, 256),
    usage: message.usage,
    ...(row.sent === undefined ? {} : { sent: sentOf(row.sent) }),
    ...(row.failed === undefined ? {} : { failed: row.failed.map(failedOf) }),
    calls: row.calls.map(({ callId, name }) => callOf(state, callId, name, rows)),
  };
}
const sentOf = ({ at, provider, model, layers, tools }: SentCall): StorySent => ({
  at,
  provider: provider.slice(0, 128),
  model: model.slice(0, 256),
  layers: [...layers],
  tools,
});
const failedOf = ({ at, reason, usage, sent }: FailedCall): StoryFailed => ({
  at,
  reason: reason.slice(0, 128),
  ...(usage === undefined ? {} : { usage }),
  ...(sent === undefined ? {} : { sent: sentOf(sent) }),
});
/** The failed calls of the step that the run is in now, or has ended in. */
function failedAtEnd({ run }: State, runId: string, rows: readonly LogRow[]): readonly FailedCall[] | undefined {
  const waiting = run.phase === "archiving" ? run.resume : run.phase === "thinking" || run.phase === "paused" ? run : undefined;
  return waiting?.runId === runId ? waiting.failed : rows.findLast(isEnd)?.failed;
}
function callOf({ run }: State, callId: string, name: string, rows: readonly LogRow[]): StoryCall {
  const result = rows.find((row): row is ToolResultRow => row.kind === "toolResult" && row.callId === callId);
  const question = rows.findLast((row) => row.kind === "notice" && row.question?.callId === callId);
  const open = run.phase === "acting" ? run.calls.find((call) => call.callId === callId) : undefined;
  const code = question?.kind === "notice" ? question.question?.code : undefined;
  const why = notMade(result) ?? (open?.status === "awaiting_approval" ? open.approval.why : undefined);
  return {
    callId: asCallId(callId),
    tool: asToolName(name.slice(0, 192)),
    ...(open?.target.kind === "node" ? { nodeId: asNodeId(open.target.nodeId) } : {}),
    ...(open?.status === "awaiting_approval" ? { decision: "waits" as const, rule: open.approval.rule.slice(0, 1024) } : {}),
    ...(why === undefined ? {} : { why: why.slice(0, MAX_TEXT_CHARS) }),
    ...(code === undefined ? {} : { code }),
    ...(result === undefined ? {} : { outcome: result.outcome, ...commandEnd(result) }),
    ...(result?.reason === undefined ? {} : { reason: result.reason.slice(0, 128) }),
    ...(result?.durationMs === undefined ? {} : { durationMs: result.durationMs }),
    ...(result === undefined ? {} : { endedAt: result.at }),
  };
}
/** The text of a result that the gateway itself gave, because the call was not made. Results of tools are not part of the story. */
function notMade(result: ToolResultRow | undefined): string | undefined {
  if (result?.reason === undefined || !/^(?:policy|approval|auth)\./.test(result.reason)) return undefined;
  const [block] = result.message.content;
  return block?.type === "text" ? block.text : undefined;
}

function sumOf(usages: readonly Usage[]): Usage {
  const sum = (of: (usage: Usage) => number | undefined): number => usages.reduce((total, usage) => total + (of(usage) ?? 0), 0);
  const has = (of: (usage: Usage) => number | undefined): boolean => usages.some((usage) => of(usage) !== undefined);
  return {
    input: sum(({ input }) => input),
    output: sum(({ output }) => output),
    total: sum(({ total }) => total),
    ...(has(({ cacheRead }) => cacheRead) ? { cacheRead: sum(({ cacheRead }) => cacheRead) } : {}),
    ...(has(({ cacheWrite }) => cacheWrite) ? { cacheWrite: sum(({ cacheWrite }) => cacheWrite) } : {}),
    ...(has(({ costUsd }) => costUsd) ? { costUsd: sum(({ costUsd }) => costUsd) } : {}),
  };
}
