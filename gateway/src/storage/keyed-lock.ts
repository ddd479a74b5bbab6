/** A lock for each name, in memory: work under one name runs one after the other, work under different names at the same time. */
export class KeyedLock {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const result = before.then(work, work);
    const settled = result.then(noop, noop);
    this.#last.set(name, settled);
    void settled.then(() => {
      if (this.#last.get(name) === settled) this.#last.delete(name);
    });
    return result;
  }
}
const noop = (): void => {};
