/** The spend ledger at the far end: grants for a few calls, and sums that must be those of all calls that were made. */
import { addSum, newIn, type SpendAnswer, type SpendAsk, type SpendReport, type SpendSum } from "../../src/ports/spend.ts";

export class FakeLedger {
  /** All that was ever settled. */
  sums: readonly SpendSum[] = [];
  asked = 0;
  #report: SpendReport = { base: 0, count: 0, sums: [] };
  readonly #wall: () => number;

  constructor(wall: () => number) {
    this.#wall = wall;
  }
  reserve({ need, report }: SpendAsk): SpendAnswer {
    this.asked += 1;
    this.take(report);
    return {
      ok: true,
      settled: report.count,
      grant: { costUsd: 3 * need.costUsd, tokens: 3 * need.tokens, calls: 3, until: this.#wall() + 120_000 },
    };
  }
  /** As the real one does: once, however often it comes. */
  take(report: SpendReport): void {
    if (report.count <= this.#report.count) return;
    const earlier = report.base < this.#report.count ? this.#report.sums : [];
    for (const sum of newIn(report.sums, earlier)) this.sums = addSum(this.sums, sum);
    this.#report = report;
  }
}
