/**
 * The invariants after every commit. Checked inside the transaction: a step that breaks one is rolled back, because a wrong state would
 * stay. PURE; reports violations, never repairs.
 */
import { isAwaitingNode, isHeldBack, isRepeatable, type OpenCall } from "../../calls/open-call.ts";
import type { Step } from "./draft.ts";
import type { Effect, EffectOf } from "./effect.ts";
import { CLOSED_CALLS, LIMITS, OUTBOX_EFFECTS } from "./limits.ts";
import { hasEvent, isMessageRow, type LogRow, seqSpan } from "./log.ts";
import { isAbove, OWNER } from "../../ports/taint.ts";
import { archiveEffectId, dispatchEffectId, modelEffectId } from "./ids.ts";
import type { State } from "./state.ts";

export class InvariantError extends Error {
  override readonly name = "InvariantError";
}
function must(condition: boolean, what: () => string): void {
  if (!condition) throw new InvariantError(what());
}
const ofType = <T extends Effect["type"]>(outbox: readonly Effect[], type: T): readonly EffectOf<T>[] =>
  outbox.filter((effect): effect is EffectOf<T> => effect.type === type);

/** Throws InvariantError. */
export function checkStep(before: State, step: Step): void {
  checkState(step.state);
  checkRows(before, step);
  checkLabel(before, step);
}
/** [TA2] The label falls only with a fresh conversation or by the owner's word, and is never below that of a new row. */
function checkLabel(before: State, { cause, state, append }: Step): void {
  const { label } = state.taint ?? OWNER;
  const mayFall = cause === "Trusted" || state.sessionId !== before.sessionId;
  must(mayFall || !isAbove(before.taint?.label ?? "owner", label), () => `the label fell from ${before.taint?.label} to ${label}`);
  for (const row of append)
    if (row.kind !== "assistant" && row.taint !== undefined)
      must(!isAbove(row.taint, label), () => `a row of ${row.taint} in a conversation of ${label}`);
}

export function checkState(state: State): void {
  const { run, outbox, queue } = state;
  const ids = new Set(outbox.map((effect) => effect.id));
  must(ids.size === outbox.length, () => "two open effects have the same id");
  must(outbox.length <= OUTBOX_EFFECTS, () => `${outbox.length} effects are open at once`);
  const models = ofType(outbox, "CallModel");
  must(models.length === (run.phase === "thinking" ? 1 : 0), () => `${run.phase} with ${models.length} model calls`);
  if (run.phase === "thinking") must(models[0]?.id === modelEffectId(run), () => "thinking about another call than the open one");
  const archives = [...ofType(outbox, "Archive"), ...ofType(outbox, "Summarize")];
  must(archives.length === (run.phase === "archiving" ? 1 : 0), () => `${run.phase} with ${archives.length} archives`);
  must(
    (state.work !== undefined) === (run.phase === "archiving"),
    () => `${run.phase} ${state.work ? "with" : "without"} work on an archive`,
  );
  if (run.phase === "archiving") {
    must(archives[0]?.id === archiveEffectId(run), () => "archiving something else than the open effect");
    must((archives[0]?.type === "Archive") === (run.stage === "archive"), () => `${run.stage} with ${archives[0]?.type ?? "nothing"}`);
    must(run.from === state.contextFrom && run.upto < state.nextSeq, () => "archiving rows that are not the beginning of the conversation");
    must(run.cursor >= run.from && run.cursor <= run.upto + 1, () => "summarising outside of what is archived");
    must(run.stage === "plan" || run.count + run.kept === state.messageCount, () => "the archive and what stays are not the conversation");
    must(run.kind === "compact" || (run.kept === 0 && !run.resume), () => "a reset that keeps something");
  }
  const dispatches = ofType(outbox, "DispatchTool");
  if (run.phase !== "acting") must(dispatches.length === 0, () => `${run.phase} with open calls`);
  else {
    must(run.calls.length > 0, () => "acting without a call");
    must(run.calls.length <= LIMITS.toolCallsPerStep, () => `${run.calls.length} open calls`);
    must(new Set(run.calls.map((call) => call.callId)).size === run.calls.length, () => "two open calls have the same id");
    for (const call of run.calls) {
      must(
        ids.has(dispatchEffectId(run, call)) === hasDispatch(call),
        () => `the call ${call.callId} is ${call.status}, and its effect is not`,
      );
      must(call.status !== "planned" || !isRepeatable(call), () => `the call ${call.callId} may be handed over again, yet it is planned`);
      must(
        call.status !== "in_grace" || call.target.kind === "node",
        () => `the call ${call.callId} waits for a node that it does not have`,
      );
    }
    must(dispatches.length === run.calls.filter(hasDispatch).length, () => "an effect without an open call");
    must(Number.isFinite(run.deadline), () => "acting without a deadline");
    const codes = run.calls.flatMap((call) => (call.status === "awaiting_approval" ? [call.approval.code] : []));
    must(new Set(codes).size === codes.length, () => "two questions have the same code");
    must(codes.length <= LIMITS.approvalsOpen, () => `${codes.length} questions are open`);
    const heldBack = run.calls.filter(isHeldBack).length;
    must(heldBack > 0 === (run.waitingSince !== undefined), () => `${heldBack} calls are held back, and the wait is not counted`);
    for (const call of run.calls.filter(isAwaitingNode))
      must(call.target.kind === "node", () => `the call ${call.callId} waits for a machine that it does not have`);
  }
  const reports = ofType(outbox, "AwaitNodes");
  must(reports.length <= 1, () => "more than one report of calls that wait for machines");
  must(
    reports.length === 1 || run.phase !== "acting" || !run.calls.some(isAwaitingNode),
    () => "a call waits for its machine without a report",
  );
  if (run.phase === "paused") {
    must(Number.isFinite(run.deadline), () => "paused without a deadline");
    must(!(state.questions ?? []).some(({ code }) => code === run.question.code), () => "the question of a paused run has ended");
    must(state.held !== true && state.afterRun === undefined, () => "paused while something else was asked for");
  }
  if (run.phase === "idle") {
    must(queue.count === 0 || state.held === true, () => `idle while ${queue.count} messages wait`);
    must(state.afterRun === undefined || state.held === true, () => "idle while a compaction waits");
  }
  must(
    queue.count >= 0 && queue.count <= LIMITS.queueMessages && queue.bytes >= 0 && queue.bytes <= LIMITS.queueBytes,
    () => `the queue is ${queue.count} messages and ${queue.bytes} bytes`,
  );
  must((queue.count === 0) === (queue.bytes === 0), () => "the queue's size and count differ");
  must(ofType(outbox, "Deliver").length <= 1, () => "more than one delivery");
  must(ofType(outbox, "ReportApprovals").length <= 1, () => "more than one report of questions");
  must(state.contextFrom <= state.nextSeq && state.deliveredSeq < state.nextSeq, () => "the log's numbers are out of order");
  must(state.messageCount >= 0, () => "fewer than no messages");
  must(state.closed.length <= CLOSED_CALLS, () => "too many closed calls are remembered");
}
/** Whether the call must have an open effect: until its only hand-over, or, for a repeatable call, as long as the call is open. */
const hasDispatch = (call: OpenCall): boolean => !isHeldBack(call) && (call.status === "planned" || isRepeatable(call));

/** Each call has exactly one result before the next assistant message, and no user message comes between. */
function checkRows(before: State, step: Step): void {
  const open = new Set(before.run.phase === "acting" ? before.run.calls.map((call) => call.callId) : []);
  let seq = before.nextSeq;
  for (const row of step.append) {
    must(row.seq === seq, () => `the row ${row.seq} should be ${seq}`);
    seq += seqSpan(row);
    checkOrder(row, open);
  }
  must(step.state.nextSeq === seq, () => "the next number is wrong");
  const { run } = step.state;
  const left = run.phase === "acting" ? run.calls.map((call) => call.callId) : [];
  must(left.length === open.size && left.every((callId) => open.has(callId)), () => "the open calls are not those of the log");
  if (step.append.some(hasEvent))
    must(
      step.state.outbox.some((effect) => effect.type === "Deliver" && effect.upto === seq - 1),
      () => "events without a delivery",
    );
  const messages = step.append.filter(isMessageRow).length;
  checkMoved(before, step, messages);
  for (const { id, type } of step.effects)
    if (type === "AppendMemory")
      must(
        step.results.some((op) => op.op === "keep" && op.callId === id && op.text !== ""),
        () => `${id} has no text`,
      );
}
/** [P17] Messages leave the conversation only behind an archive that was read back, all of those in it and no others. */
function checkMoved(before: State, { state }: Step, added: number): void {
  if (state.contextFrom === before.contextFrom) {
    must(state.messageCount === before.messageCount + added, () => "messages came or went without a row");
    return;
  }
  const { run } = before;
  if (run.phase !== "archiving") {
    must(before.messageCount === 0 && state.messageCount === added, () => "messages left the conversation without an archive");
    return;
  }
  must(run.stage === "archive" || run.archivedTo !== undefined, () => "messages left before their archive was there");
  must(
    state.contextFrom === run.upto + 1 && state.messageCount === before.messageCount - run.count + added,
    () => "other messages left than those in the archive",
  );
}
function checkOrder(row: LogRow, open: Set<string>): void {
  switch (row.kind) {
    case "user":
      return must(open.size === 0, () => "a user message between a call and its result");
    case "assistant":
      must(open.size === 0, () => "an answer before all results are there");
      must(
        row.message.content.filter((block) => block.type === "toolCall").length === row.calls.length,
        () => "calls and their blocks differ",
      );
      for (const call of row.calls) open.add(call.callId);
      return;
    case "toolResult":
      return must(open.delete(row.callId), () => `a result for ${row.callId}, which is not open`);
    case "notice":
      return;
  }
}
