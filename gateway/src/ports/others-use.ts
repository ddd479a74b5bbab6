/** What a run owes to the runs that it has caused. Types only. */

/** What runs of other agents used on behalf of a run, and how long they waited for the owner and for machines. */
export interface OthersUse {
  readonly costUsd: number;
  /** Tokens of models without a known price. */
  readonly unpriced: number;
  readonly waitedMs: number;
}
