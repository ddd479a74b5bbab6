/** Requests whose transfers have no row yet, because it is being checked whether they may begin. A cancellation that overtakes one finds it here. */
export class NewRequests {
  /** Whether they were cancelled, by the transfer's id. */
  readonly #checked = new Map<string, boolean>();

  async check<T>(id: string, work: () => Promise<T>): Promise<{ readonly checked: T; readonly isCancelled: boolean }> {
    if (!this.#checked.has(id)) this.#checked.set(id, false);
    try {
      const checked = await work();
      return { checked, isCancelled: this.#checked.get(id) === true };
    } finally {
      this.#checked.delete(id);
    }
  }
  cancel(id: string): void {
    if (this.#checked.has(id)) this.#checked.set(id, true);
  }
}
