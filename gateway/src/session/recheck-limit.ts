/** Checks whether the limit at which a run is paused is still reached; the run goes on when it is not (rule SP10). */
import type { EventBody } from "./machine/event.ts";
import type { State } from "./machine/state.ts";
import type { RunContexts } from "./run-context.ts";
import { budgetOf, modelAt, modelsFor, thinkLevelFor } from "./run-settings.ts";
import type { SpendGate } from "./spend-gate.ts";

/** The session's driver. */
interface Rechecked {
  readonly state: State | undefined;
  readonly contexts: Pick<RunContexts, "current">;
  readonly spend: Pick<SpendGate, "fits">;
  apply(event: EventBody): unknown;
}
/** Rejects when the gateway does not say. Changes nothing for a run that is not paused. */
export async function recheckLimit(driver: Rechecked): Promise<void> {
  if (driver.state?.run.phase !== "paused") return;
  const context = await driver.contexts.current();
  const { state } = driver;
  const run = state?.run;
  if (state === undefined || run?.phase !== "paused") return;
  const { settings } = state;
  const { config } = context;
  const budget = budgetOf(context, run.origin);
  const fits = await driver.spend.fits({
    run,
    offer: run.offer,
    ownBudget: budget,
    model: modelAt(modelsFor(run, settings, context), run.modelIndex),
    config,
    maxTokens: settings.maxTokens,
    thinkLevel: thinkLevelFor(run, settings, config),
  });
  if (fits) driver.apply({ type: "LimitNoLongerReached", code: run.question.code, budget });
}
