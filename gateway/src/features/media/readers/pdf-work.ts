/**
 * What the reading of one PDF may cost. PDF.js has no bound of its own, so its classes count here (pdf-bounds.ts, pdf-source.ts). After a
 * bound is passed, every further step of that document fails. Counts work, never time.
 */
import { LIMITS } from "../../../../../protocol/gen/limits.ts";

export type Spent = "unpacked" | "steps";
export interface WorkLimits {
  /** All unpacked streams together, in bytes. */
  readonly unpackedBytes: number;
  /** A step takes about a microsecond. */
  readonly steps: number;
}
export const WORK_LIMITS: WorkLimits = { unpackedBytes: 4 * LIMITS.documentExpandedBytes, steps: LIMITS.documentSteps };

/** In steps. An operator and a character are one step each. */
export const COST = { lookup: 200, font: 1_000, part: 5, parsedKilobyte: 128, unpackedKilobyte: 4 } as const;
/** Between two pauses: some milliseconds. */
const PAUSE_STEPS = 20_000;
/** PDF.js pauses between operators only, so what one operator asks for has a bound of its own: some hundred milliseconds. */
const UNPAUSED_STEPS = 300_000;
/** One for all: PDF.js may run into it a million times, and a stack takes time. */
const COSTS_TOO_MUCH = new Error("this costs too much");

export class PdfWork {
  readonly #left: Record<Spent, number>;
  #spent: Spent | undefined;
  #sincePause = 0;
  #refused = false;
  constructor({ unpackedBytes, steps }: WorkLimits = WORK_LIMITS) {
    this.#left = { unpacked: unpackedBytes, steps };
  }
  /** The bound that was passed. */
  get spent(): Spent | undefined {
    return this.#spent;
  }
  /** Something was left out, because it cannot pause and takes too long. */
  get refused(): boolean {
    return this.#refused;
  }
  /** Throws when the document has cost enough, or when it cannot pause and has cost enough since the last pause. */
  take(what: Spent, count: number): void {
    if (this.#spent === undefined) {
      this.#left[what] -= count;
      if (this.#left[what] < 0) this.#spent = what;
    }
    if (what === "steps") this.#sincePause += count;
    if (this.#sincePause > UNPAUSED_STEPS) this.#refused = true;
    else if (this.#spent === undefined) return;
    throw COSTS_TOO_MUCH;
  }
  /** Other work of the thread should have its turn now. */
  get needsPause(): boolean {
    return this.#sincePause >= PAUSE_STEPS;
  }
  /** Gives other work of the thread its turn. */
  async pause(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 0));
    this.#sincePause = 0;
  }
  /** Everything that PDF.js still does for this document fails. */
  end(): void {
    this.#spent ??= "steps";
  }
}
