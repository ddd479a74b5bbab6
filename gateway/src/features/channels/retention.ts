/** Prunes the channels' tables: the alarm deletes expired rows in bounded steps. Knows no table's columns. */

/** A table whose rows expire. */
export interface Prunable {
  /** Deletes expired rows, in one bounded step. True: there may be more. */
  prune(now: number): boolean;
  /** When the first row expires; undefined: there is none. */
  nextExpiry(): number | undefined;
}
export interface RetentionPorts {
  readonly tables: readonly Prunable[];
  readonly arm: () => void;
  readonly background: (what: string, work: Promise<unknown>) => void;
}
const EVERY_MS = 3_600_000;
const MORE_MS = 1_000;

export class Retention {
  readonly #ports: RetentionPorts;
  #prunedAt = 0;
  #hasMore = false;
  #armed = false;

  constructor(ports: RetentionPorts) {
    this.#ports = ports;
  }

  /** Call it before a row is written. Arms the alarm once per instance, after that row. */
  ensureArmed(): void {
    if (this.#armed) return;
    this.#armed = true;
    this.#ports.background("arm", Promise.resolve().then(this.#ports.arm));
  }
  /** A bounded step of every table; the alarm comes again at once while there is more. */
  prune(now: number): void {
    this.#prunedAt = now;
    this.#hasMore = this.#ports.tables.map((table) => table.prune(now)).some(Boolean);
  }
  /** Rows are deleted in batches, so that a busy day costs few alarms. */
  next(): number | undefined {
    const due = this.#ports.tables.flatMap((table) => table.nextExpiry() ?? []);
    if (due.length === 0) return undefined;
    return Math.max(Math.min(...due), this.#prunedAt + (this.#hasMore ? MORE_MS : EVERY_MS));
  }
}
