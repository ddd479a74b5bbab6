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
  readonly queue: QueueStore;
  readonly job: (id: string) => JobPort;
}
/** An object that was told to begin and has not said so is told again. */
export const GRANT_MS = 10_000;
/** An object that runs has an alarm of its own. This one is for an alarm that was lost. */
const RUN_MS = 600_000;
/** A row whose object never got its job, because the request was cut, is removed. */
export const STORE_MS = 60_000;

/** Whether one more job may begin. */
export function mayBegin({ queue, config, stopped }: Pick<QueuePorts, "queue" | "config" | "stopped">): boolean {
  if (stopped() !== undefined) return false;
  const atOnce = config.effective().jobs?.maxConcurrent ?? CONFIG_DEFAULTS.jobs.maxConcurrent;
  return queue.running() < atOnce && queue.awaiting() < LIMITS.jobsAwaiting;
}
/** When the queue has something to do. */
export function nextTurn(ports: Pick<QueuePorts, "queue" | "config" | "stopped" | "now">): number | undefined {
  if (ports.queue.hasQueued() && mayBegin(ports)) return ports.now();
  return ports.queue.nextLook();
}

export class JobQueue {
  readonly #ports: QueuePorts;

  constructor(ports: QueuePorts) {
    this.#ports = ports;
  }

  /** The object has its job, which waits from now on. */
  stored(id: string): void {
    const { queue, arm } = this.#ports;
    if (queue.find(id)?.state !== "storing") return;
    queue.put(id, "queued", undefined);
    this.fill();
    arm();
  }

  claim(turn: JobTurn): boolean {
    const { queue, stopped, now } = this.#ports;
    const entry = queue.find(turn.id);
    if (entry === undefined) queue.add(turn, "queued", undefined);
    else if (entry.state === "storing" || (entry.state === "granted" && stopped() !== undefined)) queue.put(turn.id, "queued", undefined);
    this.fill(turn.id);
    const state = queue.find(turn.id)?.state;
    if (state === "granted") queue.put(turn.id, "running", now() + RUN_MS);
    return state === "granted" || state === "running" || state === "awaiting_approval";
  }

  place(id: string, place: JobQueueStatus): void {
    const { queue, arm, now } = this.#ports;
    if (place === "gone") queue.remove(id);
    else queue.put(id, place, place === "ended" ? undefined : now() + RUN_MS);
    this.fill();
    arm();
  }

  /** The object goes on. */
  seen(id: string): void {
    const { queue, now } = this.#ports;
    const entry = queue.find(id);
    if (entry?.lookAt !== undefined && entry.lookAt - now() < RUN_MS / 2) queue.lookAgain(id, now() + RUN_MS);
  }

  /** Lets as many jobs begin as may. `asking`: the job whose object asks just now. */
  fill(asking?: string): void {
    const { queue, now, background, arm } = this.#ports;
    while (mayBegin(this.#ports)) {
      const id = nextJob(queue.lines());
      if (id === undefined) return;
      queue.grant(id, now() + GRANT_MS);
      arm();
      if (id !== asking) background("job_wake", this.#wake(id));
    }
  }

  async sweep(): Promise<void> {
    const { queue, now, log } = this.#ports;
    this.fill();
    for (const entry of queue.toLookAt(now())) {
      try {
        await this.#look(entry);
      } catch (error) {
        log.error("job_not_woken", { job: entry.id, error });
        queue.lookAgain(entry.id, now() + GRANT_MS);
      }
    }
  }
  async #look({ id, state }: QueueEntry): Promise<void> {
    const { queue, now, job } = this.#ports;
    const lookAt = now() + (state === "granted" ? GRANT_MS : RUN_MS);
    queue.lookAgain(id, lookAt);
    const isThere = await job(id).wake();
    if (isThere) return this.stored(id);
    // Meanwhile a repeated request may have stored the job, or be storing it.
    const entry = queue.find(id);
    if (entry?.state === state && entry.lookAt === lookAt) queue.remove(id);
  }
  async #wake(id: string): Promise<void> {
    await this.#ports.job(id).wake();
  }
}
