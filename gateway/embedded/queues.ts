/** Work on one key at a time, in order. Knows no objects. */
export class Queues {
  readonly #last = new Map<string, Promise<unknown>>();

  has(key: string): boolean {
    return this.#last.has(key);
  }
  async alone<T>(key: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#last.get(key) ?? Promise.resolve()).then(work, work);
    this.#last.set(key, turn);
    try {
      return await turn;
    } finally {
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}
