/** Runs the work of a Durable Object's alarm, and sets another alarm when it fails: the runtime repeats a failed alarm six times and then never again. */
import { errorText } from "./error-text.ts";
import { logLine } from "./log.ts";

const AGAIN_MS = 30_000;

/** Does the work of an alarm. Throws only when the next alarm can't be set. */
export async function onAlarm(
  component: string,
  work: () => Promise<void>,
  setAlarm: (at: number) => Promise<void>,
  now: () => number,
): Promise<void> {
  try {
    await work();
  } catch (error) {
    logLine(component, "alarm_failed", { error: errorText(error) });
    await setAlarm(now() + AGAIN_MS);
  }
}
