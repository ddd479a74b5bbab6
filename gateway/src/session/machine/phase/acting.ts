/** The phase `acting`, with open calls: results, nodes that disconnect and return, deadlines. A call ends exactly once. PURE. */
import { callsDeadline, isHeldBack, nodeOf, type OpenCall, sameTarget } from "../../../calls/open-call.ts";
import {
  expired,
  handingOver,
  handOverUncertain,
  interrupted,
  mayReport,
  nodeConnected,
  nodeOffline,
  nodeDisconnected,
  type Ruling,
} from "../../../calls/rules.ts";
import { nothingRead } from "../../../policy/taint.ts";
import type { OthersUse } from "../../../ports/others-use.ts";
import { type ContentBlock, type MediaBlock, textOf } from "../../../ports/messages.ts";
import { type Draft, appendMessage, appendNotice, open, settle, status, take } from "../draft.ts";
import type { EventOf } from "../event.ts";
import { LATE_NOTE_CHARS, LIMITS, MESSAGE_ROW_BYTES, PROCESSES } from "../limits.ts";
import { dispatchEffectId, isOwnCallId, providerCallId, resultPath, storeEffectId } from "../ids.ts";
import type { Acting, ClosedCall } from "../state.ts";
import { repeatNote } from "../repeats.ts";
import { cutMiddle, fitImages, jsonBytes } from "../text.ts";
import { approvalAnswered, closedAsDenied } from "./approving.ts";
import { cancelOnNodes, closeCall } from "./ending.ts";
import { endQuestion, isAwaiting } from "./questions.ts";
import type { TransitionName } from "../transitions.ts";
import { heardResult } from "./labels.ts";
import { nextStep } from "./limit.ts";
import { lookAgain, tellWaits, waitInstead } from "./waiting-calls.ts";

/** The run with other calls; when none is left, the next step. */
export function withCalls(d: Draft, name: TransitionName, run: Acting, calls: readonly OpenCall[]): void {
  take(d, name);
  const counted = countWaiting(run, calls, d.at.now);
  if (calls.length === 0) return nextStep(d, "lastCallClosed", { ...counted, calls, progressAt: d.at.now });
  d.state.run = { ...counted, calls, deadline: callsDeadline(calls) };
}
/** The time in which at least one call waits for the owner or for its machine is not the run's. */
function countWaiting({ waitingSince, ...run }: Acting, calls: readonly OpenCall[], now: number): Acting {
  if (calls.some(isHeldBack)) return { ...run, waitingSince: waitingSince ?? now };
  return waitingSince === undefined ? run : { ...run, waitedMs: (run.waitedMs ?? 0) + now - waitingSince };
}
/** The owner answered the question about a call. */
export const answered = (d: Draft, event: EventOf<"ApprovalAnswered">): void => approvalAnswered(d, event, withCalls);
export function toolResult(d: Draft, event: EventOf<"ToolResult">): void {
  const { state } = d;
  const { run } = state;
  if (run.phase === "acting") {
    const call = run.calls.find((open) => open.callId === event.callId);
    if (call) {
      if (!mayReport(call, event.from)) {
        d.answer = { type: "unknown" };
        return;
      }
      settle(d, dispatchEffectId(run, call));
      awaitProcess(d, event, call);
      const { files, leftOut } = attached(run, event.files);
      appendMessage(d, {
        kind: "toolResult",
        runId: run.runId,
        step: run.step,
        callId: call.callId,
        outcome: event.outcome,
        ...(event.reason === undefined ? {} : { reason: event.reason }),
        durationMs: event.durationMs ?? Math.max(0, d.at.now - call.startedAt),
        ...heardResult(
          d,
          call.name,
          event.taint ?? (event.gaveNothing && call.isFileTool ? nothingRead(call.name) : undefined),
          call.taint,
        ),
        message: {
          role: "toolResult",
          toolCallId: providerCallId(run, call.index),
          toolName: call.name,
          content: [...fit(d, call.callId, event.content, LIMITS.toolResultChars), ...leftOut, ...noted(run, call)],
          isError: event.outcome !== "ok",
          timestamp: d.at.wall,
        },
      });
      if (event.note !== undefined) appendNotice(d, { notice: "note", runId: "", text: event.note });
      d.answer = { type: "taken" };
      withCalls(
        d,
        "resultTaken",
        { ...withUse(run, event.used), ...(files ? { files } : {}), progressAt: d.at.now },
        run.calls.filter((open) => open !== call),
      );
      return;
    }
  }
  const closed = state.closed.find((entry) => entry.callId === event.callId);
  if (closed) {
    if (!sameTarget(closed.target, event.from)) {
      d.answer = { type: "unknown" };
      return;
    }
    state.closed = state.closed.filter((entry) => entry !== closed);
    awaitProcess(d, event, closed);
    lateNote(d, closed, event);
    d.answer = { type: "late" };
    return;
  }
  d.answer = isOwnCallId(state, event.callId) ? { type: "duplicate" } : { type: "unknown" };
}

/** The run with what others used on its behalf, and without the time in which they waited. */
function withUse(run: Acting, used: OthersUse | undefined): Acting {
  if (used === undefined) return run;
  const { costUsd, unpriced, waitedMs } = used;
  const spent = { ...run.spent, costUsd: (run.spent.costUsd ?? 0) + costUsd };
  return {
    ...run,
    spent,
    ...(unpriced === 0 ? {} : { unpriced: (run.unpriced ?? 0) + unpriced }),
    ...(waitedMs === 0 ? {} : { waitedMs: (run.waitedMs ?? 0) + waitedMs }),
  };
}
function noted({ repeated }: Acting, { index }: OpenCall): readonly ContentBlock[] {
  const count = repeated?.[index];
  return count === undefined ? [] : [{ type: "text", text: repeatNote(count) }];
}

/** The files of the run's answer with those of one more result: each file once, and no more than a message can have. */
function attached(
  { files: known }: Acting,
  more: readonly MediaBlock[] = [],
): { readonly files: readonly MediaBlock[] | undefined; readonly leftOut: readonly ContentBlock[] } {
  if (more.length === 0) return { files: known, leftOut: [] };
  const all = [...new Map([...(known ?? []), ...more].map((file) => [file.r2Key, file])).values()];
  const over = all.length - LIMITS.attachments;
  const note = `[An answer can have ${LIMITS.attachments} files at most: ${over} of these were left out.]`;
  return { files: all.slice(0, LIMITS.attachments), leftOut: over > 0 ? [{ type: "text", text: note }] : [] };
}

/** Only a process that a result names may wake the session, and only its own node may tell the end. */
function awaitProcess(d: Draft, { callId, from, processId }: EventOf<"ToolResult">, { taint }: Pick<OpenCall, "taint">): void {
  if (from.kind !== "node" || processId === undefined) return;
  const { nodeId } = from;
  const known = d.state.processes ?? [];
  if (known.some((entry) => entry.nodeId === nodeId && entry.processId === processId)) return;
  d.state.processes = [...known, { nodeId, processId, callId, ...(taint ? { taint } : {}) }].slice(-PROCESSES);
}

/** The result of a call that the session had closed: kept as a late note, never as the call's result. Starts no run. */
function lateNote(d: Draft, closed: ClosedCall, event: EventOf<"ToolResult">): void {
  // A cancelled call that ends as cancelled is no news.
  if (closed.outcome === "cancelled" && event.outcome === "cancelled") return take(d, "lateResultDropped");
  take(d, "lateResultNoted");
  const content = textOf(fit(d, closed.callId, event.content, LATE_NOTE_CHARS).filter((block) => block.type === "text"));
  const text = `A late result of ${closed.name} (call ${closed.callId}), which was closed as "${closed.outcome}" before: it ended as "${event.outcome}".\n${content}`;
  const label = heardResult(d, closed.name, event.taint, closed.taint);
  appendNotice(d, { notice: "late", runId: closed.runId, lateOf: closed.callId, text, forModel: text, ...label });
}

/** A tool that cut its own output says so in a field of its result. Inside a JSON string the quotes would have backslashes. */
const TOOL_CUT = /"truncated":true[,}]/;
const CUT_BEFORE = " The tool itself had left out a part before; that part is not kept.";

/** Content that fits the model's window and its row. The whole text of a cut result is kept as a file of the workspace (G4). */
function fit(d: Draft, callId: string, content: readonly ContentBlock[], chars: number): readonly ContentBlock[] {
  const text = textOf(content);
  const images = content.filter((block) => block.type === "image");
  if (text.length <= chars) return fitImages(content, MESSAGE_ROW_BYTES - jsonBytes(text));
  d.results.push({ op: "keep", callId, text });
  const id = storeEffectId(callId);
  if (!d.state.outbox.some((effect) => effect.id === id)) open(d, { type: "StoreResult", id, callId });
  const kept = `The result is kept as the tool gave it: gsv__ReadFile with path "${resultPath(callId)}".${TOOL_CUT.test(text) ? CUT_BEFORE : ""}`;
  const cut = cutMiddle(text, chars, (missing) => `[... ${missing} characters were left out here. ${kept} ...]`);
  return [{ type: "text", text: cut }, ...fitImages(images, MESSAGE_ROW_BYTES / 2)];
}

/** `effectId` fences: a report about an earlier dispatch of the same call is dropped. */
function openCall(d: Draft, callId: string, effectId: string): { readonly run: Acting; readonly call: OpenCall } | undefined {
  const { run } = d.state;
  if (run.phase !== "acting") return undefined;
  const call = run.calls.find((open) => open.callId === callId);
  return call && !isHeldBack(call) && dispatchEffectId(run, call) === effectId ? { run, call } : undefined;
}
/** Applies `rule` to the run's calls. Returns the calls that are still open, and whether anything changed. */
function carryOut(
  d: Draft,
  run: Acting,
  rule: (call: OpenCall) => Ruling,
): { readonly calls: readonly OpenCall[]; readonly changed: boolean } {
  let changed = false;
  const calls: OpenCall[] = [];
  for (const call of run.calls) {
    const ruling = rule(call);
    if (ruling.type === "unchanged") {
      calls.push(call);
      continue;
    }
    changed = true;
    if (ruling.type === "close") closeCall(d, run, call, ruling.closing);
    else if (ruling.type === "wait") calls.push(waitInstead(d, run, call, ruling.until));
    else if (ruling.type === "look") calls.push(lookAgain(call));
    else calls.push(ruling.call);
    if (ruling.type === "hand_over") dispatchAgain(d, run, call, ruling.call);
  }
  return { calls, changed };
}
function dispatchAgain(d: Draft, run: Acting, before: OpenCall, call: OpenCall): void {
  const effect = d.state.outbox.find((candidate) => candidate.type === "DispatchTool" && candidate.callId === call.callId);
  if (effect?.type !== "DispatchTool") throw new Error(`the call ${call.callId} may be handed over again, but has no effect`);
  settle(d, dispatchEffectId(run, before));
  open(d, { ...effect, id: dispatchEffectId(run, call) });
}
const only =
  (call: OpenCall, rule: (call: OpenCall) => Ruling) =>
  (candidate: OpenCall): Ruling =>
    candidate === call ? rule(candidate) : { type: "unchanged" };

/** The commit before the only hand-over to a node without a ledger (G2). */
export function toolSent(d: Draft, event: EventOf<"ToolSent">): void {
  const found = openCall(d, event.callId, event.effectId);
  if (found?.call.status !== "planned") return;
  settle(d, event.effectId);
  d.answer = { type: "taken" };
  withCalls(d, "callHandedOver", found.run, carryOut(d, found.run, only(found.call, handingOver)).calls);
}
export function toolOffline(d: Draft, event: EventOf<"ToolOffline">): void {
  const found = openCall(d, event.callId, event.effectId);
  if (!found) return;
  const { calls, changed } = carryOut(
    d,
    found.run,
    only(found.call, (call) => nodeOffline(call, event, d.at.now)),
  );
  if (changed)
    withCalls(
      d,
      calls.some((call) => call.callId === event.callId && isHeldBack(call)) ? "handOverWaits" : "handOverOffline",
      found.run,
      calls,
    );
}
/** The node may or may not have the call. It may still report within the grace. */
export function toolUncertain(d: Draft, event: EventOf<"ToolUncertain">): void {
  const found = openCall(d, event.callId, event.effectId);
  if (!found) return;
  const { calls, changed } = carryOut(
    d,
    found.run,
    only(found.call, (call) => handOverUncertain(call, d.at.now)),
  );
  if (changed) withCalls(d, "handOverUncertain", found.run, calls);
}

export function nodeChanged(d: Draft, event: EventOf<"NodeChanged">): void {
  const { run } = d.state;
  const { nodeId, online, calls: ledger } = event;
  if (online && ledger) cancelUnwanted(d, nodeId, ledger);
  if (online && d.state.held) cancelStopped(d, nodeId);
  if (run.phase !== "acting") return;
  const { now } = d.at;
  const { calls, changed } = carryOut(d, run, (call) => {
    if (nodeOf(call) !== nodeId) return { type: "unchanged" };
    return online ? nodeConnected(call, ledger, now) : nodeDisconnected(call, now);
  });
  if (online && changed) status(d, run.runId, run.step, `${nodeId} is back.`);
  if (calls.some((call, index) => call !== run.calls[index] && isHeldBack(call))) take(d, "machineLooked");
  const waiting = calls.filter((call) => nodeOf(call) === nodeId && call.status === "in_grace");
  if (!online && waiting.length > 0)
    status(
      d,
      run.runId,
      run.step,
      `${nodeId} disconnected during ${waiting.map((call) => call.name).join(", ")}. Waiting ${Math.round(LIMITS.nodeGraceMs / 1000)} s for it.`,
    );
  if (changed) withCalls(d, online ? "nodeConnected" : "nodeDisconnected", run, calls);
}

/** The node still runs calls of this session that are closed: a cancel did not reach it. */
function cancelUnwanted(d: Draft, nodeId: string, known: NonNullable<EventOf<"NodeChanged">["calls"]>): void {
  const { run } = d.state;
  const open = new Set(run.phase === "acting" ? run.calls.map((call) => call.callId) : []);
  const asked = new Set(d.state.outbox.flatMap((effect) => (effect.type === "CancelTool" ? effect.callIds : [])));
  const unwanted = known.filter(
    ({ callId, state }) =>
      (state === "accepted" || state === "started") && isOwnCallId(d.state, callId) && !open.has(callId) && !asked.has(callId),
  );
  if (unwanted.length > 0) take(d, "callsCancelledOnNode");
  cancelOnNodes(
    d,
    unwanted.map(({ callId }) => ({ callId, target: { kind: "node", nodeId } })),
    "The call is no longer wanted.",
  );
}

/** The machine was away when everything was stopped: its background commands are ended now. */
function cancelStopped(d: Draft, nodeId: string): void {
  const stopped = (d.state.processes ?? []).filter((known) => known.stopped && known.nodeId === nodeId);
  if (stopped.length === 0) return;
  take(d, "callsCancelledOnNode");
  cancelOnNodes(
    d,
    stopped.map(({ callId }) => ({ callId, target: { kind: "node", nodeId } })),
    "Everything is stopped.",
  );
}

/** Calls whose time is over (G5), or whose node did not come back in time (G3). */
export function actingTick(d: Draft, run: Acting): void {
  const { now } = d.at;
  const told = tellWaits(d, run);
  const over = told.calls.filter((call) => expired(call, now) !== undefined);
  if (over.length === 0) {
    d.state.run = { ...told, deadline: callsDeadline(told.calls) };
    return;
  }
  cancelOnNodes(
    d,
    over.filter((call) => !isHeldBack(call)),
    "The call took too long.",
  );
  const unanswered = over.filter(isAwaiting);
  for (const call of unanswered) endQuestion(d, call, { ended: "expired" });
  const { calls } = carryOut(d, told, (call) => {
    const closing = expired(call, now);
    return closing ? { type: "close", closing } : { type: "unchanged" };
  });
  closedAsDenied(d, "callsExpired", told, unanswered, calls, withCalls);
}

/** The object died, and with it the native calls that ran in it (P8). */
export function actingWoke(d: Draft, run: Acting): void {
  const { calls, changed } = carryOut(d, run, interrupted);
  if (changed) withCalls(d, "nativeCallsInterrupted", run, calls);
}
