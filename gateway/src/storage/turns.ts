/** Runs work with the same name one after the other, so that an announced change of a skill is still correct when it is written. Memory only. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  take<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(name) ?? Promise.resolve();
    const turn = before.then(work, work);
    const settled = turn.then(noop, noop);
    this.#last.set(name, settled);
    void settled.then(() => {
      if (this.#last.get(name) === settled) this.#last.delete(name);
    });
    return turn;
  }
}
const noop = (): void => {};
