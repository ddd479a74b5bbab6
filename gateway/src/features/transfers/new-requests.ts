/** Requests whose transfers have no row yet, because it is being checked whether they may begin. A cancellation that overtakes one finds it here. */
export class NewRequests {
  /** By the transfer's id. `open`: how many requests with this id are being checked; a cancellation is of all of them. */
  readonly #checked = new Map<string, { open: number; isCancelled: boolean }>();

  async check<T>(id: string, work: () => Promise<T>): Promise<{ readonly checked: T; readonly isCancelled: boolean }> {
    const entry = this.#checked.get(id) ?? { open: 0, isCancelled: false };
    this.#checked.set(id, entry);
    entry.open++;
    try {
      const checked = await work();
      return { checked, isCancelled: entry.isCancelled };
    } finally {
      entry.open--;
      if (entry.open === 0) this.#checked.delete(id);
    }
  }
  cancel(id: string): void {
    const entry = this.#checked.get(id);
    if (entry) entry.isCancelled = true;
  }
}
