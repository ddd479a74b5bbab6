/** Messages of a session to the platform that a run came from, opened in the commit that has their row (promise P9). PURE. */
import type { ReplyRoute } from "../../../ports/session.ts";
import { type Draft, open, settle } from "../draft.ts";
import { REPLIES_WAITING } from "../limits.ts";

export function openReply(d: Draft, route: ReplyRoute, id: string, deliveryId: string, seq: number): void {
  open(d, { type: "Reply", id, route, seq, deliveryId });
  const waiting = d.state.outbox.filter((effect) => effect.type === "Reply");
  // A channel that is away for good must not grow the state without end.
  for (const oldest of waiting.slice(0, -REPLIES_WAITING)) settle(d, oldest.id);
}
