/**
 * The session as a pure function: state and event in; new state, rows and effects out. No clock, ids, randomness or I/O (the event's
 * stamp has them), and no change in place.
 *
 * The completion of an effect that is no longer wanted is dropped, because its id does not fit the state.
 */
import { appendNotice, countSpent, type Draft, finishDraft, settle, type Step, startDraft, take } from "./draft.ts";
import type { Event, EventOf } from "./event.ts";
import { actingTick, actingWoke, answered, nodeChanged, toolOffline, toolResult, toolSent, toolUncertain } from "./phase/acting.ts";
import { archived, archiveFailed, compactAsked, dropWaiting, resetAsked, restartArchive, stopCompaction } from "./phase/archiving.ts";
import { planned, summarized, summarizeFailed } from "./phase/summarizing.ts";
import { takeOff } from "./phase/entering.ts";
import { cancelOnNodes, endByAbort, replyUnbegun } from "./phase/ending.ts";
import { trusted } from "./phase/labels.ts";
import { limitExpired, limitsKnown, limitNoLongerReached } from "./phase/limit.ts";
import { report } from "./phase/questions.ts";
import { execEnded, startWaiting, userMessage } from "./phase/queue.ts";
import { nodesLooked, reportWaits } from "./phase/waits.ts";
import { contextFull, modelFailed, modelReplied, restartThinking, transcribed } from "./phase/thinking.ts";
import { archiveEffectId, modelEffectId } from "./ids.ts";
import { type Archiving, activeRun, isRunning, type Run, type State } from "./state.ts";

export type { Step } from "./draft.ts";

export function reduce(state: State, event: Event): Step {
  const d = startDraft(state, event);
  handle(d, event);
  startWaiting(d);
  reportWaits(d);
  return finishDraft(d);
}

function handle(d: Draft, event: Event): void {
  switch (event.type) {
    case "UserMessage":
      return userMessage(d, event);
    case "ExecEnded":
      return execEnded(d, event);
    case "ModelReplied":
      return modelReplied(d, event);
    case "ModelFailed":
      return modelFailed(d, event);
    case "Transcribed":
      return transcribed(d, event);
    case "ToolResult":
      return toolResult(d, event);
    case "ToolSent":
      return toolSent(d, event);
    case "ToolOffline":
      return toolOffline(d, event);
    case "ToolUncertain":
      return toolUncertain(d, event);
    case "NodesLooked":
      return nodesLooked(d, event);
    case "NodeChanged":
      return nodeChanged(d, event);
    case "ApprovalAnswered":
      return answered(d, event);
    case "LimitNoLongerReached":
      return limitNoLongerReached(d, event);
    case "Delivered":
      take(d, "delivered");
      d.state.deliveredSeq = Math.max(d.state.deliveredSeq, Math.min(event.upto, d.state.nextSeq - 1));
      return;
    case "EffectDone":
      return effectDone(d, event);
    case "Parked":
      return parked(d, event);
    case "Noted":
      take(d, "noted");
      appendNotice(d, {
        notice: "note",
        runId: "",
        text: event.text,
        ...(event.forModel ? { forModel: event.forModel === true ? event.text : event.forModel } : {}),
        ...(event.isAnswer ? { isAnswer: true } : {}),
      });
      d.answer = { type: "taken" };
      return;
    case "Spent":
      take(d, "stoppedCallCounted");
      return countSpent(d, event.spent);
    case "Held":
      return held(d, event);
    case "LimitsKnown":
      return limitsKnown(d, event);
    case "ContextFull":
      return contextFull(d, event);
    case "Planned":
      return planned(d, event);
    case "Summarized":
      return summarized(d, event);
    case "SummarizeFailed":
      return summarizeFailed(d, event);
    case "Archived":
      return archived(d, event);
    case "ArchiveFailed":
      return archiveFailed(d, event);
    case "Abort":
      return abort(d, event);
    case "Reset":
      return d.state.held ? refuseHeld(d) : resetAsked(d);
    case "Compact":
      return d.state.held ? refuseHeld(d) : compactAsked(d, event);
    case "SettingsPatched":
      return settingsPatched(d, event);
    case "Trusted":
      return trusted(d, event);
    case "Woke":
      return woke(d);
    case "Tick":
      return tick(d, event);
    default:
      return unhandled(event);
  }
}
function unhandled(event: never): never {
  throw new Error(`no such event: ${JSON.stringify(event)}`);
}

function effectDone(d: Draft, event: EventOf<"EffectDone">): void {
  const effect = d.state.outbox.find((candidate) => candidate.id === event.effectId);
  if (effect) take(d, "effectDone");
  switch (effect?.type) {
    case "StoreResult":
      d.results.push({ op: "drop", callId: effect.callId });
      return settle(d, effect.id);
    case "AppendMemory":
      d.results.push({ op: "drop", callId: effect.id });
      return settle(d, effect.id);
    case "CancelTool":
    case "ReportApprovals":
    case "AwaitNodes":
    case "DeleteMedia":
    case "Reply":
      return settle(d, effect.id);
    default:
      return;
  }
}
/** Tells people about a failing effect, which stays open. */
function parked(d: Draft, event: EventOf<"Parked">): void {
  if (!d.state.outbox.some((effect) => effect.id === event.effectId)) return;
  take(d, "effectParked");
  appendNotice(d, { notice: "note", runId: "", text: event.text });
}

/** Rule R3. A named run that has not begun is removed from the queue; an unknown id has no effect. */
function abort(d: Draft, event: EventOf<"Abort">): void {
  const { state, at } = d;
  const { run } = state;
  if (isRunning(run) && (event.runId === undefined || event.runId === run.runId)) {
    take(d, "runStopped");
    const cancelled = endByAbort(d, run, "Stopped by the user.");
    d.answer = { type: "aborted", wasRunning: true, runId: run.runId, cancelled, ...waitingIn(d) };
    return;
  }
  if (run.phase === "archiving" && run.kind === "compact" && isNamed(run, event.runId)) {
    const resumed = run.resume ? { runId: run.resume.runId } : {};
    stopCompaction(d, run, "Stopped by the user.");
    d.answer = { type: "aborted", wasRunning: true, cancelled: 0, ...resumed, ...waitingIn(d) };
    return;
  }
  if (event.runId !== undefined && event.runId === state.afterRun?.askedAs) {
    take(d, "waitingCompactionStopped");
    dropWaiting(d, "The user stopped the compaction before it began, so nothing was removed.");
    d.answer = { type: "aborted", wasRunning: true, cancelled: 0 };
    return;
  }
  if (event.runId !== undefined && at.named && !at.named.incoming.quiet) {
    take(d, "waitingMessageStopped");
    takeOff(d, at.named);
    const { seq } = appendNotice(d, {
      notice: "aborted",
      runId: event.runId,
      text: "Stopped by the user before it began.",
      reason: "run.aborted",
    });
    replyUnbegun(d, at.named.incoming, seq);
    d.answer = { type: "aborted", wasRunning: true, runId: event.runId, cancelled: 0 };
    return;
  }
  d.answer = { type: "aborted", wasRunning: false, cancelled: 0 };
}

/** An abort without an id means what is under way; with one, the command that asked for the compaction or the run behind it. */
const isNamed = ({ resume, askedAs }: Archiving, runId: string | undefined): boolean =>
  runId === undefined || runId === resume?.runId || runId === askedAs;

const waitingIn = ({ state: { queue } }: Draft): { readonly waiting?: number } => (queue.count === 0 ? {} : { waiting: queue.count });

/** Rule ST2. The run ends; what waits stays in the queue until the session goes on. */
function held(d: Draft, event: EventOf<"Held">): void {
  const { state } = d;
  const { run } = state;
  const waiting = state.queue.count + (state.afterRun === undefined ? 0 : 1);
  const told = { type: "aborted", ...(waiting === 0 ? {} : { waiting }) } as const;
  d.answer = { ...told, wasRunning: false, cancelled: 0 };
  const why = event.isDeleted === true ? DELETED : STOPPED;
  if (!event.held) {
    if (!state.held) return;
    take(d, "holdEnds");
    delete state.held;
    if (run.phase === "idle") take(d, "heldWorkGoesOn");
    return;
  }
  if (!state.held) {
    take(d, "holdBegins");
    state.held = true;
    endProcesses(d, why);
  }
  if (isRunning(run)) {
    take(d, "runStopped");
    const cancelled = endByAbort(d, run, why);
    d.answer = { ...told, wasRunning: true, runId: run.runId, cancelled };
  } else if (run.phase === "archiving" && run.kind === "compact") {
    d.answer = { ...told, wasRunning: true, cancelled: 0, ...(run.resume ? { runId: run.resume.runId } : {}) };
    stopCompaction(d, run, why);
  }
}
/** Commands that go on in the background after their calls. */
function endProcesses(d: Draft, why: string): void {
  const { processes = [] } = d.state;
  cancelOnNodes(
    d,
    processes.map(({ callId, nodeId }) => ({ callId, target: { kind: "node", nodeId } })),
    why,
  );
  if (d.state.processes) d.state.processes = processes.map((known) => ({ ...known, stopped: true }));
}
const DELETED = "Ended, because the conversation was deleted.";
const STOPPED = "Stopped, as everything is. `/resume` or `gsv resume` lets GSV go on.";
function refuseHeld(d: Draft): void {
  d.answer = { type: "refused", error: { reason: "gateway.stopped", message: "GSV is stopped, so nothing was archived." } };
}

function settingsPatched(d: Draft, event: EventOf<"SettingsPatched">): void {
  take(d, "settingsPatched");
  const { state } = d;
  const cleared = new Set(event.clear ?? []);
  const settings = { ...state.settings, ...event.settings };
  // The time of a mode ends with the mode.
  if (event.settings?.mode !== undefined && event.settings.modeUntil === undefined) delete settings.modeUntil;
  if (cleared.has("model")) delete settings.model;
  if (cleared.has("thinkingLevel")) delete settings.thinkingLevel;
  if (cleared.has("systemPrompt")) delete settings.systemPrompt;
  if (cleared.has("maxTokens")) delete settings.maxTokens;
  if (cleared.has("mode")) {
    delete settings.mode;
    delete settings.modeUntil;
  }
  state.settings = settings;
  // The owner's last word about the mode counts, for the run under way too.
  const hasMode = event.settings?.mode !== undefined || cleared.has("mode");
  if (hasMode) state.run = withoutOwnMode(state.run);
  // Another model may need less than what is left of the limit: told of the question again, the gateway makes the session look (rule SP10).
  if (hasMode || state.run.phase === "paused") report(d);
  // The known token count is of the old model and the old prompt.
  if (event.settings?.model || event.settings?.systemPrompt !== undefined || cleared.has("model") || cleared.has("systemPrompt"))
    delete state.context;
  if (event.label !== undefined) state.label = event.label;
  if (cleared.has("label")) delete state.label;
  if (event.resetPolicy) state.resetPolicy = { ...state.resetPolicy, ...event.resetPolicy };
  if (cleared.has("resetPolicy")) state.resetPolicy = {};
  appendNotice(d, { notice: "settings", runId: "", text: event.text });
  d.answer = { type: "patched" };
}

function withoutOwnMode(run: Run): Run {
  const active = activeRun(run);
  if (active?.directives.mode === undefined) return run;
  const { mode: _mode, modeUntil: _until, ...directives } = active.directives;
  if (isRunning(run)) return { ...run, directives };
  return run.phase === "archiving" && run.resume ? { ...run, resume: { ...run.resume, directives } } : run;
}

function woke(d: Draft): void {
  const { run } = d.state;
  if (run.phase === "thinking") {
    // A call that waits for its next try has not been made yet.
    const call = d.state.outbox.find((effect) => effect.id === modelEffectId(run));
    if (call?.type !== "CallModel" || call.notBefore <= d.at.now) restartThinking(d, run);
  } else if (run.phase === "acting") actingWoke(d, run);
  else if (run.phase === "archiving") restartArchive(d, run);
}

function tick(d: Draft, event: EventOf<"Tick">): void {
  const { run } = d.state;
  const { now } = d.at;
  const alive = (effectId: string): boolean => event.inFlight.includes(effectId);
  if (run.phase === "thinking" && now >= run.deadline && !alive(modelEffectId(run))) restartThinking(d, run);
  else if (run.phase === "acting" && now >= run.deadline) actingTick(d, run);
  else if (run.phase === "paused" && now >= run.deadline) limitExpired(d, run);
  else if (run.phase === "archiving" && now >= run.deadline && !alive(archiveEffectId(run))) restartArchive(d, run);
}
