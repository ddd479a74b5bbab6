/**
 * Hands deliveries that wait to the scheduler, one of a hook after the other (rule HK5). The row of the run and the mark of the delivery
 * are one transaction, so that a delivery begins once, whenever the gateway is killed.
 */
import type { KernelPorts } from "../../kernel/ports.ts";
import type { WokenJobsPort } from "../../ports/schedule.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { HookStore, StoredHook } from "./store.ts";

export interface QueuePorts extends WokenJobsPort, StopPort, Pick<KernelPorts, "now" | "arm"> {
  readonly store: HookStore;
}
const LOST = "The job was removed before the delivery began.";

export const jobOf = ({ name, body: { target } }: Pick<StoredHook, "name" | "body">, ports: WokenJobsPort): string =>
  target.kind === "job" ? target.jobId : ports.wokenJobs.ownIdOf(name);

/** Now, when a delivery can begin. Undefined: the end of a run, or `gsv resume`, lets the next one begin. */
export function nextBegin(ports: QueuePorts): number | undefined {
  if (ports.stopped() !== undefined) return undefined;
  const canMove = ports.store.waitingHooks().some((name) => {
    const hook = ports.store.find(name);
    const state = hook === undefined ? "none" : ports.wokenJobs.stateOf(jobOf(hook, ports));
    return state === "free" || state === "none";
  });
  return canMove ? ports.now() : undefined;
}
export function beginWaiting(ports: QueuePorts): void {
  const { store, wokenJobs, stopped, now, arm } = ports;
  if (stopped() !== undefined) return;
  for (const name of store.waitingHooks())
    store.atomic(() => {
      const hook = store.find(name);
      const delivery = store.firstWaiting(name);
      if (delivery?.text === undefined) return;
      const jobId = hook === undefined ? undefined : jobOf(hook, ports);
      if (jobId === undefined || wokenJobs.stateOf(jobId) === "none") return store.giveUp(name, LOST);
      if (wokenJobs.stateOf(jobId) !== "free") return;
      const given = { hook: name, text: delivery.text, taint: { label: "world" as const, source: `the hook ${name}` } };
      const run = wokenJobs.wake(jobId, given, now());
      if (run !== undefined) store.begun(delivery.id, run);
    });
  arm();
}
