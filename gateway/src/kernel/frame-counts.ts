/** Counts the frames of one connection against their limits. The counts are lost when the object hibernates. PURE. */
import { LIMITS } from "../../../protocol/gen/limits.ts";

/** How many there were since `start` (epoch ms). */
interface Count {
  start: number;
  count: number;
}
export interface FrameCounts {
  readonly requests: Count;
  /** Requests of a client that is an end of an open transfer, about it. Undefined: it is the end of none. */
  transferRequests: Count | undefined;
  /** Binary frames and transfer messages without a transfer on this connection. */
  readonly strays: Count;
}

const MINUTE_MS = 60_000;
const SECOND_MS = 1000;

export const freshCounts = (): FrameCounts => ({ requests: zero(), transferRequests: undefined, strays: zero() });

/** Whether this client is an end of an open transfer. Then it acknowledges what it receives as a node does, and as often. */
export function setTransferEnd(counts: FrameCounts, isEnd: boolean): void {
  counts.transferRequests = isEnd ? (counts.transferRequests ?? zero()) : undefined;
}

/** Counts a request. False: over the limit of its kind. `isReport`: it is one of an end about its transfer. */
export function countRequest(counts: FrameCounts, { isNode, isReport }: { isNode: boolean; isReport: boolean }, now: number): boolean {
  const asNode = isNode ? counts.requests : isReport ? counts.transferRequests : undefined;
  return asNode === undefined
    ? countOne(counts.requests, now, MINUTE_MS) <= LIMITS.clientFramesPerMinute
    : countOne(asNode, now, SECOND_MS) <= LIMITS.nodeFramesPerSecond;
}

/** Counts a frame without a transfer. `isNews`: it is the 1st, 10th, 100th and so on of a minute, which the log should have. */
export function countStray(
  counts: FrameCounts,
  now: number,
): { readonly count: number; readonly isNews: boolean; readonly isTooMany: boolean } {
  const count = countOne(counts.strays, now, MINUTE_MS);
  return { count, isNews: Number.isInteger(Math.log10(count)), isTooMany: count > LIMITS.strayChunksPerMinute };
}

const zero = (): Count => ({ start: 0, count: 0 });
/** Counts one more, from 0 when the time of the count is over or the clock went back. */
function countOne(counted: Count, now: number, windowMs: number): number {
  if (now - counted.start >= windowMs || now < counted.start) [counted.start, counted.count] = [now, 0];
  return ++counted.count;
}
