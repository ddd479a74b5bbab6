/**
 * The storage of a session, as an interface: SQLite in production, memory in the simulator, one test suite for both. Synchronous; a
 * transaction happens completely or not at all. Has no rules of the session.
 */
import type { Answer } from "../machine/event.ts";
import type { Step } from "../machine/draft.ts";
import type { LogRow } from "../machine/log.ts";
import type { IncomingMessage, QueuedMessage, State } from "../machine/state.ts";

/** The answer that a dedupe key was given, kept for `LIMITS.dedupeMs`. */
export interface SeenEntry {
  readonly key: string;
  readonly answer: Answer;
  /** Wall time. */
  readonly at: number;
}
export interface QueueFront {
  readonly quiet: readonly QueuedMessage[];
  readonly head: QueuedMessage | undefined;
  /** Only when they were asked for. */
  readonly steered?: readonly QueuedMessage[];
}
/** The front of a queue that has messages for a run. */
export function frontOf(waiting: readonly QueuedMessage[]): QueueFront {
  const steered = waiting.filter(({ incoming }) => incoming.steers !== undefined);
  const others = waiting.filter(({ incoming }) => incoming.steers === undefined);
  const at = others.findIndex(({ incoming }) => incoming.quiet !== true);
  return at === -1 ? { quiet: others, head: undefined, steered } : { quiet: others.slice(0, at), head: others[at], steered };
}

export interface SessionStore {
  /** Rolled back when `work` throws. */
  transaction<T>(work: () => T): T;
  /** Undefined before the first message. Reading creates nothing. */
  load(): State | undefined;
  seen(key: string): Answer | undefined;
  /** Up to the first message that a run answers. `withSteered`: messages that are for a run are given apart from the others. */
  queueFront(withSteered?: boolean): QueueFront;
  /** All waiting messages, in order. Call it seldom: the queue is bounded, but may be large. */
  queued(): readonly IncomingMessage[];
  /** The first waiting message of that run. */
  queuedRun(runId: string): QueuedMessage | undefined;
  /** `before` undefined: the session begins. Only inside a transaction. */
  write(before: State | undefined, step: Step, seen: SeenEntry | undefined): void;
  /** Rows with seq >= from, in order, at most `limit`. */
  rows(from: number, limit: number): readonly LogRow[];
  rowAt(seq: number): LogRow | undefined;
  /** The first number that is still in the log; `nextSeq` when it is empty. */
  oldestSeq(nextSeq: number): number;
  /** Full text of a long result that is not in the bucket yet. */
  resultText(callId: string): string | undefined;
  /** Short names of files: the number of each key, in the order of first use. A key without a number gets the next one. */
  mediaNumbers(keys: readonly string[]): ReadonlyMap<string, number>;
  mediaKey(number: number): string | undefined;
  /** The files are deleted, except those in `keep`. */
  dropMediaNumbers(keep: ReadonlySet<string>): void;
  /**
   * Prunes in one bounded step: dedupe keys older than `seenBefore`, and rows that left the conversation (seq below
   * `contextFrom`) and are older than `rowsBefore` or below `rowsBelow`. Returns how many rows it removed.
   */
  prune(bounds: PruneBounds): number;
}
export interface PruneBounds {
  readonly seenBefore: number;
  readonly contextFrom: number;
  readonly rowsBefore: number;
  readonly rowsBelow: number;
  /** Rows looked at, and at most removed, of each kind. */
  readonly step: number;
}
