/** Calls are out: results, nodes that come and go, deadlines. A call ends exactly once, whatever comes later. Pure. */
import type { ContentBlock } from "../../../ports/messages.ts";
import { type Draft, appendMessage, appendNotice, open, settle, status } from "../draft.ts";
import type { EventOf } from "../event.ts";
import { LATE_NOTE_CHARS, LIMITS, MESSAGE_ROW_BYTES } from "../limits.ts";
import {
  type Acting,
  dispatchEffectId,
  isOwnCallId,
  type OpenCall,
  providerCallId,
  resultPath,
  type SealedCall,
  storeEffectId,
} from "../state.ts";
import { cutMiddle, fitImages, jsonBytes, textOf } from "../text.ts";
import { cancelOnNodes, closeCall, type Closing } from "./ending.ts";
import { nextStep } from "./thinking.ts";

export const deadlineOf = (calls: readonly OpenCall[]): number =>
  Math.min(...calls.map((call) => Math.min(call.deadline, call.graceUntil ?? call.deadline)));

/** The run with other calls; when none is left, the next step. */
function withCalls(d: Draft, run: Acting, calls: readonly OpenCall[]): void {
  if (calls.length === 0) return nextStep(d, { ...run, calls, progressAt: d.at.now });
  d.state.run = { ...run, calls, deadline: deadlineOf(calls) };
}
const replace = (calls: readonly OpenCall[], index: number, change: (call: OpenCall) => OpenCall): readonly OpenCall[] =>
  calls.map((call) => (call.index === index ? change(call) : call));

export function toolResult(d: Draft, event: EventOf<"ToolResult">): void {
  const { state } = d;
  const { run } = state;
  if (run.phase === "acting") {
    const call = run.calls.find((open) => open.callId === event.callId);
    if (call) {
      // Only the node that the call was handed to can know how it ended (G1).
      const handed = call.nodeId === undefined || call.ledger || call.idempotent || call.sent;
      if (call.nodeId !== event.nodeId || !handed) {
        d.answer = { type: "unknown" };
        return;
      }
      settle(d, dispatchEffectId(run, call));
      appendMessage(d, {
        kind: "toolResult",
        runId: run.runId,
        step: run.step,
        callId: call.callId,
        outcome: event.outcome,
        ...(event.reason === undefined ? {} : { reason: event.reason }),
        durationMs: event.durationMs ?? Math.max(0, d.at.now - call.startedAt),
        message: {
          role: "toolResult",
          toolCallId: providerCallId(run, call.index),
          toolName: call.name,
          content: fit(d, call.callId, event.content, LIMITS.toolResultChars),
          isError: event.outcome !== "ok",
          timestamp: d.at.wall,
        },
      });
      d.answer = { type: "taken" };
      withCalls(
        d,
        { ...run, progressAt: d.at.now },
        run.calls.filter((open) => open !== call),
      );
      return;
    }
  }
  const sealed = state.sealed.find((entry) => entry.callId === event.callId);
  if (sealed) {
    if (sealed.nodeId !== event.nodeId) {
      d.answer = { type: "unknown" };
      return;
    }
    state.sealed = state.sealed.filter((entry) => entry !== sealed);
    lateNote(d, sealed, event);
    d.answer = { type: "late" };
    return;
  }
  d.answer = isOwnCallId(state, event.callId) ? { type: "duplicate" } : { type: "unknown" };
}

/** A result for a call that was given up: kept and told, never entered as the call's result, never starts anything. */
function lateNote(d: Draft, sealed: SealedCall, event: EventOf<"ToolResult">): void {
  // That a cancelled call was cancelled is no news.
  if (sealed.outcome === "cancelled" && event.outcome === "cancelled") return;
  const told = textOf(fit(d, sealed.callId, event.content, LATE_NOTE_CHARS).filter((block) => block.type === "text"));
  const text = `A late result of ${sealed.name} (call ${sealed.callId}), which had been given up as "${sealed.outcome}": it ended with "${event.outcome}".\n${told}`;
  appendNotice(d, { notice: "late", runId: sealed.runId, text, forModel: text });
}

/** Content that fits the model's window and its row. What is cut off is kept in full as a file of the workspace (G4). */
function fit(d: Draft, callId: string, content: readonly ContentBlock[], chars: number): readonly ContentBlock[] {
  const text = textOf(content);
  const images = content.filter((block) => block.type === "image");
  if (text.length <= chars) return fitImages(content, MESSAGE_ROW_BYTES - jsonBytes(text));
  d.results.push({ op: "keep", callId, text });
  const id = storeEffectId(callId);
  if (!d.state.outbox.some((effect) => effect.id === id)) open(d, { type: "StoreResult", id, callId });
  const path = resultPath(callId);
  const cut = cutMiddle(
    text,
    chars,
    (missing) => `[... ${missing} characters were left out here. The whole text is kept: gsv__ReadFile with path "${path}". ...]`,
  );
  return [{ type: "text", text: cut }, ...fitImages(images, MESSAGE_ROW_BYTES / 2)];
}

/** The commit that goes before the only dispatch to a node without a ledger (G2). */
export function toolSent(d: Draft, event: EventOf<"ToolSent">): void {
  const found = openCall(d, event.callId, event.effectId);
  if (!found || found.call.sent) return;
  settle(d, event.effectId);
  d.answer = { type: "taken" };
  withCalls(
    d,
    found.run,
    replace(found.run.calls, found.call.index, (call) => ({ ...call, sent: true })),
  );
}

/** `effectId` fences: a report about an earlier dispatch of the same call is no news. */
function openCall(d: Draft, callId: string, effectId: string): { readonly run: Acting; readonly call: OpenCall } | undefined {
  const { run } = d.state;
  if (run.phase !== "acting") return undefined;
  const call = run.calls.find((open) => open.callId === callId);
  return call && dispatchEffectId(run, call) === effectId ? { run, call } : undefined;
}

export function toolOffline(d: Draft, event: EventOf<"ToolOffline">): void {
  const found = openCall(d, event.callId, event.effectId);
  if (!found) return;
  const { run, call } = found;
  if (event.first || call.idempotent) {
    closeCall(d, run, call, event.first ? neverSent(call) : droppedOff(call));
    withCalls(
      d,
      run,
      run.calls.filter((open) => open !== call),
    );
    return;
  }
  wait(d, run, [call.index]);
}
/** Whether the node has the call is not known; it may still report within the grace. */
export function toolUncertain(d: Draft, event: EventOf<"ToolUncertain">): void {
  const found = openCall(d, event.callId, event.effectId);
  if (found && found.call.graceUntil === undefined) wait(d, found.run, [found.call.index]);
}
function wait(d: Draft, run: Acting, indexes: readonly number[]): void {
  const until = d.at.now + LIMITS.nodeGraceMs;
  const calls = run.calls.map((call) =>
    indexes.includes(call.index) && call.graceUntil === undefined ? { ...call, graceUntil: until } : call,
  );
  withCalls(d, run, calls);
}

/** Nothing was handed over, so nothing can come late. */
const neverSent = (call: OpenCall): Closing => ({
  content: `The machine ${call.nodeId ?? ""} is not connected, so ${call.name} was not run. Tell the user to start \`gsv node\` there, or use another machine.`,
  outcome: "error",
  reason: "node.offline",
  made: false,
});
/** Read-only calls only. */
const droppedOff = (call: OpenCall): Closing => ({
  content: `The machine ${call.nodeId ?? ""} dropped off before ${call.name} ended. It changes nothing, so it may be called again once the machine is back.`,
  outcome: "error",
  reason: "node.offline",
  made: true,
});

export function nodeChanged(d: Draft, event: EventOf<"NodeChanged">): void {
  const { run } = d.state;
  if (event.online && event.calls) cancelUnwanted(d, event.nodeId, event.calls);
  if (run.phase !== "acting") return;
  const mine = run.calls.filter((call) => call.nodeId === event.nodeId);
  if (mine.length === 0) return;
  if (event.online) return cameBack(d, run, mine, event);
  const waiting: OpenCall[] = [];
  const left: OpenCall[] = [];
  for (const call of run.calls) {
    if (call.nodeId !== event.nodeId) left.push(call);
    else if (call.idempotent) closeCall(d, run, call, droppedOff(call));
    // Not handed over yet: the dispatch will find out by itself.
    else if (!call.ledger && !call.sent) left.push(call);
    else {
      const waits = call.graceUntil === undefined ? { ...call, graceUntil: d.at.now + LIMITS.nodeGraceMs } : call;
      left.push(waits);
      waiting.push(waits);
    }
  }
  if (waiting.length > 0)
    status(
      d,
      run.runId,
      run.step,
      `${event.nodeId} dropped off during ${waiting.map((call) => call.name).join(", ")}. Waiting ${Math.round(LIMITS.nodeGraceMs / 1000)} s for it.`,
    );
  withCalls(d, run, left);
}

/** The node is there again. With a ledger it says what it knows of each call; without one there is only the grace. */
function cameBack(d: Draft, run: Acting, mine: readonly OpenCall[], event: EventOf<"NodeChanged">): void {
  const { calls: known } = event;
  if (!known) return;
  const again: number[] = [];
  const calls = run.calls.map((call) => {
    if (!mine.includes(call) || !call.ledger) return call;
    const told = known.find((entry) => entry.callId === call.callId);
    if (!told || told.state === "accepted") {
      // Never seen there (K14), or written down and, if the node died since, waiting to be asked for (K15): handing it over
      // (again) starts it once, whichever it is.
      again.push(call.index);
      const { graceUntil: _over, ...rest } = call;
      return { ...rest, dispatch: call.dispatch + 1 };
    }
    // It died in the middle, and the node's report of what it knows is on its way.
    if (told.state === "lost")
      return { ...call, graceUntil: Math.min(call.graceUntil ?? Number.POSITIVE_INFINITY, d.at.now + LIMITS.nodeGraceMs) };
    if (call.graceUntil === undefined) return call;
    const { graceUntil: _over, ...rest } = call;
    return rest;
  });
  for (const call of calls) {
    if (!again.includes(call.index)) continue;
    const old = run.calls.find((open) => open.index === call.index);
    const effect = d.state.outbox.find((candidate) => candidate.type === "DispatchTool" && candidate.callId === call.callId);
    if (!old || effect?.type !== "DispatchTool") throw new Error("an open call of a node with a ledger has no effect");
    settle(d, dispatchEffectId(run, old));
    open(d, { ...effect, id: dispatchEffectId(run, call) });
  }
  if (calls.some((call, index) => call !== run.calls[index])) {
    status(d, run.runId, run.step, `${event.nodeId} is back.`);
    withCalls(d, run, calls);
  }
}

/** The node still works on calls of ours that nobody waits for: a cancel did not reach it. */
function cancelUnwanted(d: Draft, nodeId: string, known: NonNullable<EventOf<"NodeChanged">["calls"]>): void {
  const { run } = d.state;
  const open = new Set(run.phase === "acting" ? run.calls.map((call) => call.callId) : []);
  const asked = new Set(d.state.outbox.flatMap((effect) => (effect.type === "CancelTool" ? effect.callIds : [])));
  const unwanted = known.filter(
    ({ callId, state }) =>
      (state === "accepted" || state === "started") && isOwnCallId(d.state, callId) && !open.has(callId) && !asked.has(callId),
  );
  cancelOnNodes(
    d,
    unwanted.map(({ callId }) => ({ callId, nodeId })),
    "The call is no longer wanted.",
  );
}

/** Calls whose time is over (G5), or whose node did not come back in time (G3). */
export function actingTick(d: Draft, run: Acting): void {
  const { now } = d.at;
  const over = run.calls.filter((call) => now >= call.deadline || (call.graceUntil !== undefined && now >= call.graceUntil));
  if (over.length === 0) return;
  cancelOnNodes(d, over, "The call took too long.");
  for (const call of over) closeCall(d, run, call, now >= call.deadline ? timedOut(d, call) : unknownOutcome(call));
  withCalls(
    d,
    run,
    run.calls.filter((call) => !over.includes(call)),
  );
}
const seconds = (ms: number): string => `${Math.round(ms / 1000)} s`;
function timedOut(d: Draft, call: OpenCall): Closing {
  const took = seconds(d.at.now - call.startedAt);
  const unsent = call.nodeId !== undefined && !call.ledger && !call.idempotent && !call.sent;
  if (call.idempotent || unsent)
    return {
      content: `${call.name} did not finish within ${took}. It changed nothing; it may be called again.`,
      outcome: "timeout",
      reason: "tool.timeout",
      made: true,
    };
  return {
    content: `${call.name} gave no result within ${took} and was told to stop. Whether it took effect is not known: look before you repeat it.`,
    outcome: "unknown",
    reason: "tool.outcome_unknown",
    made: true,
  };
}
const unknownOutcome = (call: OpenCall): Closing => ({
  content: `The connection to ${call.nodeId ?? "the machine"} broke while ${call.name} was under way. Whether it took effect is not known: look at the machine's state before you repeat it, and tell the user.`,
  outcome: "unknown",
  reason: "tool.outcome_unknown",
  made: true,
});

/** Native calls ran in the object that died. They may run again (P8), but not for ever. */
export function actingWoke(d: Draft, run: Acting): void {
  if (!run.calls.some((call) => call.nodeId === undefined)) return;
  const left: OpenCall[] = [];
  for (const call of run.calls) {
    if (call.nodeId !== undefined) left.push(call);
    else if (call.restarts >= LIMITS.recoveryAttempts)
      closeCall(d, run, call, {
        content: `${call.name} was interrupted ${call.restarts} times and given up.`,
        outcome: "error",
        reason: "tool.failed",
        made: false,
      });
    else left.push({ ...call, restarts: call.restarts + 1 });
  }
  withCalls(d, run, left);
}
