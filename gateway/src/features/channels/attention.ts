/**
 * Decides which messages start no run (promises P2, W22): reactions, corrections of an accepted message, and messages that are more than
 * a day late and may be obsolete. The agent sees them with the next message that it answers. PURE.
 */
import type { ChannelInbound, Unanswered } from "../../../../protocol/gen/types.ts";

export const LATE_MS = 86_400_000;

export interface AttentionInput {
  readonly inbound: ChannelInbound;
  /** Epoch ms. */
  readonly now: number;
  /** The message that this one replaces was accepted. */
  readonly knowsOriginal: boolean;
}
/** Why the message gets no answer; undefined: it gets one. */
export function unansweredWhy({ inbound, now, knowsOriginal }: AttentionInput): Unanswered | undefined {
  const { message, receivedAt } = inbound;
  if (message.reaction !== undefined || message.deleted === true) return "event";
  if (message.editOf !== undefined && knowsOriginal) return "event";
  // A platform's clock that is ahead must not make a message late.
  return now - Math.min(receivedAt, message.timestamp ?? receivedAt) > LATE_MS ? "late" : undefined;
}
