/** The queue's messages, and the way of a message into the log. PURE. */
import { messageTaint } from "../../../policy/taint.ts";
import { isPlainlyOwner } from "../../../ports/origin.ts";
import type { ReplyRoute } from "../../../ports/session.ts";
import { append, appendNotice, type Draft } from "../draft.ts";
import { isForeign } from "../../../ports/taint.ts";
import { LIMITS } from "../limits.ts";
import type { UserRow } from "../log.ts";
import type { IncomingMessage, QueuedMessage } from "../state.ts";
import { heard } from "./labels.ts";

/** False: the queue is full. */
export function enqueue(d: Draft, incoming: IncomingMessage, bytes: number): boolean {
  const { count, bytes: waiting, steered = 0 } = d.state.queue;
  if (count >= LIMITS.queueMessages || waiting + bytes > LIMITS.queueBytes) return false;
  d.state.queue = queueOf(count + 1, waiting + bytes, steered + (incoming.steers === undefined ? 0 : 1));
  d.queue.push({ op: "add", incoming, bytes });
  return true;
}

export function takeOff(d: Draft, { id, bytes, incoming }: QueuedMessage): void {
  const { count, bytes: waiting, steered = 0 } = d.state.queue;
  d.queue.push({ op: "remove", id });
  d.state.queue = queueOf(count - 1, waiting - bytes, Math.max(0, steered - (incoming.steers === undefined ? 0 : 1)));
}

const queueOf = (count: number, bytes: number, steered: number): Draft["state"]["queue"] => ({
  count,
  bytes,
  ...(steered === 0 ? {} : { steered }),
});

/** The message enters the log. Returns its place. */
export function enter(
  d: Draft,
  { runId, messageId, origin, message, directives, taint }: IncomingMessage,
  steered: Pick<UserRow, "steered"> = {},
): number {
  const written = Object.keys(directives).length > 0 ? { directives } : {};
  const before = d.state.taint;
  const { seq } = append(d, {
    kind: "user",
    runId,
    messageId,
    origin,
    message,
    ...written,
    ...steered,
    ...heard(d, messageTaint(origin, taint)),
  });
  if (d.state.identity.isOwnersSession && isPlainlyOwner(origin) && !isForeign(before) && isForeign(d.state.taint))
    appendNotice(d, { notice: "note", runId: "", text: labelText(d.state.taint.source) });
  return seq;
}
/** The owner has sent it, and does not see that its content is of others (TA1). */
const labelText = (source: string): string =>
  `Others may have written ${source}, so calls of this conversation that send or change something important now ask you first, and can be allowed once only. To vouch for what it has read: /trust.`;

/** The route of a process's end: the platform from which the process was started. */
export function routeOf(d: Draft, { origin, reply }: IncomingMessage): ReplyRoute | undefined {
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
