/** Collects the nearest texts of a scan. PURE. */
export interface Near {
  readonly id: number;
  readonly source: number;
  /** At most 1. */
  readonly cosine: number;
}

/** The nearest texts of a scan, the nearest first. */
export class Nearest {
  readonly best: Near[] = [];
  readonly #limit: number;
  #worst: number;

  constructor(limit: number, least: number) {
    this.#limit = limit;
    this.#worst = least;
  }
  /** What a further text must exceed. */
  get worst(): number {
    return this.#worst;
  }
  offer(id: number, cosine: number, source: number): void {
    if (cosine <= this.#worst) return;
    const { best } = this;
    let [from, to] = [0, best.length];
    while (from < to) {
      const middle = (from + to) >>> 1;
      if ((best[middle] as Near).cosine < cosine) to = middle;
      else from = middle + 1;
    }
    best.splice(from, 0, { id, source, cosine });
    if (best.length > this.#limit) best.pop();
    if (best.length === this.#limit) this.#worst = best.at(-1)?.cosine ?? this.#worst;
  }
}
