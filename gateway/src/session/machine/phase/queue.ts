/** Accepts messages and starts runs: one run per message, in order of arrival. PURE. */
import { unknownResult } from "../../../policy/taint.ts";
import { textOf } from "../../../ports/messages.ts";
import type { Taint } from "../../../ports/taint.ts";
import { type Draft, appendNotice, take } from "../draft.ts";
import type { EventOf } from "../event.ts";
import { LIMITS, WAKES_PER_HOUR } from "../limits.ts";
import type { IncomingMessage } from "../state.ts";
import type { TransitionName } from "../transitions.ts";
import { beginArchive } from "./archive-stages.ts";
import { enqueue, enter, routeOf, takeOff } from "./entering.ts";
import { interrupts, steers } from "./interrupting.ts";
import { heard } from "./labels.ts";
import { giveWay } from "./limit.ts";
import { think } from "./steps.ts";

/** Why a run that waits at its limit ends: no message waits behind its question. */
const NEW_MESSAGE = "a new message came";

export function userMessage(d: Draft, event: EventOf<"UserMessage">): void {
  const { state } = d;
  if (!sameIdentity(state.identity, event.identity)) state.identity = event.identity;
  const { incoming } = event;
  const paused = state.run.phase === "paused" && !incoming.quiet ? state.run : undefined;
  const interrupted = interrupts(d, event);
  const gaveWay = paused !== undefined && d.at.head === undefined;
  if (gaveWay) giveWay(d, paused, NEW_MESSAGE);
  if (gaveWay || interrupted !== undefined) {
    enterQuiet(d);
    const seq = startRun(d, "messageStartsRun", incoming);
    d.answer = { type: "accepted", runId: incoming.runId, queued: false, seq, ...(interrupted === undefined ? {} : { interrupted }) };
    return;
  }
  const isFree = state.run.phase === "idle" && !state.held;
  if (incoming.quiet && isFree) {
    take(d, "quietMessageEnters");
    d.answer = { type: "accepted", runId: incoming.runId, queued: false, seq: enter(d, incoming) };
    return;
  }
  const reset =
    isFree && event.resetDue !== undefined && state.messageCount > 0 && d.at.wall >= state.autoResetAfter ? event.resetDue : undefined;
  if (isFree && reset === undefined) {
    const seq = startRun(d, "messageStartsRun", incoming);
    d.answer = { type: "accepted", runId: incoming.runId, queued: false, seq };
    return;
  }
  const steered = steers(d, event);
  if (!enqueue(d, steered === undefined ? incoming : { ...incoming, steers: steered.ordinal }, event.bytes)) {
    const { count, bytes } = state.queue;
    d.answer = {
      type: "refused",
      error: {
        reason: "session.queue_full",
        message: `${count} messages wait in this session already.`,
        hint: "Wait for an answer, or stop the run with /stop.",
        details: { waiting: count, bytes, limit: LIMITS.queueMessages, limitBytes: LIMITS.queueBytes },
      },
    };
    return;
  }
  d.answer = { type: "accepted", runId: incoming.runId, queued: true, ...(steered === undefined ? {} : { steers: steered.runId }) };
  if (steered !== undefined) return take(d, "messageSteers");
  // The message that triggers the reset is queued like any other; it starts the new conversation.
  if (reset === undefined) {
    take(d, "messageWaits");
    if (paused) giveWay(d, paused, NEW_MESSAGE);
  } else beginArchive(d, "messageBringsReset", { kind: "reset", requestId: d.at.freshId, cause: reset });
}

/** A background process ended: the agent is woken, once for each process that a result named. Never refused: no sender would send it again. */
export function execEnded(d: Draft, event: EventOf<"ExecEnded">): void {
  const { processes = [] } = d.state;
  const ended = processes.find(({ nodeId, processId }) => nodeId === event.nodeId && processId === event.processId);
  if (ended === undefined) {
    d.answer = { type: "unknown" };
    return;
  }
  d.state.processes = processes.filter((entry) => entry !== ended);
  d.answer = { type: "taken" };
  const taint = ended.taint ?? unknownResult(event.nodeId);
  const incoming: IncomingMessage = { ...event.incoming, taint };
  if (ended.stopped || !mayWake(d)) note(d, incoming, taint);
  else if (d.state.run.phase === "idle" && !d.state.held) startRun(d, "processEndStartsRun", incoming);
  else if (enqueue(d, incoming, event.bytes)) take(d, "processEndWaits");
  else note(d, incoming, taint);
}
function note(d: Draft, { message: { content } }: IncomingMessage, taint: Taint): void {
  take(d, "processEndNoted");
  const text = textOf(content);
  appendNotice(d, { notice: "note", runId: "", text, forModel: text, ...heard(d, taint) });
}
/** Each wake costs a model call, and a node decides when processes end: an hour has a limited number of them. */
function mayWake(d: Draft): boolean {
  const { wakes } = d.state;
  const recent = wakes !== undefined && d.at.now - wakes.from < HOUR_MS ? wakes : { from: d.at.now, count: 0 };
  if (recent.count >= WAKES_PER_HOUR) return false;
  d.state.wakes = { ...recent, count: recent.count + 1 };
  return true;
}
const HOUR_MS = 3_600_000;

/** The message enters the log and its run begins. Returns its place. */
function startRun(d: Draft, name: TransitionName, incoming: IncomingMessage): number {
  const { state, at } = d;
  state.runCount += 1;
  state.updatedAt = at.wall;
  const { runId, messageId, origin, directives } = incoming;
  const reply = routeOf(d, incoming);
  const seq = enter(d, incoming);
  think(d, name, {
    ordinal: state.runCount,
    runId,
    messageId,
    origin,
    directives,
    ...(reply ? { reply } : {}),
    startedAt: at.now,
    progressAt: at.now,
    step: 1,
    modelIndex: 0,
    spent: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0, costUsd: 0 },
  });
  return seq;
}

/** After an end: starts a waiting compaction first, then the next message of the queue. */
export function startWaiting(d: Draft): void {
  if (!d.atNext) return;
  const { afterRun } = d.state;
  if (d.state.held) {
    take(d, "nothingWaits");
    return;
  }
  if (afterRun) {
    delete d.state.afterRun;
    beginArchive(d, "waitingCompactionBegins", afterRun);
  }
  if (d.atNext) startNext(d);
  if (d.atNext) take(d, "nothingWaits");
}
function startNext(d: Draft): void {
  const { state } = d;
  enterQuiet(d);
  const { head, steered: [steering] = [] } = d.at;
  // A message for the run that has just ended is about its work, so it does not wait behind others.
  const next = steering ?? head;
  if (next) {
    takeOff(d, next);
    startRun(d, steering ? "steeringMessageStartsRun" : "waitingMessageStartsRun", next.incoming);
  } else if (state.queue.count > 0) throw new Error("messages wait, but the store did not give the first one");
}
/** The quiet messages at the front of the queue enter the log. */
function enterQuiet(d: Draft): void {
  const { quiet } = d.at;
  if (quiet.length > 0) take(d, "waitingQuietMessagesEnter");
  for (const message of quiet) {
    takeOff(d, message);
    enter(d, message.incoming);
  }
}
function sameIdentity(left: Draft["state"]["identity"], right: Draft["state"]["identity"]): boolean {
  return (
    left.key === right.key && left.ref === right.ref && left.agentId === right.agentId && left.isOwnersSession === right.isOwnersSession
  );
}
