/** Limits the requests that are under way at once, for each name and for all names: a slow sender must not take the slots of others. */
export class Slots {
  readonly #perName: number;
  readonly #inAll: number;
  readonly #taken = new Map<string, number>();
  #total = 0;

  constructor(perName: number, inAll = Number.POSITIVE_INFINITY) {
    this.#perName = perName;
    this.#inAll = inAll;
  }

  /** Takes a slot. Returns how to release it, which is called once; undefined when no slot is free. */
  take(name: string): (() => void) | undefined {
    const taken = this.#taken.get(name) ?? 0;
    if (taken >= this.#perName || this.#total >= this.#inAll) return undefined;
    this.#taken.set(name, taken + 1);
    this.#total++;
    return () => this.#release(name);
  }
  #release(name: string): void {
    this.#total--;
    const left = (this.#taken.get(name) ?? 1) - 1;
    if (left > 0) this.#taken.set(name, left);
    else this.#taken.delete(name);
  }
}
