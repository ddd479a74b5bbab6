/** The clock. Code that needs the time takes a Clock; only drivers use `systemClock`. */
export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number;
}
export const systemClock: Clock = { now: () => Date.now() };
