/**
 * The session's own clock for deadlines and budgets: it counts only time in which the session was served. A jump of the wall clock, a
 * suspended laptop or an outage does not move it, so none of them changes an outcome. People get wall time. The arithmetic is pure; the
 * class only stores the last reading.
 */

export interface Reading {
  /** Epoch ms, as the machine says. */
  readonly wall: number;
  /** Counted ms since the session began. */
  readonly now: number;
}
/** A wake that is later than planned by more than this counts as an interruption. */
export const CLOCK_SLACK_MS = 60_000;

/**
 * The next reading. The clock is read at the latest when the alarm is due (`expectedWall`), so a gap that goes far beyond it is a jump or
 * an interruption, and a negative gap is a jump. Neither counts.
 */
export function advance(last: Reading, wall: number, expectedWall: number): Reading {
  const gap = wall - last.wall;
  const plausible = Math.max(0, expectedWall - last.wall) + CLOCK_SLACK_MS;
  return { wall, now: last.now + (gap >= 0 && gap <= plausible ? gap : 0) };
}

export class SessionClock {
  #last: Reading;
  /** When the object will be awake next, as far as it knows. */
  #expectedWall: number;
  readonly #wall: () => number;

  constructor(wall: () => number, last: Reading) {
    this.#wall = wall;
    this.#last = last;
    this.#expectedWall = last.wall;
  }
  read(): Reading {
    this.#last = advance(this.#last, this.#wall(), this.#expectedWall);
    return this.#last;
  }
  /** Continues the count of an earlier incarnation, which would have woken at `expectedWall`. */
  restore(last: Reading, expectedWall: number): void {
    this.#last = last;
    this.#expectedWall = expectedWall;
  }
  expect(wall: number): void {
    this.#expectedWall = wall;
  }
  /** The wall time at which the session's clock will show `now`, if nothing jumps. */
  wallAt(now: number): number {
    const reading = this.read();
    return reading.wall + Math.max(0, now - reading.now);
  }
}
