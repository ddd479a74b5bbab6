/** Taking messages in and starting runs: one message, one run, in order of arrival. Pure. */
import { type Draft, append, appendNotice, open } from "../draft.ts";
import type { EventOf } from "../event.ts";
import type { ReplyRoute } from "../../../ports/session.ts";
import { LIMITS } from "../limits.ts";
import { type ActiveRun, type IncomingMessage, modelEffectId, type QueuedMessage, type Thinking, type WaitingRun } from "../state.ts";
import { textOf } from "../text.ts";
import { beginArchive } from "./archiving.ts";

export function userMessage(d: Draft, event: EventOf<"UserMessage">): void {
  const { state } = d;
  if (!sameIdentity(state.identity, event.identity)) state.identity = event.identity;
  const { incoming } = event;
  if (incoming.quiet && state.run.phase === "idle") {
    d.answer = { type: "accepted", runId: incoming.runId, queued: false, seq: enter(d, incoming) };
    return;
  }
  const reset =
    state.run.phase === "idle" && event.resetDue !== undefined && state.messageCount > 0 && d.at.wall >= state.autoResetAfter
      ? event.resetDue
      : undefined;
  if (state.run.phase === "idle" && reset === undefined) {
    const seq = startRun(d, incoming);
    d.answer = { type: "accepted", runId: incoming.runId, queued: false, seq };
    return;
  }
  if (!enqueue(d, incoming, event.bytes)) {
    const { count, bytes } = state.queue;
    d.answer = {
      type: "refused",
      error: {
        reason: "session.queue_full",
        message: `${count} messages wait in this session already. Wait for an answer, or stop the run with /stop.`,
        details: { waiting: count, bytes, limit: LIMITS.queueMessages, limitBytes: LIMITS.queueBytes },
      },
    };
    return;
  }
  d.answer = { type: "accepted", runId: incoming.runId, queued: true };
  // The message that brought the reset about waits durably like any other; it opens the fresh conversation.
  if (reset !== undefined) beginArchive(d, { kind: "reset", requestId: d.at.freshId, cause: reset });
}

/** A background process ended: the agent is woken. Never refused, since nobody is there to send it again later. */
export function execEnded(d: Draft, event: EventOf<"ExecEnded">): void {
  d.answer = { type: "taken" };
  if (d.state.run.phase === "idle") startRun(d, event.incoming);
  else if (!enqueue(d, event.incoming, event.bytes)) {
    const { content } = event.incoming.message;
    const text = typeof content === "string" ? content : textOf(content);
    appendNotice(d, { notice: "note", runId: "", text, forModel: text });
  }
}

function enqueue(d: Draft, incoming: IncomingMessage, bytes: number): boolean {
  const { count, bytes: waiting } = d.state.queue;
  if (count >= LIMITS.queueMessages || waiting + bytes > LIMITS.queueBytes) return false;
  d.state.queue = { count: count + 1, bytes: waiting + bytes };
  d.queue.push({ op: "add", incoming, bytes });
  return true;
}

/** The message enters the log. Returns its place. */
function enter(d: Draft, { runId, messageId, origin, message, directives }: IncomingMessage): number {
  return append(d, { kind: "user", runId, messageId, origin, message, ...(Object.keys(directives).length > 0 ? { directives } : {}) }).seq;
}
/** The message enters the log and its run begins. Returns its place. */
function startRun(d: Draft, incoming: IncomingMessage): number {
  const { state, at } = d;
  state.runCount += 1;
  state.updatedAt = at.wall;
  const { runId, messageId, origin, directives } = incoming;
  const reply = routeOf(d, incoming);
  const seq = enter(d, incoming);
  think(d, {
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

export type RunBase = Omit<Thinking, "phase" | "attempt" | "tries" | "restarts" | "deadline" | "overflows" | "compactionTried">;
export function runBase(run: ActiveRun | WaitingRun): RunBase {
  const { ordinal, runId, messageId, origin, directives, reply, startedAt, progressAt, step, modelIndex, spent, budget } = run;
  return {
    ordinal,
    runId,
    messageId,
    origin,
    directives,
    ...(reply ? { reply } : {}),
    startedAt,
    progressAt,
    step,
    modelIndex,
    spent,
    ...(budget ? { budget } : {}),
  };
}
/** The end of a process that was started over a platform is told there. */
function routeOf(d: Draft, { origin, reply }: IncomingMessage): ReplyRoute | undefined {
  const { state } = d;
  if (origin.kind === "node_event") {
    if (!state.lastRoute) return undefined;
    const { replyToId: _answered, ...route } = state.lastRoute;
    return route;
  }
  if (reply) state.lastRoute = reply;
  else if (state.lastRoute) delete state.lastRoute;
  return reply;
}
export interface Again extends Pick<Thinking, "attempt" | "tries" | "restarts" | "overflows" | "compactionTried"> {
  readonly waitMs: number;
}
/** What another attempt at the same step takes along. */
export const sameStep = ({
  restarts,
  overflows,
  compactionTried,
}: WaitingRun): Pick<Again, "restarts" | "overflows" | "compactionTried"> => ({
  restarts,
  ...(overflows === undefined ? {} : { overflows }),
  ...(compactionTried === undefined ? {} : { compactionTried }),
});
/** The one way into thinking: a new attempt, with its effect and its lease. */
export function think(d: Draft, base: RunBase, again: Again = { attempt: 0, tries: 0, restarts: 0, waitMs: 0 }): void {
  const notBefore = d.at.now + again.waitMs;
  const run: Thinking = {
    ...base,
    phase: "thinking",
    attempt: again.attempt,
    tries: again.tries,
    ...sameStep({ ...base, ...again }),
    deadline: notBefore + LIMITS.leaseMs,
  };
  d.state.run = run;
  open(d, { type: "CallModel", id: modelEffectId(run), notBefore });
}

/** Idle, with everything taken care of that waited for it: a compaction first, then the next message. */
export function becomeIdle(d: Draft): void {
  const { state } = d;
  state.run = { phase: "idle" };
  const { afterRun } = state;
  if (afterRun) {
    delete state.afterRun;
    beginArchive(d, afterRun);
    if (d.state.run.phase !== "idle") return;
  }
  startNext(d);
}
export function startNext(d: Draft): void {
  const { state, at } = d;
  if (state.run.phase !== "idle" || state.queue.count === 0) return;
  if (d.headTaken) throw new Error("messages wait, but the store did not give the first one");
  d.headTaken = true;
  for (const message of at.quiet) {
    takeOff(d, message);
    enter(d, message.incoming);
  }
  const { head } = at;
  if (!head && state.queue.count > 0) throw new Error("messages wait, but the store did not give the first one");
  if (!head) return;
  takeOff(d, head);
  startRun(d, head.incoming);
}
export function takeOff(d: Draft, { id, bytes }: QueuedMessage): void {
  const { queue } = d.state;
  d.queue.push({ op: "remove", id });
  d.state.queue = { count: queue.count - 1, bytes: queue.bytes - bytes };
}

function sameIdentity(left: Draft["state"]["identity"], right: Draft["state"]["identity"]): boolean {
  return (
    left.key === right.key && left.ref === right.ref && left.agentId === right.agentId && left.isOwnersSession === right.isOwnersSession
  );
}
