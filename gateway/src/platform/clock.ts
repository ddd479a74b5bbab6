/** The time. Everything that needs it is given a Clock; only drivers use `systemClock`. */
export interface Clock {
  /** Milliseconds since 1970, UTC. */
  now(): number;
}
export const systemClock: Clock = { now: () => Date.now() };
