/** Transfers whose ends are connected and that wait for a slot (rule TF10): the time in which they wait is no time without progress. */
import type { KernelPorts } from "../../kernel/ports.ts";
import { STALL_MS, type TransferStore } from "./store.ts";

interface Ports extends Pick<KernelPorts, "arm"> {
  readonly store: Pick<TransferStore, "addQueuedTime" | "postpone" | "waits">;
}

export class SlotQueue {
  readonly #ports: Ports;
  /** Since when each waits, by its id. */
  readonly #since = new Map<string, number>();

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  isEmpty(): boolean {
    return this.#since.size === 0;
  }
  has(id: string): boolean {
    return this.#since.has(id);
  }
  join(id: string, now: number): void {
    if (this.#since.has(id)) return;
    this.#since.set(id, now);
    this.#ports.store.waits(id, now);
    this.#ports.store.postpone(id, now + STALL_MS);
  }
  /** Returns for how many milliseconds it has waited since that was last counted. */
  leave(id: string, now: number): number {
    const since = this.#since.get(id);
    if (since === undefined) return 0;
    this.#since.delete(id);
    const queuedMs = Math.max(0, now - since);
    this.#ports.store.addQueuedTime(id, queuedMs);
    this.#ports.store.waits(id, now);
    this.#ports.arm();
    return queuedMs;
  }
  /** The transfer has ended. */
  drop(id: string): void {
    this.#since.delete(id);
  }
}
