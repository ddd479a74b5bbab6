/**
 * In-memory waits of a session's callers, for the end of an archive and for the count of deleted files. Best effort: after a restart
 * of the session the caller asks again. Also the lock between storing the files of a message and deleting files.
 */
import type { ArchiveEnd } from "./machine/event.ts";
import { type After, within } from "../../../protocol/runtime/within.ts";

/** Ends that no caller has asked for yet. */
const ENDS_KEPT = 16;

export class Waits {
  readonly #after: After;
  readonly #archives = new Map<string, (end: ArchiveEnd) => void>();
  readonly #ends = new Map<string, ArchiveEnd>();
  readonly #deletions = new Map<string, () => void>();
  readonly #deleted = new Map<string, number>();
  #files: Promise<unknown> = Promise.resolve();

  constructor(after: After) {
    this.#after = after;
  }

  archiveEnd(requestId: string): Promise<ArchiveEnd> {
    const end = this.#ends.get(requestId);
    if (end) {
      this.#ends.delete(requestId);
      return Promise.resolve(end);
    }
    return new Promise((resolve) => this.#archives.set(requestId, resolve));
  }
  archiveEnded(end: ArchiveEnd): void {
    const waiting = this.#archives.get(end.requestId);
    this.#archives.delete(end.requestId);
    if (waiting) return waiting(end);
    keep(this.#ends, end.requestId, end);
  }

  /** How many files the effect deleted; undefined when that is not known in time. Answers once. */
  async filesDeleted(effectId: string, withinMs: number): Promise<number | undefined> {
    const told = new Promise<void>((resolve) => this.#deletions.set(effectId, resolve));
    if (!this.#deleted.has(effectId)) await within(this.#after, withinMs, told, () => undefined);
    this.#deletions.delete(effectId);
    const count = this.#deleted.get(effectId);
    this.#deleted.delete(effectId);
    return count;
  }
  deleted(effectId: string, count: number): void {
    keep(this.#deleted, effectId, count);
    this.#deletions.get(effectId)?.();
  }

  /**
   * Serialises storing the files of a message up to its commit, and deleting the files of an old conversation. Otherwise a deletion
   * could remove files whose message is not in the log yet.
   */
  withFiles<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#files.then(work);
    this.#files = turn.catch(() => {});
    return turn;
  }
}
function keep<T>(map: Map<string, T>, key: string, value: T): void {
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > ENDS_KEPT && !oldest.done) map.delete(oldest.value);
}
