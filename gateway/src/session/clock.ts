/**
 * The session's own clock: it counts the time that really went by while a run was looked after, and no jump of the wall clock,
 * no suspended laptop and no outage moves it. Deadlines and budgets run on it, so that a day forwards or backwards changes no
 * outcome; people get wall time. The arithmetic is pure; the class only remembers the last reading.
 */

export interface Reading {
  /** Epoch ms, as the machine says. */
  readonly wall: number;
  /** Ms of the session's life that count. */
  readonly now: number;
}
/** How much later than planned something may come and still count as time. */
export const CLOCK_SLACK_MS = 60_000;

/**
 * The next reading. Someone looks at least when the alarm is due (`expectedWall`), so a gap that goes far beyond that is a
 * jump or a sleep, and a negative one is a jump: neither counts.
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
  /** What an earlier life had counted. `expectedWall`: when it meant to be awake again. */
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
