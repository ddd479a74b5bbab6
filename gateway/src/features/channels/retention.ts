/** Retention of the channels' tables: rows over their time are deleted in bounded steps, by the alarm. Knows no table. */

/** A table whose rows have an end. */
export interface Prunable {
  /** A bounded step. True: there may be more. */
  forget(now: number): boolean;
  /** When the oldest row is over its time; undefined: there is none. */
  nextForget(): number | undefined;
}
export interface RetentionPorts {
  readonly tables: readonly Prunable[];
  readonly arm: () => void;
  readonly background: (what: string, work: Promise<unknown>) => void;
}
const EVERY_MS = 3_600_000;
const AGAIN_MS = 1_000;

export class Retention {
  readonly #ports: RetentionPorts;
  #prunedAt = 0;
  #hasMore = false;
  #armed = false;

  constructor(ports: RetentionPorts) {
    this.#ports = ports;
  }

  /** A row is about to be written. Arms the alarm once in the life of the instance, after that row. */
  keep(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#ports.background("arm", Promise.resolve().then(this.#ports.arm));
  }
  /** A bounded step of every table; the alarm comes again at once while there is more. */
  prune(now: number): void {
    this.#prunedAt = now;
    this.#hasMore = this.#ports.tables.map((table) => table.forget(now)).some(Boolean);
  }
  /** Rows are deleted in batches, so that a busy day costs few alarms. */
  next(): number | undefined {
    const due = this.#ports.tables.flatMap((table) => table.nextForget() ?? []);
    if (due.length === 0) return undefined;
    return Math.max(Math.min(...due), this.#prunedAt + (this.#hasMore ? AGAIN_MS : EVERY_MS));
  }
}
