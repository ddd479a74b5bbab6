/**
 * Gives jobs their turn (rules JB5, JB6, JB11). A job that may begin has a row that says so before its object is told, and is told again until
 * it has said that it begins. Knows neither requests nor reports.
 */
import { CONFIG_DEFAULTS } from "../../../../protocol/gen/config.ts";
import { LIMITS } from "../../../../protocol/gen/limits.ts";
import type { KernelPorts } from "../../kernel/ports.ts";
import type { JobQueueStatus, JobPort, JobTurn } from "../../ports/jobs.ts";
import type { StopPort } from "../../ports/sessions.ts";
import type { QueueEntry, QueueStore } from "./queue-store.ts";
import { nextJob } from "./turns.ts";

export interface QueuePorts extends StopPort, Pick<KernelPorts, "arm" | "background" | "config" | "log" | "now"> {
  readonly entries: QueueStore;
  readonly job: (id: string) => JobPort;
}
/** An object that was told to begin and has not said so is told again. */
export const GRANT_MS = 10_000;
/** An object that runs has an alarm of its own. This one is for an alarm that was lost. */
const RUN_MS = 600_000;
/** A row whose object never got its job, because the request was cut, is removed. */
export const STORE_MS = 60_000;

/** Whether one more job may begin. */
export function mayBegin({ entries, config, stopped }: Pick<QueuePorts, "entries" | "config" | "stopped">): boolean {
  if (stopped() !== undefined) return false;
  const atOnce = config.effective().jobs?.maxConcurrent ?? CONFIG_DEFAULTS.jobs.maxConcurrent;
  return entries.running() < atOnce && entries.awaiting() < LIMITS.jobsAwaiting;
}
/** When the queue has something to do. */
export function nextTurn(ports: Pick<QueuePorts, "entries" | "config" | "stopped" | "now">): number | undefined {
  if (ports.entries.hasQueued() && mayBegin(ports)) return ports.now();
  return ports.entries.nextLook();
}

export class JobQueue {
  readonly #ports: QueuePorts;

  constructor(ports: QueuePorts) {
    this.#ports = ports;
  }

  /** The object has its job, which waits from now on. */
  stored(id: string): void {
    const { entries, arm } = this.#ports;
    if (entries.find(id)?.state !== "storing") return;
    entries.put(id, "queued", undefined);
    this.fill();
    arm();
  }

  claim(turn: JobTurn): boolean {
    const { entries, stopped, now } = this.#ports;
    const entry = entries.find(turn.id);
    if (entry === undefined) entries.add(turn, "queued", undefined);
    else if (entry.state === "storing" || (entry.state === "granted" && stopped() !== undefined)) entries.put(turn.id, "queued", undefined);
    this.fill(turn.id);
    const state = entries.find(turn.id)?.state;
    if (state === "granted") entries.put(turn.id, "running", now() + RUN_MS);
    return state === "granted" || state === "running" || state === "awaiting_approval";
  }

  setStatus(id: string, status: JobQueueStatus): void {
    const { entries, arm, now } = this.#ports;
    if (status === "gone") entries.remove(id);
    else entries.put(id, status, status === "ended" ? undefined : now() + RUN_MS);
    this.fill();
    arm();
  }

  /** The object goes on. */
  seen(id: string): void {
    const { entries, now } = this.#ports;
    const entry = entries.find(id);
    if (entry?.lookAt !== undefined && entry.lookAt - now() < RUN_MS / 2) entries.lookAgain(id, now() + RUN_MS);
  }

  /** Lets as many jobs begin as may. `asking`: the job whose object asks just now. */
  fill(asking?: string): void {
    const { entries, now, background, arm } = this.#ports;
    while (mayBegin(this.#ports)) {
      const id = nextJob(entries.lines());
      if (id === undefined) return;
      entries.grant(id, now() + GRANT_MS);
      arm();
      if (id !== asking) background("job_wake", this.#wake(id));
    }
  }

  async sweep(): Promise<void> {
    const { entries, now, log } = this.#ports;
    this.fill();
    for (const entry of entries.toLookAt(now())) {
      try {
        await this.#look(entry);
      } catch (error) {
        log.error("job_not_woken", { job: entry.id, error });
        entries.lookAgain(entry.id, now() + GRANT_MS);
      }
    }
  }
  async #look({ id, state }: QueueEntry): Promise<void> {
    const { entries, now, job } = this.#ports;
    const lookAt = now() + (state === "granted" ? GRANT_MS : RUN_MS);
    entries.lookAgain(id, lookAt);
    const isThere = await job(id).wake();
    if (isThere) return this.stored(id);
    // Meanwhile a repeated request may have stored the job, or be storing it.
    const entry = entries.find(id);
    if (entry?.state === state && entry.lookAt === lookAt) entries.remove(id);
  }
  async #wake(id: string): Promise<void> {
    await this.#ports.job(id).wake();
  }
}
