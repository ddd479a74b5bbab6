/** Looks whether the limit at which a run is paused still is reached; the run goes on when it is not (rule SP10). */
import type { SessionDriver } from "./driver.ts";
import { budgetOf } from "./run-settings.ts";

/** Rejects when the gateway does not say. Changes nothing for a run that is not paused. */
export async function lookAtLimit(driver: SessionDriver): Promise<void> {
  const run = driver.state?.run;
  if (run?.phase !== "paused") return;
  const budget = budgetOf(await driver.contexts.current(), run.origin);
  const fits = await driver.spend.fits({ run, offer: run.offer, ownBudget: budget });
  if (fits) driver.apply({ type: "LimitNoLongerReached", code: run.question.code, budget });
}
