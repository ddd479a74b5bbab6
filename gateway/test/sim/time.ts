/** Virtual time: nothing waits, and the seed decides the order of events. The wall clock can jump; virtual time can't. */

interface Planned {
  readonly at: number;
  readonly order: number;
  readonly work: () => void;
  cancelled: boolean;
}
export const WALL_BASE = 1_760_000_000_000;

export class VirtualTime {
  now = 0;
  /** What the wall clock is wrong by. */
  wallOffset = 0;
  #order = 0;
  #plan: Planned[] = [];

  wall(): number {
    return WALL_BASE + Math.floor(this.now) + this.wallOffset;
  }
  after(ms: number, work: () => void): () => void {
    const planned: Planned = { at: this.now + Math.max(0, ms), order: this.#order++, work, cancelled: false };
    // A heap: histories are long, and this is the innermost loop.
    this.#plan.push(planned);
    this.#up(this.#plan.length - 1);
    return () => {
      planned.cancelled = true;
    };
  }
  /** Does the next thing. False: nothing is planned. */
  step(): boolean {
    for (;;) {
      const next = this.#pop();
      if (!next) return false;
      if (next.cancelled) continue;
      this.now = Math.max(this.now, next.at);
      next.work();
      return true;
    }
  }
  #before(left: Planned, right: Planned): boolean {
    return left.at < right.at || (left.at === right.at && left.order < right.order);
  }
  #up(start: number): void {
    let at = start;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const [here, above] = [this.#plan[at], this.#plan[parent]];
      if (!here || !above || !this.#before(here, above)) return;
      this.#plan[at] = above;
      this.#plan[parent] = here;
      at = parent;
    }
  }
  #pop(): Planned | undefined {
    const first = this.#plan[0];
    const last = this.#plan.pop();
    if (!first || !last || this.#plan.length === 0) return first;
    this.#plan[0] = last;
    let at = 0;
    for (;;) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let least = at;
      for (const child of [left, right]) {
        const [candidate, best] = [this.#plan[child], this.#plan[least]];
        if (candidate && best && this.#before(candidate, best)) least = child;
      }
      if (least === at) return first;
      const [here, there] = [this.#plan[at], this.#plan[least]];
      if (!here || !there) return first;
      this.#plan[at] = there;
      this.#plan[least] = here;
      at = least;
    }
  }
}
