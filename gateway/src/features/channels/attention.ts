/**
 * What of a conversation is only to be known, and begins no run (promises P2, W22). PURE. A thumb under an answer is no question, a typo
 * that was corrected is not asked a second time, and a message more than a day late may be obsolete: the agent sees all of it with
 * the next message that it answers.
 */
import type { ChannelInbound, Unanswered } from "../../../../protocol/gen/types.ts";

export const LATE_MS = 86_400_000;

export interface AttentionInput {
  readonly inbound: ChannelInbound;
  /** Epoch ms. */
  readonly now: number;
  /** The message that this one replaces was taken in. */
  readonly knowsOriginal: boolean;
}
/** Undefined: it is answered. */
export function unansweredWhy({ inbound, now, knowsOriginal }: AttentionInput): Unanswered | undefined {
  const { message, receivedAt } = inbound;
  if (message.reaction !== undefined || message.deleted === true) return "event";
  if (message.editOf !== undefined && knowsOriginal) return "event";
  // A clock that is ahead makes nothing late.
  return now - Math.min(receivedAt, message.timestamp ?? receivedAt) > LATE_MS ? "late" : undefined;
}
