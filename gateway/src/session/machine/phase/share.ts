/** What a run has left for the tasks that it hands on (rule DG4). PURE. */
import type { DelegatedBudget } from "../../../ports/origin.ts";
import type { Acting } from "../state.ts";

/**
 * Money and tokens are parted among the open calls that wait for other agents, so that together they use no more than is left; time passes
 * for all of them at once. `now`: of the session's clock.
 */
export function shareOf({ budget, extra = {}, spent, unpriced = 0, startedAt, waitedMs = 0, calls }: Acting, now: number): DelegatedBudget {
  if (budget === undefined) return { ms: 0, costUsd: 0 };
  const parts = Math.max(1, calls.filter(({ isWait }) => isWait === true).length);
  const tokens = budget.tokens === undefined ? {} : { tokens: Math.floor(left(budget.tokens + (extra.tokens ?? 0), unpriced) / parts) };
  return {
    ms: left(budget.ms + (extra.ms ?? 0), now - startedAt - waitedMs),
    costUsd: left(budget.costUsd + (extra.costUsd ?? 0), spent.costUsd ?? 0) / parts,
    ...tokens,
  };
}
const left = (most: number, used: number): number => Math.max(0, most - used);
