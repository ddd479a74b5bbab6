/** Counts denials, so that a flood of them is a few entries of the audit and a number. In memory only. PURE. */

/** Denials of one actor that get a row of their own in a minute; the rest is counted in the next row. */
const PER_MINUTE = 10;
const MAX_FLOODS = 256;

export class DenialCounter {
  readonly #seen = new Map<string, { minute: number; rows: number; dropped: number }>();

  /** The number of denials that were dropped before this one, or `drop` for this one too. */
  count(what: string, now: number): number | "drop" {
    const minute = Math.floor(now / 60_000);
    const seen = this.#seen.get(what);
    if (seen === undefined || seen.minute !== minute) {
      if (seen === undefined && this.#seen.size >= MAX_FLOODS) this.#seen.clear();
      this.#seen.set(what, { minute, rows: 1, dropped: 0 });
      return seen?.dropped ?? 0;
    }
    if (seen.rows >= PER_MINUTE) {
      seen.dropped++;
      return "drop";
    }
    seen.rows++;
    return 0;
  }
}
